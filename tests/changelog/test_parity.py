"""Real changes of InferenceX's log: our verdict is its merge gate's, on main and on the pull request."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from matrix.changelog.context import Context, Stage
from matrix.changelog.rules import Change, check
from matrix.config.source import plain
from matrix.findings import errors_of

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.changelog.rules import Verdict

WHAT_BREAKS = {
    "entries were deleted": {"changelog-deleted"},
    "changed; existing entries are immutable": {"changelog-inserted"},
    "must be separated from history by one empty line": {"changelog-separator"},
}
"""Each refusal of the corpus and the rule it is here. The peer sees an entry in the middle as a change of what follows;
no difference in the verdict, a better name for it."""


@pytest.fixture(scope="module")
def corpus(shared: Path) -> Path:
    return shared / "parity" / "changelog"


def changes(corpus: Path, index: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((corpus / index).read_text(encoding="utf-8"))
    return listed


def content(corpus: Path, name: str) -> bytes:
    return gzip.decompress((corpus / "bytes" / f"{name}.yaml.gz").read_bytes())


@pytest.mark.parametrize("index", ["index.aug.json", "index.newest.json"])
@pytest.mark.parametrize("which", ["byte_rules_main", "byte_rules_pr"])
def test_byte_verdicts(corpus: Path, index: str, which: str) -> None:
    listed = changes(corpus, index)
    assert len(listed) == 20
    for change in listed:
        merging = which == "byte_rules_main"
        context = Context(stage=Stage.MERGE) if merging else Context(number=change["pr_number"])
        findings, verdict = check(content(corpus, change["base"]), content(corpus, change["head"]), context)
        assert outcome(verdict) == wanted(change[which]), change["commit"]
        if not change[which]["ok"]:
            (rules,) = [rules for text, rules in WHAT_BREAKS.items() if text in change[which]["error"]]
            assert rules <= {finding.rule for finding in errors_of(findings)}, change["commit"]


def wanted(peer: dict[str, Any]) -> Any:
    if not peer["ok"]:
        return None
    value = peer["value"]
    return value["additions"], value["corrections"], value["entries"]


def outcome(verdict: Verdict) -> Any:
    if verdict.change is Change.REFUSED:
        return None
    return len(verdict.additions), len(verdict.corrections), [plain(entry.node) for entry in verdict.additions]
