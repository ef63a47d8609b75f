"""What cannot be right is refused on the spot: status 1, file, line and column, nothing on stdout, no traceback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from matrix.report.findings import MOST_PER_RULE
from tests.cli.support import HEAD, MASTER, RUNNERS, cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINE: Final = re.compile(r"(?P<place>[^:]+(?::\d+:\d+)?): (?:warning: )?(?P<rule>[a-z0-9-]+): .+ fix: .+")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good runners file, and no repository around it."""
    (tmp_path / "r.yaml").write_text(RUNNERS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*words: str, config: str = "m.yaml") -> list[tuple[str, str]]:
    """Place and rule of each line on stderr."""
    outcome = cli("expand", "--config", config, "--runners", "r.yaml", *words)
    assert (outcome.status, outcome.out) == (1, ""), outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.err.isprintable() or all(line.isprintable() for line in outcome.err.splitlines())
    found = []
    for line in outcome.err.splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        found.append((match["place"], match["rule"]))
    return found


BYTES: Final[dict[str, tuple[bytes, str, str]]] = {
    "empty": (b"", "m.yaml:1:1", "yaml-empty"),
    "blank": (b"\n \n", "m.yaml:1:1", "yaml-empty"),
    "comments alone": (b"# nothing\n", "m.yaml:1:1", "yaml-empty"),
    "binary": (b"\x7fELF\x02\x00\x00\xff", "m.yaml:1:8", "yaml-encoding"),
    "zero bytes": (b"a: 1\n\0\0", "m.yaml:2:1", "yaml-encoding"),
    "Latin-1": (b"alpha:\n  image: caf\xe9\n", "m.yaml:2:13", "yaml-encoding"),
    "UTF-16": ("a: 1".encode("utf-16"), "m.yaml:1:1", "yaml-encoding"),
    "control character": (b"a: 1\nb: \x07\n", "m.yaml:2:4", "yaml-encoding"),
    "tab": (b"alpha:\n\timage: i\n", "m.yaml:2:1", "yaml-tab"),
    "open bracket": (b"alpha: [1,\n", "m.yaml:2:1", "yaml-syntax"),
    "indentation": (b"a:\n  b: 1\n c: 2\n", "m.yaml:3:2", "yaml-syntax"),
    "two documents": (b"a: 1\n---\nb: 1\n", "m.yaml:2:1", "yaml-documents"),
    "a list": (b"- a\n- b\n", "m.yaml:1:1", "wrong-type"),
    "a word": (b"hello\n", "m.yaml:1:1", "wrong-type"),
    "a number": (b"42\n", "m.yaml:1:1", "wrong-type"),
    "null": (b"null\n", "m.yaml:1:1", "no-value"),
    "unknown alias": (b"a: *b\n", "m.yaml:1:4", "yaml-alias"),
    "recursive alias": (b"a: &a [*a]\n", "m.yaml:1:8", "yaml-alias"),
    "a tag": (b"a: !!python/object:os.system x\n", "m.yaml:1:4", "yaml-tag"),
    "deep nesting": (b"- " * 5000, "m.yaml:1:201", "yaml-depth"),
}


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_master_config(here: Path, name: str) -> None:
    data, place, rule = BYTES[name]
    (here / "m.yaml").write_bytes(data)
    assert refused() == [(place, rule)]


def test_what_is_no_file(here: Path) -> None:
    (here / "folder").mkdir()
    (here / "locked.yaml").symlink_to(here / "locked.yaml")
    assert refused(config="none.yaml") == [("none.yaml", "file-missing")]
    assert refused(config="folder") == [("folder", "file-directory")]
    assert refused(config="no/none.yaml") == [("no/none.yaml", "file-missing")]
    assert refused(config="locked.yaml") == [("locked.yaml", "file-unreadable")]


def test_all_files_that_are_missing_are_named_together() -> None:
    assert refused("--config", "b.yaml", "--runners", "s.yaml", config="a.yaml") == [
        ("a.yaml", "file-missing"),
        ("b.yaml", "file-missing"),
        ("s.yaml", "file-missing"),
    ]


def test_a_file_too_large_to_be_meant(here: Path) -> None:
    with (here / "m.yaml").open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    assert refused() == [("m.yaml", "file-too-large")]


