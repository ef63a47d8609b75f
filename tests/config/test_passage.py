"""Where a value ends, in each way that YAML has of writing one."""

from __future__ import annotations

from typing import Final

import pytest

from matrix.config.passage import passage_at
from matrix.config.source import loads

TEXT: Final = """\
# über
plain: a b  # why
quoted: "x, y"   # why
flow: [1, [2, 3], {a: 4}]  # why
block:
  - 1
  - two: 2
    # inside
    three: [3,
      4]

  # below
anchor: &it [1, 2]
alias: *it
literal: |
  one
  two
last: 7
"""
WRITTEN: Final = {
    "plain": "a b",
    "quoted": '"x, y"',
    "flow": "[1, [2, 3], {a: 4}]",
    "block": "- 1\n  - two: 2\n    # inside\n    three: [3,\n      4]",
    "anchor": "&it [1, 2]",
    "alias": "*it",
    "literal": "|\n  one\n  two",
    "last": "7",
}


@pytest.mark.parametrize("key", WRITTEN)
@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf"])
def test_a_passage_is_the_text_of_the_value_alone(key: str, head: bytes) -> None:
    document = loads(head + TEXT.encode(), "x.yaml")
    passage = passage_at(document, document.root.marks[key][1])
    assert passage.text == WRITTEN[key]
    assert passage.span == document.of_value(document.root, key)
    assert passage.last_line == passage.line + WRITTEN[key].count("\n")


def test_the_lines_around_a_passage() -> None:
    document = loads(TEXT.encode(), "x.yaml")
    members = document.root["block"]
    passage = passage_at(document, members.marks[1])
    assert passage.before == "  - "
    assert passage.lines == "  - two: 2\n    # inside\n    three: [3,\n      4]\n"
    assert (passage.line, passage.last_line) == (7, 10)
    assert str(passage.end_span) == "x.yaml:10:9"
