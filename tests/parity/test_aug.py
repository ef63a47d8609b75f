"""Real revisions of InferenceX's files, newest last, against what its generator of August 2026 emitted for them.

Rows are compared as sets, in every field that the generator knew then. Evals are compared where both select alike:
fixed-length rows outside the families of one recipe's variants (difference 7).
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.parity.model import EVAL_FIELDS, fields
from tests.parity.replay import Session, our_flags, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.model import Row

COMMITS: Final = 3
ALIKE: Final = ("no-evals", "single-node", "multi-node", "max-tp-4", "step-4", "fixed", "agentic", "fp4-8k1k")
"""Runs that show every row; the others exercise the differences 1 and 6, which the newer recordings pin."""

NEWER: Final = frozenset(("node-count", "eval-framework", "eval-suite"))
"""Fields that came later."""


@pytest.fixture(scope="module")
def index(shared: Path) -> list[dict[str, Any]]:
    commits = json.loads((shared / "parity" / "aug" / "index.json").read_text(encoding="utf-8"))
    return [commit for commit in commits if any(run.get("ok") for run in commit["runs"].values())][-COMMITS:]


@pytest.mark.parametrize("number", range(-COMMITS, 0))
def test_a_revision_expands_to_the_same_rows(
    index: list[dict[str, Any]], number: int, shared: Path, tmp_path: Path
) -> None:
    commit, corpus = index[number], shared / "parity" / "aug"
    for name, digest in commit["inputs"].items():
        data = gzip.decompress((corpus / "inputs" / f"{digest}.yaml.gz").read_bytes())
        (tmp_path / f"{name}.yaml").write_bytes(data)
    masters = [tmp_path / f"{name}.yaml" for name in ("amd-master", "nvidia-master")]
    session = Session(masters, tmp_path / "runners.yaml")
    compared = 0
    for variant, run in commit["runs"].items():
        if variant not in (*ALIKE, "full") or not run["ok"]:
            continue
        theirs = recorded(corpus / "outputs" / f"{run['output']}.json.gz")
        ours = session.rows(our_flags(run["argv"][1:]))
        if variant == "full":
            assert evaluated(ours) == evaluated(theirs), commit["commit"]
        else:
            assert expanded(ours) == expanded(theirs), (commit["commit"], variant)
        compared += len(theirs)
    assert compared > 1000


def expanded(rows: list[Row]) -> set[str]:
    return {fields(with_settings(row), NEWER | EVAL_FIELDS) for row in rows}


def evaluated(rows: list[Row]) -> set[str]:
    """Fixed-length rows with their marks; without them where several variants of one recipe are a family of ours."""
    fixed = [with_settings(row) for row in rows if "isl" in row]
    variants: dict[str, set[str]] = {}
    for row in fixed:
        variants.setdefault(recipe_family(row), set()).add(fields(row, NEWER | EVAL_FIELDS | {"conc"}))
    return {
        fields(row, NEWER | (EVAL_FIELDS if len(variants[recipe_family(row)]) > 1 else frozenset())) for row in fixed
    }


def recipe_family(row: Row) -> str:
    text = fields(row, NEWER | EVAL_FIELDS | {"conc", "exp-name"})
    return re.sub(r"(CONFIG_FILE=[^\":]+):[^\"]+", r"\1", text)


def with_settings(row: Row) -> Row:
    """Theirs lists no settings as an empty list or not at all, as the file did."""
    roles = {role: row[role] for role in ("prefill", "decode") if role in row}
    return row | {
        role: {**worker, "additional-settings": worker.get("additional-settings") or []}
        for role, worker in roles.items()
    }
