"""The strict loader, over both parsers: what is read, where it stands, and what is refused."""

from __future__ import annotations

import copy
import gzip
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config import events
from matrix.config.source import (
    MAX_BYTES,
    Document,
    Map,
    Seq,
    UnclearError,
    WrittenFloat,
    load,
    loads,
    parsed_once,
    plain,
    read_bytes,
)
from matrix.errors import RefusedError
from tests.config.support import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["libyaml", "pure"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers in turn. Where libyaml is missing, its turn is skipped."""
    name: str = request.param
    if name == "libyaml":
        pytest.importorskip("yaml._yaml", reason="PyYAML without libyaml")
    else:
        monkeypatch.setattr(events, "parser", events.pure_parser)
    return name


READ: Final[dict[str, tuple[str, Any]]] = {
    "integers": ("[0, 7, -7, +7, 1_024, 2_321_924, 0x1F]", [0, 7, -7, 7, 1024, 2_321_924, 31]),
    "floats": ("[0.80, 1., .5, -1.5, 1.0e+3]", [0.8, 1.0, 0.5, -1.5, 1000.0]),
    "versions": ("[1.10.2, v1.10, 2026-08-21, 1e3, 1:b]", ["1.10.2", "v1.10", "2026-08-21", "1e3", "1:b"]),
    "booleans": ("[true, True, FALSE]", [True, True, False]),
    "nulls": ("[null, ~, Null]", [None, None, None]),
    "no value": ("a:\nb: 1\n", {"a": None, "b": 1}),
    "quoted": ("['off', \"010\", '1:30', 'true', '~', '']", ["off", "010", "1:30", "true", "~", ""]),
    "words": ("[none, mtp, y, n, offload, Yes-man]", ["none", "mtp", "y", "n", "offload", "Yes-man"]),
    "block scalars": ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
    "core tags": ("[!!str 8, !!int 8, !!float 0.5, !!bool true, !!null ~]", ["8", 8, 0.5, True, None]),
    "nesting": ("a: {b: [1, {c: 2}]}\n", {"a": {"b": [1, {"c": 2}]}}),
    "comments": ("# a\na: 1 # b\n# c\n", {"a": 1}),
    "key on of a workflow": ("on:\n  push: {}\noff: 1\n", {"on": {"push": {}}, "off": 1}),
    "quoted keys": ("'1': a\n'': b\n", {"1": "a", "": "b"}),
    "alias": ("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}),
    "alias of a word": ("a: &x y\nb: *x\n*x : 2\n", {"a": "y", "b": "y", "y": 2}),
    "anchor on a key": ("&x a: 1\nb: *x\n", {"a": 1, "b": "a"}),
    "merge": ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    "merge last": ("a: &x {b: 1}\nd: {b: 2, <<: *x}\n", {"a": {"b": 1}, "d": {"b": 2}}),
    "merge of several": (
        "[&a {x: 1}, &b {x: 2, y: 2}, {<<: [*a, *b]}]",
        [{"x": 1}, {"x": 2, "y": 2}, {"x": 1, "y": 2}],
    ),
    "quoted merge key": ("{'<<': 1}", {"<<": 1}),
    "one document with marks": ("---\na: 1\n...\n", {"a": 1}),
    "byte order mark": ("\ufeffa: 1\n", {"a": 1}),
    "CRLF": ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    "tab in quotes": ("a: 'x\ty'\nb: |\n  x\ty\n", {"a": "x\ty", "b": "x\ty\n"}),
    "tab in a comment": ("a: 1 #\tx\n", {"a": 1}),
    "beyond ASCII": ("a: …\nü: 😀\n", {"a": "…", "ü": "😀"}),
    "root list": ("- 1\n- a\n", [1, "a"]),
    "root word": ("a\n", "a"),
    "deep": ("[" * 100 + "]" * 100, None),
}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("name", READ)
def test_read(name: str) -> None:
    text, value = READ[name]
    root = loads(text.encode(), "m.yaml").root
    assert value is None or plain(root) == value
    assert value is None or repr(plain(root)) == repr(value)  # also tells 1 from True, and the order of keys


REFUSED: Final = {
    "duplicate key": ("yaml-duplicate-key", "a: 1\n§a: 2\n"),
    "duplicate key below": ("yaml-duplicate-key", "a:\n- {b: 1, §b: 1}\n"),
    "duplicate key three times": ("yaml-duplicate-key", "a: 1\n§a: 2\n§a: 3\n"),
    "duplicate quoted key": ("yaml-duplicate-key", "a: 1\n§'a': 2\n"),
    "duplicate merge": ("yaml-duplicate-key", "a: &x {b: 1}\nc: {<<: *x, §<<: *x}\n"),
    "boolean words": ("yaml-word", "[§off, §on, §yes, §No, §OFF]"),
    "octal": ("yaml-number", "[§010, §0o17, §00, §0b11, §08]"),
    "base 60": ("yaml-number", "[§1:30, §12:30:45, §190:20:30.15]"),
    "odd underscores": ("yaml-number", "[§1_, §1__0]"),
    "not finite": ("yaml-number", "[§.inf, §-.INF, §.nan]"),
    "many digits": ("yaml-number", "[§1234567890123456789]"),
    "number as a key": ("yaml-key", "§1: a\n§1.5: b\n"),
    "boolean as a key": ("yaml-key", "§true: a\n"),
    "null as a key": ("yaml-key", "§~: a\n"),
    "empty key": ("yaml-key", "a: 1\n?§\n: b\n"),
    "octal as a key": ("yaml-number", "§010: a\n"),
    "list as a key": ("yaml-key", "? §[a]\n: b\n"),
    "alias of a list as a key": ("yaml-key", "a: &x [1]\n§*x : 2\n"),
    "tag": ("yaml-tag", "[§!x 1, §!!set {a}, §!!python/name:os.system ~]"),
    "tag against the value": ("yaml-tag", "[§!!int a]"),
    "unknown alias": ("yaml-alias", "a: §*x\n"),
    "alias within its own": ("yaml-alias", "a: &x [§*x]\n"),
    "alias within its own, deeper": ("yaml-alias", "a: &x {b: [{c: §*x}]}\n"),
    "merge of a word": ("yaml-merge", "a: {<<: §b}\n"),
    "two documents": ("yaml-documents", "a: 1\n§---\nb: 2\n"),
    "too deep": ("yaml-depth", "[" * 100 + "§[" + "]" * 101),
    "too deep through aliases": (
        "yaml-depth",
        "- &a " + "[" * 60 + "]" * 60 + "\n- " + "[" * 60 + "§*a" + "]" * 60 + "\n",
    ),
    "alias bomb": (
        "yaml-alias-bomb",
        "- &a0 [1]\n" + "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 7)),
    ),
    "tab as indentation": ("yaml-tab", "a:\n§\tb: 1\n"),
    "tab in a word": ("yaml-tab", "a: x§\ty\n"),
    "tab between tokens": ("yaml-tab", "a:§\t1\n"),
    "tab after a word with #": ("yaml-tab", "a: b#c§\t\n"),
    "tab before a comment": ("yaml-tab", "a: 1§\t# b\n"),
    "tab after lines of other ends": ("yaml-tab", "a: 1\r\nb: 2\rc:§\t3\n"),
    "tab after a value": ("yaml-tab", "a: 1§\t\n"),
    "open bracket": ("yaml-syntax", "a: [1,\n§"),
    "open quote": ("yaml-syntax", "a: '1\n§"),
    "indentation": ("yaml-syntax", "a: 1\n b§: 2\n"),
    "conflict marker": ("yaml-syntax", "a: 1\n<<<<<<< HEAD\n§b: 2\n"),
    "control character": ("yaml-encoding", "a: §\x07\n"),
    "empty": ("yaml-empty", "§"),
    "blank": ("yaml-empty", "§\n  \n"),
    "comments alone": ("yaml-empty", "§# a\n"),
    "document mark alone": ("", "---\n"),
}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    rule, text = REFUSED[name]
    if not rule:
        assert loads(text.encode(), "m.yaml").root is None
        return
    with pytest.raises(RefusedError) as refused:
        loads(text.replace("§", "").encode(), "m.yaml")
    told = [(f"{f.span.line}:{f.span.column}", f.rule) for f in refused.value.findings if f.span is not None]
    assert name == "alias bomb" or told == [(place, rule) for place in places(text)]
    assert {finding.rule for finding in refused.value.findings} == {rule}
    assert all(finding.fix for finding in refused.value.findings)


def outcome(data: bytes, name: str = "m.yaml", *, noted: bool = True, unclear: bool = False) -> object:
    """Everything a caller can see of a file: values with their places, or the place and rule of each fault.

    ``unclear``: the values of a file with faults, too.
    """
    try:
        file = loads(data, name, noted=noted)
    except UnclearError as refused:
        told: list[object] = [(finding.span, finding.rule) for finding in refused.findings]
        return told + (list(seen(refused.document, refused.document.root)) if unclear and refused.document else [])
    return list(seen(file, file.root))


def hold_what_is_found_again(data: bytes) -> None:
    """Places that were not noted are the noted ones: looked up one by one, in one pass, and as it is."""
    noted = outcome(data, unclear=True)
    assert outcome(data, noted=False, unclear=True) == noted
    for few, pieces, step in ((0, (), 10), (10**9, (10**9,), 1), (10**9, (1, 5), 2), (10**9, (7, 20), 3)):
        with patch.multiple("matrix.config.places", _FEW=few, _PIECES=pieces, _STEP=step):
            assert outcome(data, noted=False, unclear=True) == noted


def seen(file: Document, value: Any) -> Iterator[object]:
    if isinstance(value, Map):
        yield file.span(value.mark)
        for key, member in value.items():
            yield key, file.of_key(value, key), file.of_value(value, key), file.written(value.marks[key][1])
            yield from seen(file, member)
    elif isinstance(value, Seq):
        yield file.span(value.mark)
        for index, member in enumerate(value):
            yield file.of_value(value, index), file.written(value.marks[index])
            yield from seen(file, member)
    else:
        yield type(value), value


def over_both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    pytest.importorskip("yaml._yaml", reason="PyYAML without libyaml")
    first = outcome(data)
    with monkeypatch.context() as patches:
        patches.setattr(events, "parser", events.pure_parser)
        return first, outcome(data)


@pytest.mark.parametrize("name", [*READ, *REFUSED])
def test_both_parsers_agree(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text = READ[name][0] if name in READ else REFUSED[name][1].replace("§", "")
    ours, theirs = over_both(text.encode(), monkeypatch)
    assert ours == theirs
    assert ours
    hold_what_is_found_again(text.encode())


def test_both_parsers_agree_on_real_files(monkeypatch: pytest.MonkeyPatch, shared: Path, root: Path) -> None:
    paths = [shared / "data/masters/amd-master.yaml", shared / "parity/newest/inputs/amd-master.yaml.gz"]
    paths += [*(shared / "cases").glob("*/*.yaml"), *(root / "configs").glob("**/*.yaml")]
    assert len(paths) > 50
    for path in paths:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        ours, theirs = over_both(data, monkeypatch)
        assert ours == theirs, path.name
        assert outcome(data, noted=False) == ours, path.name


@given(st.text(alphabet="ab01 \n:-,[]{}'\"#&*!|>?%\t.~<é", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No input is a crash, and no refusal is silent."""
    result = outcome(text.encode())
    assert isinstance(result, list)
    assert result
    hold_what_is_found_again(text.encode())


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    result = outcome(data)
    assert isinstance(result, list)
    assert result


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(alphabet="abé '\":#\n-0on", max_size=6),
        lambda below: (
            st.lists(below, max_size=3) | st.dictionaries(st.text(alphabet="abé -0", max_size=4), below, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_what_yaml_writes_is_read_back(value: Any) -> None:
    import yaml

    text = yaml.safe_dump(value, allow_unicode=True)
    assert plain(loads(text.encode(), "m.yaml").root) == value
    hold_what_is_found_again(text.encode())


# -- places ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "with a byte order mark"])
def test_places_and_spelling(mark: str) -> None:
    file = loads(f"{mark}é: {{b: '1', c: [1_0, ü]}}\nd: |\n  x\n".encode(), "m.yaml")
    inner = file.root["é"]
    assert str(file.span()) == "m.yaml"
    assert str(file.of_key(file.root, "é")) == "m.yaml:1:1"
    assert str(file.of_value(file.root, "é")) == "m.yaml:1:4"
    assert str(file.of_key(inner, "c")) == "m.yaml:1:13"
    assert str(file.of_value(inner["c"], 1)) == "m.yaml:1:22"
    assert str(file.of_key(inner, "nothing")) == "m.yaml:1:4"
    assert file.written(inner.marks["b"][1]) == "'1'"
    assert file.written(inner["c"].marks[0]) == "1_0"
    assert file.written(inner["c"].marks[1]) == "ü"
    assert file.written(file.root.marks["d"][1]) == "|\n  x"
    assert file.written(inner.mark) == ""


@pytest.mark.usefixtures("parser")
def test_a_merged_value_stands_where_it_was_written() -> None:
    file = loads(b"a: &x {b: 1}\nc: {<<: *x, d: 2}\n", "m.yaml")
    merged = file.root["c"]
    assert list(merged) == ["b", "d"]
    assert str(file.of_value(merged, "b")) == "m.yaml:1:11"
    assert str(file.of_value(merged, "d")) == "m.yaml:2:16"
    assert "b" in file.root["a"].marks


def test_written_floats_keep_their_digits() -> None:
    value = loads(b"0.80", "m.yaml").root
    assert isinstance(value, WrittenFloat)
    assert (value, value.text, Decimal(value.text)) == (0.8, "0.80", Decimal("0.80"))
    assert copy.deepcopy(value).text == "0.80"
    assert type(plain(value)) is float


def test_integer_keys_where_they_are_wanted() -> None:
    assert loads(b"{1: 2.5, a: 3}", "m.yaml", integer_keys=True).root == {1: 2.5, "a": 3}
    with pytest.raises(RefusedError, match="yaml-duplicate-key"):
        loads(b"{1: a, 1: b}", "m.yaml", integer_keys=True)


@pytest.mark.usefixtures("parser")
def test_all_faults_of_one_pass() -> None:
    text = "a: off\nb: 010\na: 1\nc: {1: x}\nd: [\n"
    with pytest.raises(RefusedError) as refused:
        loads(text.encode(), "m.yaml")
    rules = [finding.rule for finding in refused.value.findings]
    assert rules == ["yaml-word", "yaml-number", "yaml-duplicate-key", "yaml-key", "yaml-syntax"]


# -- bytes -------------------------------------------------------------------------------------------------------------


BYTES: Final = {
    "latin-1": (b"a: 1\nb: \xe9\n", "2:4", "the byte 0xe9 is not UTF-8"),
    "latin-1 after other letters": ("é: ".encode() + b"\xe9\n", "1:4", "the byte 0xe9 is not UTF-8"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "1:1", "binary"),
    "a compressed file": (gzip.compress(b"a: 1\n", mtime=0), "1:2", "binary"),
    "half a character": ("é".encode()[:1], "1:1", "the byte 0xc3 is not UTF-8"),
    "NUL": (b"a: \0\n", "1:4", "U+0000"),
    "control": ("é: \x9b\n".encode(), "1:4", "U+009B"),
    "control in a later line": (b"a: 1\nb: \x1b[31m\n", "2:4", "U+001B"),
    "surrogate": (b"a: \xed\xa0\x80\n", "1:4", "the byte 0xed is not UTF-8"),
}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_text(name: str) -> None:
    data, place, words = BYTES[name]
    with pytest.raises(RefusedError) as refused:
        loads(data, "m.yaml")
    (finding,) = refused.value.findings
    assert (finding.rule, str(finding.span)) == ("yaml-encoding", f"m.yaml:{place}")
    assert words in finding.message


def test_many_faults_are_all_kept() -> None:
    with pytest.raises(RefusedError) as refused:
        loads(b"k: 1\n" * 100_000, "m.yaml")
    assert len(refused.value.findings) == 99_999


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_bytes(b"a: 1\n")
    file = load(path)
    assert (file.root, file.name, file.data) == ({"a": 1}, str(path), b"a: 1\n")


NO_FILES: Final[dict[str, tuple[str, Callable[[Path], object]]]] = {
    "missing": ("file-missing", lambda _: None),
    "directory": ("file-directory", lambda path: path.mkdir()),
    "too large": ("file-too-large", lambda path: path.write_bytes(b" " * (MAX_BYTES + 1))),
    "loop of links": ("file-unreadable", lambda path: path.symlink_to(path)),
}


@pytest.mark.parametrize("name", NO_FILES)
def test_no_file_to_read(tmp_path: Path, name: str) -> None:
    rule, make = NO_FILES[name]
    path = tmp_path / "m.yaml"
    make(path)
    with pytest.raises(RefusedError) as refused:
        read_bytes(path, what="master config")
    (finding,) = refused.value.findings
    assert (finding.rule, str(finding.span)) == (rule, str(path))
    assert "master config" in finding.message
    assert finding.fix


def test_a_missing_file_names_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "amd-master.yaml").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"")
    with pytest.raises(RefusedError, match=r"did you mean amd-master\.yaml\?"):
        read_bytes(tmp_path / "amd-mastr.yaml")
    with pytest.raises(RefusedError, match=r"folder .* does not exist"):
        read_bytes(tmp_path / "no" / "amd-master.yaml")
    with pytest.raises(RefusedError, match="check the path"):
        read_bytes(tmp_path / "x.json")


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_bytes(b"#" * 100)
    assert len(read_bytes(path, limit=100)) == 100
    with pytest.raises(RefusedError, match="file-too-large"):
        read_bytes(path, limit=99)


def test_equal_bytes_are_parsed_once_where_two_revisions_are_read() -> None:
    text = b"a: {b: [1]}\n"
    with parsed_once():
        one, other = loads(text, "one.yaml"), loads(text, "other.yaml")
        with parsed_once():
            third = loads(text, "third.yaml")
        assert one.root is other.root is third.root
        assert str(other.of_value(other.root["a"], "b")) == "other.yaml:1:8"
        assert loads(b"1: 2\n", "keys.yaml", integer_keys=True).root == {1: 2}
        for name in ("one.yaml", "other.yaml"):
            with pytest.raises(RefusedError) as refused:
                loads(b"1: 2\n", name)
            assert refused.value.findings[0].span is not None
            assert refused.value.findings[0].span.file == name
    assert loads(text, "one.yaml").root is not one.root
