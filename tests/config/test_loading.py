"""Files in, typed values or one refusal out: what people do to files, and what they are then told."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from matrix.config import loading
from matrix.config.loading import load_evals, load_fleet, load_inputs, load_masters
from matrix.config.model import Unacceptable
from matrix.config.source import MAX_BYTES, plain
from matrix.errors import RefusedError
from tests.config.support import CONC, EMPTY, config, fixed
from tests.config.test_verdicts import POLICY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matrix.config.source import Document

RUNNERS: Final = "labels: {x: [a]}\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def told(load: Callable[[], object], folder: Path) -> list[str]:
    """The findings of a refusal, without the folder and without what follows the rule."""
    with pytest.raises(RefusedError) as refused:
        load()
    lines = [str(finding).replace(f"{folder}/", "") for finding in refused.value.findings]
    return [": ".join(line.split(": ", 2)[:2]) for line in lines]


def test_configs_come_in_the_order_of_files_and_keys(tmp_path: Path) -> None:
    first = write(tmp_path / "b.yaml", config(EMPTY, key="z") + config(EMPTY, key="y"))
    second = write(tmp_path / "a.yaml", config(EMPTY, key="x"))
    assert [c.key for c in load_masters([first, str(second)])] == ["z", "y", "x"]
    assert load_masters([]) == ()


def test_a_fleet_and_a_policy(tmp_path: Path) -> None:
    assert load_fleet(write(tmp_path / "r.yaml", RUNNERS)).nodes("x") == ("a",)
    policy = load_evals(write(tmp_path / "e.yaml", POLICY))
    assert plain(policy.root)["sequence"] == {"isl": 8192, "osl": 1024}


def test_one_key_in_two_files_names_both_places(tmp_path: Path) -> None:
    first = write(tmp_path / "a.yaml", "# a\n" + config(EMPTY))
    second = write(tmp_path / "b.yaml", config(EMPTY, key="l") + config(EMPTY))
    with pytest.raises(RefusedError) as refused:
        load_masters([first, second])
    (finding,) = refused.value.findings
    assert str(finding) == (
        f"{second}:4:1: config-key-in-two-files: k is in {first} as well. Only one config can have the key."
        f" ({first}:2:1: the other one) fix: rename or remove one of the two"
    )


def test_one_file_named_twice_is_one_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", config(EMPTY))
    (tmp_path / "link.yaml").symlink_to(path)
    assert told(lambda: load_masters([path, tmp_path / "link.yaml"]), tmp_path) == ["link.yaml: file-named-twice"]


def test_all_findings_of_all_files_come_together(tmp_path: Path) -> None:
    wrong = write(tmp_path / "wrong.yaml", fixed(f"tp: '8', {CONC}", f"tp: 8, zz: 1, {CONC}"))
    broken = write(tmp_path / "broken.yaml", "k: [\n")
    right = write(tmp_path / "right.yaml", config(EMPTY))
    runners = write(tmp_path / "runners.yaml", "labels: []\n")
    evals = write(tmp_path / "evals.yaml", POLICY.replace("version: 1", "version: 2"))
    paths = [wrong, broken, right, tmp_path / "none.yaml"]
    masters = [
        "wrong.yaml:3:10: wrong-type",
        "wrong.yaml:4:13: unknown-key",
        "broken.yaml:2:1: yaml-syntax",
        "none.yaml: file-missing",
        "right.yaml:1:1: config-key-in-two-files",
    ]
    assert told(lambda: load_masters(paths), tmp_path) == masters
    both = [*masters, "runners.yaml:1:9: wrong-type", "evals.yaml:2:10: unknown-value"]
    assert told(lambda: load_inputs(paths, runners, evals), tmp_path) == both


def test_inputs_that_are_right(tmp_path: Path) -> None:
    master = write(tmp_path / "m.yaml", config(EMPTY))
    runners = write(tmp_path / "r.yaml", RUNNERS)
    evals = write(tmp_path / "e.yaml", POLICY)
    configs, fleet, policy = load_inputs([master], runners, evals)
    assert ([c.key for c in configs], list(fleet.labels), policy is not None) == (["k"], ["x"], True)
    assert load_inputs([master], runners)[2] is None


KINDS: Final[dict[str, tuple[str, str | bytes | None]]] = {
    "missing": ("m.yaml: file-missing", None),
    "empty": ("m.yaml:1:1: yaml-empty", ""),
    "comments alone": ("m.yaml:1:1: yaml-empty", "# nothing yet\n"),
    "binary": ("m.yaml:1:1: yaml-encoding", bytes(range(256))[::-1]),
    "NUL bytes": ("m.yaml:1:1: yaml-encoding", bytes(100)),
    "Latin-1": ("m.yaml:1:4: yaml-encoding", "k: é".encode("latin-1")),
    "50 MB": ("m.yaml: file-too-large", b"k: 1\n" * (10 * 1024 * 1024)),
    "just too large": ("m.yaml: file-too-large", b"#" * (MAX_BYTES + 1)),
    "recursion": ("m.yaml:1:11: yaml-alias", "k: &k {a: *k}\n"),
    "a tab": ("m.yaml:2:1: yaml-tab", "k:\n\ta: 1\n"),
    "documents": ("m.yaml:2:1: yaml-documents", "k: 1\n---\nk: 1\n"),
    "a list": ("m.yaml:1:1: wrong-type", "- k\n"),
    "a number": ("m.yaml:1:1: wrong-type", "42\n"),
    "null": ("m.yaml:1:1: no-value", "~\n"),
    "prose": ("m.yaml:1:1: wrong-type", "Not found\n"),
    "HTML": ("m.yaml:1:1: wrong-type", "<html><body>Not found</body></html>\n"),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "load", [lambda path: load_masters([path]), load_fleet, load_evals], ids=["master", "runners", "evals"]
)
def test_no_such_file_gets_in(tmp_path: Path, name: str, load: Callable[[Path], object]) -> None:
    place, content = KINDS[name]
    path = tmp_path / "m.yaml"
    if content is not None:
        write(path, content)
    assert told(lambda: load(path), tmp_path) == [place]


def test_a_directory(tmp_path: Path) -> None:
    assert told(lambda: load_masters([tmp_path]), tmp_path.parent) == [f"{tmp_path.name}: file-directory"]


def test_an_alias_bomb(tmp_path: Path) -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path = write(tmp_path / "m.yaml", "\n".join(["a0: &a0 [1]", *levels, ""]))
    assert told(lambda: load_masters([path]), tmp_path) == ["m.yaml:6:50: yaml-alias-bomb"]


MANY: Final[dict[str, tuple[str, int]]] = {
    "duplicate keys": ("k: 1\n" * 100_000, 100_000),
    "unknown keys in one config": ("k:\n" + "".join(f"  z{n}: 1\n" for n in range(100_000)), 22),
    "configs that are none": ("".join(f"k{n}: 1\n" for n in range(100_000)), 10_001),
    "wrong members of one list": (fixed(f"tp: 8, conc-list: [{', '.join(['0'] * 100_000)}]"), 10_001),
}


@pytest.mark.parametrize("name", MANY)
def test_no_number_of_faults_is_too_many(tmp_path: Path, name: str) -> None:
    text, count = MANY[name]
    path = write(tmp_path / "m.yaml", text)
    assert len(told(lambda: load_masters([path]), tmp_path)) == count


def test_a_refusal_without_a_reason_is_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(document: Document) -> object:
        raise Unacceptable(document.name)

    monkeypatch.setattr(loading, "fleet_of", refuse)
    path = write(tmp_path / "r.yaml", RUNNERS)
    with pytest.raises(AssertionError, match=r"r\.yaml is refused as a runners document, and no rule says why"):
        load_fleet(path)


def test_what_is_right_needs_no_explanation(tmp_path: Path) -> None:
    """The modules that explain cost more than the work itself, so a right file must not load them."""
    write(tmp_path / "m.yaml", fixed(f"tp: 8, {CONC}"))
    write(tmp_path / "r.yaml", RUNNERS)
    write(tmp_path / "e.yaml", POLICY)
    script = (
        "import sys; from matrix.config.loading import load_inputs; load_inputs(['m.yaml'], 'r.yaml', 'e.yaml');"
        "print(sorted({'jsonschema', 'difflib', 'matrix.config.schema', 'matrix.config.rules', 'matrix.findings'}"
        " & sys.modules.keys()))"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_unclear_values_and_wrong_ones_are_told_together(tmp_path: Path) -> None:
    path = write(tmp_path / "m.yaml", fixed("tp: '8', conc-list: [1], spec-decoding: off"))
    rules = [line.split(": ")[1] for line in told(lambda: load_masters([path]), tmp_path)]
    assert sorted(rules) == ["wrong-type", "yaml-word"]
