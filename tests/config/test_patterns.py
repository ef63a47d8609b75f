"""A pattern that is compiled later is the same pattern, and PyYAML does not notice."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from matrix.config.patterns import patterns_postponed
from tests.cli.support import program

TEXT: Final = """\
words: [yes, off, ~, null, text, '010']
numbers: [1, -2, 010, 0x1f, 1_000, 1.5, .inf, 1e3, 190:20:30]
times: [2001-12-14, 2001-12-14t21:59:43.10-05:00, 2001-12-14 21:59:43]
base: &base {a: 1}
merged: {<<: *base, b: !!binary aGVsbG8=}
"""
LOADS: Final = f"""\
import sys, yaml
text = {TEXT!r}
for loader in (yaml.SafeLoader, yaml.CSafeLoader):
    value = yaml.load(text, loader)
    print(value)
    print(yaml.safe_dump(value), yaml.dump(value, Dumper=yaml.CSafeDumper))
for bad in ("a: \\x07", b"a: \\xff"):
    try:
        yaml.load(bad, yaml.SafeLoader)
    except yaml.YAMLError as error:
        print(error)
"""


def test_pyyaml_reads_and_writes_the_same() -> None:
    plain = program(LOADS)
    assert "datetime.datetime(2001, 12, 14" in plain
    assert "special characters are not allowed" in plain
    assert program("import matrix.config.events", LOADS) == plain


def test_reading_compiles_no_pattern_of_pyyaml() -> None:
    counted = """
import re
seen = []
real = re._compiler.compile
re._compiler.compile = lambda pattern, flags=0: seen.append(pattern) or real(pattern, flags)
from matrix.config.source import loads
loads(b"a: [1, 2.5, x, 'y']", "x.yaml")
from yaml.reader import Reader
print(len(seen))
Reader.NON_PRINTABLE.search("x")
print(len(seen))
"""
    assert program(counted).split() == ["0", "1"]


@pytest.mark.parametrize("error", [None, ImportError])
def test_compiling_is_as_always_afterwards(error: type[Exception] | None) -> None:
    usual = re.compile
    if error is None:
        with patterns_postponed():
            assert re.compile is not usual
    else:
        with pytest.raises(error), patterns_postponed():
            raise error
    assert re.compile is usual


def test_it_has_what_a_pattern_has() -> None:
    with patterns_postponed():
        later: Any = re.compile("(?P<a>x)y*", re.IGNORECASE)
        wrong: Any = re.compile("(")
        assert re.compile("a+").match("aab").end() == 2  # type: ignore[union-attr]
    now = re.compile("(?P<a>x)y*", re.IGNORECASE)
    assert later.match("XYyz").span() == (0, 3)
    assert (later.pattern, later.flags, later.groupindex, later.sub("-", "axyb")) == (
        now.pattern, now.flags, now.groupindex, "a-b"
    )  # fmt: skip
    with pytest.raises(AttributeError, match="nothing"):
        later.nothing  # noqa: B018
    with pytest.raises(re.error):
        wrong.match("")