def told(config: str = "m.yaml") -> list[str]:
    """The lines of a refusal, of whatever length."""
    outcome = cli("expand", "--config", config, "--runners", "r.yaml")
    assert (outcome.status, outcome.out) == (1, "")
    return outcome.err.splitlines()


def test_a_hundred_thousand_repeated_keys_are_counted(here: Path) -> None:
    (here / "m.yaml").write_text("a: 1\n" * 100_001, encoding="utf-8")
    lines = told()
    assert sum("yaml-duplicate-key" in line for line in lines) == MOST_PER_RULE + 1 >= len(lines) - 1
    assert lines[0].startswith("m.yaml:2:1: yaml-duplicate-key: ")
    assert lines[-1] == f"error: yaml-duplicate-key: {100_000 - MOST_PER_RULE:,} more like these"


def test_many_faults_of_many_configs_are_counted(here: Path) -> None:
    (here / "m.yaml").write_text("".join(f"a{number}: {{}}\n" for number in range(2000)), encoding="utf-8")
    assert len(told()) <= 2 * (MOST_PER_RULE + 1)


def test_an_alias_bomb_is_not_set_off(here: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    (here / "m.yaml").write_text("\n".join(levels), encoding="utf-8")
    ((place, rule),) = refused()
    assert (place.rpartition(":")[0], rule) == ("m.yaml:6", "yaml-alias-bomb")


def changed(*changes: tuple[str, str]) -> str:
    text = MASTER
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


AGENTIC: Final = f"""\
alpha:
  {{{HEAD}, runner: 'cluster:mi355x-a', multinode: false, scenarios: {{agentic-coding: [{{dram-utilization: 0.5, search-space: [
    {{tp: 8, kv-offloading: dram, kv-offload-backend: {{name: b}}, conc-list: [1]}}]}}]}}}}
"""  # noqa: E501 - one line of YAML

VALUES: Final[dict[str, tuple[str, list[tuple[str, str]]]]] = {
    "concurrency 0": (changed(("[4, 16]", "[0]")), [("m.yaml:3:63", "out-of-range")]),
    "negative concurrency": (changed(("[4, 16]", "[4, -1]")), [("m.yaml:3:66", "out-of-range")]),
    "huge concurrency": (changed(("[4, 16]", "[1000001]")), [("m.yaml:3:63", "out-of-range")]),
    "concurrency beyond any machine": (changed(("[4, 16]", f"[{'9' * 40}]")), [("m.yaml:3:63", "yaml-number")]),
    "quoted concurrency": (changed(("[4, 16]", "['4']")), [("m.yaml:3:63", "wrong-type")]),
    "half a concurrency": (changed(("[4, 16]", "[4.5]")), [("m.yaml:3:63", "wrong-type")]),
    "octal concurrency": (changed(("[4, 16]", "[010]")), [("m.yaml:3:63", "yaml-number")]),
    "no concurrency": (changed((", conc-list: [4, 16]", "")), [("m.yaml:3:43", "conc-missing")]),
    "an empty list": (changed(("[4, 16]", "[]")), [("m.yaml:3:62", "empty-value")]),
    "a word for a list": (changed(("[4, 16]", "16")), [("m.yaml:3:62", "wrong-type")]),
    "half a range": (changed(("conc-list: [4, 16]", "conc-start: 4")), [("m.yaml:3:51", "conc-half-range")]),
    "a range that falls": (
        changed(("conc-list: [4, 16]", "conc-start: 8, conc-end: 4")),
        [("m.yaml:3:63", "conc-range-order")],
    ),
    "a range from 0": (
        changed(("conc-list: [4, 16]", "conc-start: 0, conc-end: 4")),
        [("m.yaml:3:63", "out-of-range")],
    ),
    "a misspelt key": (changed(("conc-list", "conc-lst")), [("m.yaml:3:51", "unknown-key")]),
    "a repeated key": (changed(("tp: 8", "tp: 8, tp: 4")), [("m.yaml:3:51", "yaml-duplicate-key")]),
    "no tensor parallelism": (changed(("tp: 8", "tp: 0")), [("m.yaml:3:48", "out-of-range")]),
    "a wrong flag": (changed(("multinode: false", "multinode: no")), [("m.yaml:2:109", "yaml-word")]),
    "a key with two dashes": (changed(("alpha", "al--pha")), [("m.yaml:1:1", "config-key")]),
    "a key with a star": (changed(("alpha", "'alpha*'")), [("m.yaml:1:1", "config-key")]),
    "three faults at once": (
        changed(("[4, 16]", "[0]"), ("tp: 8", "tp: '8'"), ("precision", "precison")),
        [("m.yaml:2:47", "unknown-key"), ("m.yaml:3:48", "wrong-type"), ("m.yaml:3:65", "out-of-range")],
    ),
    "a worker larger than a node": (AGENTIC.replace("tp: 8", "tp: 16"), [("m.yaml:3:5", "topology-fit")]),
    "offloading on a label nobody knows": (
        AGENTIC.replace("mi355x-a", "mi356x-a"),
        [("m.yaml:2:90", "runner-unknown"), ("m.yaml:3:5", "hardware-missing")],
    ),
    "offloading without its share": (
        AGENTIC.replace("dram-utilization: 0.5, ", ""),
        [("m.yaml:2:157", "dram-utilization-missing")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_cannot_be(here: Path, name: str) -> None:
    text, findings = VALUES[name]
    (here / "m.yaml").write_text(text, encoding="utf-8")
    assert refused() == findings


@pytest.mark.parametrize("concs", ["conc-start: 7, conc-end: 7", "conc-list: [7]", "conc-start: 1, conc-end: 1000000"])
def test_a_range_of_one_and_a_range_of_everything_are_fine(here: Path, concs: str) -> None:
    (here / "m.yaml").write_text(changed(("conc-list: [4, 16]", concs)), encoding="utf-8")
    assert cli("expand", "--config", "m.yaml", "--runners", "r.yaml", "--format", "ids").status == 0


def test_an_unknown_label_is_a_warning_where_no_fact_is_needed(here: Path) -> None:
    (here / "m.yaml").write_text(changed(("runner: mi355x", "runner: mi356x")), encoding="utf-8")
    outcome = cli("expand", "--config", "m.yaml", "--runners", "r.yaml", "--format", "ids")
    assert (outcome.status, outcome.out.count("\n")) == (0, 2)
    assert outcome.err.startswith("m.yaml:2:90: warning: runner-unknown: ")
    assert "did you mean mi355x" in outcome.err


def test_one_key_in_two_files(here: Path) -> None:
    (here / "m.yaml").write_text(MASTER, encoding="utf-8")
    (here / "n.yaml").write_text(f"# the other\n{MASTER}", encoding="utf-8")
    assert refused("--config", "n.yaml") == [("n.yaml:2:1", "config-key-in-two-files")]
    assert "(m.yaml:1:1: the other one)" in told_twice("n.yaml")
    assert refused("--config", "./m.yaml") == [("./m.yaml", "file-named-twice")]


def told_twice(second: str) -> str:
    return cli("expand", "--config", "m.yaml", "--config", second, "--runners", "r.yaml").err


FLEETS: Final[dict[str, tuple[Callable[[str], str], list[tuple[str, str]]]]] = {
    "no labels": (lambda text: text.replace("labels", "label"), [("r.yaml:1:1", "unknown-key")]),
    "a label without nodes": (
        lambda text: text.replace("[mi355x-a_00, mi355x-a_01]", "[]", 1),
        [("r.yaml:2:11", "empty-value")],
    ),
    "no GPUs": (lambda text: text.replace("gpus-per-node: 8", "gpus-per-node: 0"), [("r.yaml:5:29", "out-of-range")]),
    "empty": (lambda _: "", [("r.yaml:1:1", "yaml-empty")]),
}  # fmt: skip


@pytest.mark.parametrize("name", FLEETS)
def test_a_runners_file_that_cannot_be(here: Path, name: str) -> None:
    change, findings = FLEETS[name]
    (here / "m.yaml").write_text(MASTER, encoding="utf-8")
    (here / "r.yaml").write_text(change(RUNNERS), encoding="utf-8")
    assert refused() == findings


@pytest.mark.parametrize("style", ["table", "json", "jsonl", "ids"])
def test_a_refusal_leaves_stdout_empty_in_every_format(here: Path, style: str) -> None:
    (here / "m.yaml").write_text(changed(("[4, 16]", "[0]")), encoding="utf-8")
    assert refused("--format", style, "--allow-empty") == [("m.yaml:3:63", "out-of-range")]
