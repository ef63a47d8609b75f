"""The schema of a row holds for what `expand` prints, and for InferenceX's rows with our fields added."""

from __future__ import annotations

import copy
import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

from matrix.config.schema import Kind, load_schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VALIDATOR: Final = Draft202012Validator(load_schema(Kind.ROW))
OURS: Final = {"id": "a--8k1k--tp8--c1", "name": "a", "config-key": "a", "digest": "0" * 64}
NOT_OURS: Final = ("tp-string-lax", "tp-float-lax", "dpattn-string")  # read by the peer's generator, refused by us


def faults(row: dict[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(row)]


def expand(root: Path, *arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "matrix", "expand", "--format", "json", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize("mode", [(), ("--evals-only",), ("--all-evals",), ("--smoke",), ("--trim-conc",)], ids=str)
def test_the_rows_of_the_shipped_configuration(root: Path, mode: tuple[str, ...]) -> None:
    rows = expand(root, *mode)
    assert rows
    assert [fault for row in rows for fault in faults(row)] == []


def test_rows_of_the_peer(shared: Path) -> None:
    seen = 0
    with gzip.open(shared / "parity/mini/cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            for row in case["newest"].get("rows") or ():
                unmarked = row.get("eval-only") and "eval-framework" not in row  # a survivor of its trim loses these
                if case["name"] in NOT_OURS or row["conc"] == [] or unmarked:
                    continue
                mine = row | OURS | ({} if row.get("eval-only") else {"recipe-fingerprint": "0" * 64})
                assert faults(mine) == [], case["name"]
                seen += 1
    assert seen > 100


SINGLE: Final = OURS | {
    "image": "i",
    "model": "m",
    "model-prefix": "p",
    "precision": "fp8",
    "framework": "f",
    "runner": "r",
    "isl": 8192,
    "osl": 1024,
    "tp": 8,
    "pp": 1,
    "dcp-size": 1,
    "pcp-size": 1,
    "conc": 4,
    "max-model-len": 9472,
    "ep": 1,
    "dp-attn": False,
    "spec-decoding": "none",
    "exp-name": "p_8k1k",
    "disagg": False,
    "run-eval": False,
    "recipe-fingerprint": "0" * 64,
}
WRONG: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "unknown field": lambda row: row.update(x=1),
    "no digest": lambda row: row.pop("digest"),
    "short digest": lambda row: row.update(digest="0" * 63),
    "blank in an id": lambda row: row.update(id="a b"),
    "a list of concurrencies on one node": lambda row: row.update(conc=[4]),
    "no concurrency": lambda row: row.update(conc=0),
    "quoted size": lambda row: row.update(tp="8"),
    "node count on one node": lambda row: row.update({"node-count": 1}),
    "a role without the other": lambda row: row.update(prefill={}),
    "a budget without agents": lambda row: row.update({"total-cpu-dram-gb": 0}),
    "no length": lambda row: row.pop("isl"),
    "agents with a length": lambda row: row.update({"scenario-type": "agentic-coding"}),
    "disagg without transfer": lambda row: row.update(disagg=True),
    "throughput without fingerprint": lambda row: row.pop("recipe-fingerprint"),
    "accuracy with a fingerprint": lambda row: row.update({"eval-only": True, "eval-framework": "f", "eval-suite": ""}),
    "accuracy of nothing": lambda row: (row.update({"eval-only": True}), row.pop("recipe-fingerprint")),
}


def test_a_plain_row() -> None:
    assert faults(SINGLE) == []


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows(name: str) -> None:
    row = copy.deepcopy(SINGLE)
    WRONG[name](row)
    assert faults(row)
