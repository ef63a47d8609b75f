"""What people read: the whole text of every refusal of the tables, held by a file.

After a change of words: ``python -m tests.config.test_wording`` writes the file again, and the diff is the review.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from matrix.config.schema import Kind
from tests.config import test_fleet_rules, test_rules, test_schema
from tests.config.support import wording

FILE: Final = Path(__file__).with_name("wording.txt")
TABLES: Final = {
    "schema": test_schema.REFUSED,
    "other file": test_schema.OTHER_FILES,
    "rules": test_rules.REFUSED,
    "runners": test_fleet_rules.REFUSED,
}
KINDS: Final = {title: Kind.RUNNERS if title == "runners" else Kind.MASTER for title in TABLES}


def test_the_words_are_those_that_were_reviewed() -> None:
    assert wording(TABLES, KINDS).split("\n## ") == FILE.read_text(encoding="utf-8").split("\n## ")


def test_each_finding_is_one_line_that_says_what_to_do() -> None:
    for line in wording(TABLES, KINDS).splitlines():
        assert not line or line.startswith("## ") or (line.startswith("m.yaml:") and " fix: " in line)
        assert line.isprintable()


if __name__ == "__main__":
    FILE.write_text(wording(TABLES, KINDS), encoding="utf-8")
