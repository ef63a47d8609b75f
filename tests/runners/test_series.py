"""The folder of patches agrees with its record and with its table, or every difference is told."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from matrix.errors import RefusedError
from runners.series import load_series, read_series
from tests.runners.repos import make_folder, make_recorded, make_repo

FILES = {"f.txt": "a\nb\nc\n", "g.txt": "x\ny\n"}
EDITS: dict[str, dict[str, str | None]] = {
    "99-early.patch": {"f.txt": "a\nB\nc\n"},
    "504-middle.patch": {"g.txt": "x\nY\n", "new.txt": "new\n"},
    "1000-late.patch": {"f.txt": "a\nB\nC\n"},
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("series")
    return make_recorded(place / "patches", make_repo(place / "repo", FILES), EDITS)


@pytest.fixture
def folder(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "patches"))


def rules(folder: Path) -> list[str]:
    return sorted(finding.rule for finding in read_series(folder)[1])


def test_numeric_order(folder: Path) -> None:
    series = load_series(folder)
    assert [entry.number for entry in series.entries] == [99, 504, 1000]
    assert [name for name, _ in series.record] == sorted(EDITS)
    assert [entry.number for entry in series.up_to(504).entries] == [99, 504]
    first, middle, last = (entry.recorded or {} for entry in series.entries)
    assert first["f.txt"].post == last["f.txt"].pre, "a pre-image is the one after earlier patches"
    assert middle["new.txt"].pre is None


def test_a_folder_without_record_is_taken(tmp_path: Path, folder: Path) -> None:
    bare = make_folder(tmp_path / "bare", {name: (folder / name).read_bytes() for name in EDITS})
    assert [entry.recorded for entry in load_series(bare).entries] == [None] * 3


def edit(folder: Path, old: str, new: str, file: str = "series.yaml") -> None:
    text = (folder / file).read_text()
    assert text.count(old) >= 1, old
    (folder / file).write_text(text.replace(old, new, 1))


def sort_rows_wrongly(folder: Path) -> None:
    edit(folder, "| `99-early.patch` | x |\n", "", "README.md")
    edit(folder, "late.patch` | x |\n", "late.patch` | x |\n| `99-early.patch` | x |\n", "README.md")


def copy_patch(new: str, old: str) -> Callable[[Path], object]:
    return lambda folder: shutil.copy(folder / old, folder / new)


def with_cr(folder: Path) -> None:
    patch = folder / "99-early.patch"
    patch.write_bytes(patch.read_bytes().replace(b"\n", b"\r\n"))


FAULTS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "changed patch": (lambda f: edit(f, "diff --git", "why\ndiff --git", "99-early.patch"), ["series-sha256"]),
    "deleted patch": (lambda f: (f / "99-early.patch").unlink(), ["patch-table", "series-missing"]),
    "unlisted patch": (copy_patch("100-more.patch", "99-early.patch"), ["patch-table", "series-unlisted"]),
    "equal numbers": (
        copy_patch("0504-again.patch", "504-middle.patch"),
        ["patch-number", "patch-table", "series-unlisted"],
    ),
    "name with a space": (
        copy_patch("505 more.patch", "99-early.patch"),
        ["patch-name", "patch-table", "series-unlisted"],
    ),
    "no number": (copy_patch("more.patch", "99-early.patch"), ["patch-name", "patch-table", "series-unlisted"]),
    "CR": (with_cr, ["patch-line-ends"]),
    "no table": (lambda f: (f / "README.md").unlink(), ["patch-table"]),
    "no row": (lambda f: edit(f, "| `504-middle.patch` | x |\n", "", "README.md"), ["patch-table"]),
    "two rows": (lambda f: edit(f, "| `504", "| `99-early.patch` | y |\n| `504", "README.md"), ["patch-table"]),
    "row of nothing": (lambda f: edit(f, "| `504", "| `100-gone.patch` | y |\n| `504", "README.md"), ["patch-table"]),
    "rows in another order": (sort_rows_wrongly, ["patch-table"]),
    "wrong number": (lambda f: edit(f, "number: 504", "number: 505"), ["series-number"]),
    "other order": (
        lambda f: edit(f, "number: 99\n", "number: 2000\n"),
        ["series-number", "series-order", "series-order"],
    ),
    "listed twice": (
        lambda f: edit(f, '"504-middle.patch"', '"99-early.patch"'),
        ["series-number", "series-twice", "series-unlisted"],
    ),
    "unknown field": (lambda f: edit(f, "upstream:", "upsteam:"), ["series-field", "series-field"]),
    "number as text": (lambda f: edit(f, "number: 99", "number: '99'"), ["series-field"]),
    "an entry of text": (lambda f: edit(f, "  - number: 99", "  - x\n  - number: 99"), ["series-shape"]),
    "a file of text": (lambda f: edit(f, "      - path", "      - x\n      - path"), ["series-shape"]),
    "no blob id": (lambda f: edit(f, 'pre: "', 'pre: "0'), ["series-blob", "series-files"]),
    "another blob id": (lambda f: edit(f, "pre: null", f'pre: "{"1" * 40}"'), ["series-files"]),
    "file of no patch": (lambda f: edit(f, '"g.txt"', '"h.txt"'), ["series-files", "series-files"]),
    "no pin": (lambda f: edit(f, "pin:", "pins:"), ["series-field", "series-pin"]),
    "half a pin": (lambda f: edit(f, 'pin: "', 'pin: "x'), ["series-pin"]),
    "no list": (lambda f: (f / "series.yaml").write_text(f'pin: "{"1" * 40}"\npatches: none\n'), ["series-shape"]),
    "no YAML": (lambda f: (f / "series.yaml").write_text("patches: [\n"), ["yaml-syntax"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_difference_is_told(folder: Path, name: str) -> None:
    spoil, expected = FAULTS[name]
    spoil(folder)
    assert rules(folder) == expected
    with pytest.raises(RefusedError):
        load_series(folder)


def test_two_faults_at_once(folder: Path) -> None:
    edit(folder, "number: 504", "number: 505")
    edit(folder, "| `504-middle.patch` | x |\n", "", "README.md")
    assert rules(folder) == ["patch-table", "series-number"]


def test_places_are_those_of_the_record(folder: Path) -> None:
    edit(folder, "number: 504", "number: 505")
    finding = read_series(folder)[1][0]
    text = (folder / "series.yaml").read_text().splitlines()
    assert finding.span is not None
    assert text[finding.span.line - 1][finding.span.column - 1 :] == "505"


def test_no_folder(tmp_path: Path) -> None:
    assert rules(tmp_path / "none") == ["patches-folder"]


def test_an_empty_folder_is_a_series_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "patches").mkdir()
    assert load_series(tmp_path / "patches").entries == ()


def test_the_record_quotes_every_blob_id(folder: Path) -> None:
    """An id of digits alone, or 12e34…, is a number to YAML."""
    for line in (folder / "series.yaml").read_text().splitlines():
        key, _, value = line.strip().partition(": ")
        if key in {"pre", "post", "sha256"}:
            assert value == "null" or json.loads(value)
