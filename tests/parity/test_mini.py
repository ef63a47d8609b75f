"""173 tiny configs, one rule each: what InferenceX's newest generator made of them, and what we make of them."""

from __future__ import annotations

import gzip
import json
import shutil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from tests.parity.model import EVAL_FIELDS
from tests.parity.replay import EXTRA, expand_cli, our_flags

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.parity.model import Row

EVALUATED: Final = {"run-eval": True, "eval-framework": "lm-eval", "eval-suite": ""}
VENDOR: Final = {"run-eval": True, "eval-framework": "kimi-vendor", "eval-suite": "kimi_tool_call_schema_full"}
SINGLE: Final[Row] = {
    "image": "img:1", "model": "org/M", "model-prefix": "dsr1", "precision": "fp8", "framework": "vllm",
    "runner": "h200", "isl": 8192, "osl": 1024, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "conc": 1,
    "max-model-len": 9472, "ep": 1, "dp-attn": False, "spec-decoding": "none", "exp-name": "dsr1_8k1k",
    "disagg": False, "run-eval": False,
}  # fmt: skip
WORKER: Final = {"num-worker": 1, "tp": 8, "ep": 1, "dp-attn": False, "pp": 1, "dcp-size": 1, "pcp-size": 1}
AGGREGATED: Final[Row] = {
    "image": "img:1", "model": "org/M", "model-prefix": "dsr1", "precision": "fp8", "framework": "vllm",
    "runner": "cluster:h200-a", "isl": 8192, "osl": 1024, "spec-decoding": "none", "prefill": WORKER,
    "decode": WORKER | {"num-worker": 0}, "conc": [8, 32], "max-model-len": 9472, "exp-name": "dsr1_8k1k",
    "disagg": False, "run-eval": True, "node-count": 1, "eval-framework": "lm-eval", "eval-suite": "", "eval-conc": 32,
}  # fmt: skip


class Instead(NamedTuple):
    """What we give where we differ on purpose. ``numbers``: those of docs/differences.md."""

    numbers: tuple[int, ...]
    rows: Callable[[list[Row]], list[Row]] = lambda _: []
    """Ours, made of theirs."""
    status: int = 0
    told: str = ""
    """What stderr says."""


def refused(number: int, told: str) -> Instead:
    return Instead((number,), status=1, told=told)


def nothing(number: int, told: str) -> Instead:
    return Instead((number,), status=3, told=f"no point is selected; nothing passes {told}")


def one_by_one(concs: dict[int, bool], row: Row) -> list[Row]:
    return [
        {**row, "conc": conc, **(EVALUATED if evaluated else {"run-eval": False})} for conc, evaluated in concs.items()
    ]


TP4: Final[Row] = {"tp": 4, "exp-name": "dsr1_tp4_conc8_kvnone", "spec-decoding": "none", "conc": 8}
P4: Final[Row] = {"prefill": WORKER | {"tp": 4}, "exp-name": "dsr1_p1x4_d1x8_conc8", "conc": [8], "eval-conc": 8}
DRAM: Final[Row] = {
    "kv-offloading": "dram",
    "total-cpu-dram-gb": 1234,
    "exp-name": "kimik3_tp8_conc8_kvdram-b",
    "kv-offload-backend": {"name": "b"},
}

INSTEAD: Final[dict[str, Instead]] = {
    "minmax-range": Instead((1,), lambda _: one_by_one({8: False, 16: False, 32: True}, SINGLE)),
    "max-below-range": nothing(1, "--max-conc"),
    "max-below-list": nothing(1, "--max-conc"),
    "mn-max-below": nothing(1, "--max-conc"),
    "max-ep": Instead((1,), lambda theirs: theirs[1:]),
    "model-prefix-filter-is-key-prefix": nothing(2, "--model-prefix"),
    "tp-string-lax": refused(3, "c.yaml:14:13: wrong-type: "),
    "tp-float-lax": refused(3, "c.yaml:14:13: wrong-type: "),
    "dpattn-string": refused(3, "c.yaml:15:18: wrong-type: "),
    "list-order-kept": Instead(
        (5,), lambda theirs: theirs[:3], told="c.yaml:19:11: warning: point-duplicate: conc-list holds 8 more than once"
    ),
    "ev-ag": Instead((6,), lambda theirs: [*theirs[:4], theirs[4] | EVALUATED, *theirs[5:]]),
    "ev-ag--evals-only": Instead((6,), lambda theirs: [theirs[0], theirs[0] | TP4, theirs[1]]),
    "ev-ag--smoke": Instead((6,), lambda theirs: [*theirs[:4], theirs[3] | TP4, theirs[4]]),
    "ev-agmn": Instead((6,), lambda theirs: [*theirs[:4], theirs[4] | EVALUATED | {"eval-conc": 8}]),
    "ev-agmn--evals-only": Instead((6,), lambda theirs: [theirs[0], theirs[0] | P4]),
    "ev-agmn--smoke": Instead((6,), lambda theirs: [*theirs, theirs[2] | P4]),
    "ev-ag--trim-conc": Instead((6, 17), lambda theirs: [row | EVALUATED for row in theirs]),
    "mn-agg-old-shape": Instead((8,), lambda _: [AGGREGATED]),
    "ev-collide-offload": Instead((13,), lambda theirs: [theirs[0], theirs[1] | VENDOR, theirs[2]]),
    "ev-collide-offload--evals-only": Instead((13,), lambda theirs: [theirs[0], theirs[0] | DRAM, theirs[1]]),
    "ev-collide-offload--all-evals": Instead((13,), lambda theirs: [*theirs, *(row | DRAM for row in theirs)]),
    "half-range-plus-list": refused(14, "c.yaml:16:9: conc-both-forms: "),
    "empty-list-plus-range-full": refused(14, "c.yaml:15:20: empty-value: "),
    "empty-list-plus-range-test": refused(14, "c.yaml:15:20: empty-value: "),
    "empty-list-plus-range-test-mn": refused(14, "c.yaml:24:20: empty-value: "),
    "runner-node-filter-test-label": Instead((14,), lambda theirs: theirs[1:]),
    "test-glob": Instead((14,), lambda theirs: theirs[::-1]),
    "test-exp-names-ambig": Instead((14,), lambda _: one_by_one({1: False, 2: False}, SINGLE)),
    "min-nonpositive": Instead((15,), status=2, told="'--min-conc': 0 is not in the range x>=1"),
    "max-nonpositive": Instead((15,), status=2, told="'--max-conc': 0 is not in the range x>=1"),
    "mn-recipe-bundle-zip": Instead((16,), lambda theirs: [theirs[0] | {"node-count": 3}]),
    "ev-sn--trim-conc": Instead((17,), lambda theirs: [row | EVALUATED for row in theirs]),
    "ev-sn--evals-only--trim-conc": Instead((17,), lambda theirs: [row | EVALUATED for row in theirs]),
    "ev-mn--trim-conc": Instead((17,), lambda theirs: [theirs[0] | EVALUATED, *theirs[1:]]),
    "ev-kimi--smoke": Instead((17,), lambda theirs: [theirs[0], *theirs[2:]]),
}

REFUSED: Final[dict[str, str]] = {
    "list-and-range": "15:9: conc-both-forms",
    "no-conc": "14:9: conc-missing",
    "half-range": "15:9: conc-half-range",
    "zero-start": "15:21: out-of-range",
    "start-gt-end": "15:21: conc-range-order",
    "list-zero": "16:11: out-of-range",
    "empty-list": "15:20: empty-value",
    "dcp-not-div": "15:19: dcp-size-divides",
    "pp-string": "15:13: wrong-type",
    "conc-string-lax": "16:11: wrong-type",
    "bad-spec": "15:24: unknown-value",
    "unknown-field": "17:9: unknown-key",
    "underscore-name": "15:9: unknown-key",
    "multinode-missing": "1:1: missing-key",
    "multinode-string": "8:14: wrong-type",
    "no-scenarios": "9:3: scenarios-empty",
    "empty-fixed-list": "9:3: scenarios-empty",
    "sn-disagg": "9:11: disagg-single-node",
    "star-key": "1:1: config-key",
    "int-key": "1:1: yaml-key",
    "attn-dp-bad": "16:23: attn-dp-size-divides",
    "attn-dp-disagree": "15:23: attn-dp-size-dp-attn",
    "require-power-1k": "13:22: require-power-sequence",
    "ag-runner-not-cluster": "7:11: agentic-runner",
    "ag-no-kv": "12:9: kv-offloading-missing",
    "ag-kvnone-backend": "14:9: kv-offload-backend-unused",
    "ag-dram-nobackend": "14:24: kv-offload-backend-missing",
    "ag-dram-noutil": "11:7: dram-utilization-missing",
    "ag-dram-toobig": "13:9: topology-fit",
    "ag-dram-toobig-filtered": "13:9: topology-fit",
    "ag-dram-nometa": "13:9: hardware-missing",
    "ag-util-over1": "11:25: out-of-range",
    "ag-nvme": "14:24: unknown-value",
    "ag-backend-image-version": "17:20: component-version",
    "ag-both-topologies": "12:9: misplaced-key",
    "mn-disagg-noxfer": "1:1: kv-p2p-transfer-missing",
    "mn-xfer-both": "27:9: kv-p2p-transfer-declared-twice",
    "mn-router-both": "30:9: router-declared-twice",
    "router-image": "11:14: component-version",
    "sn-xfer": "17:9: misplaced-key",
    "mn-hw-one": "20:9: hardware-one-role",
    "mn-agg-nonumnodes": "14:9: missing-key",
    "mn-disagg-worker": "14:9: disagg-topology",
    "mn-both-shapes": "14:9: misplaced-key",
    "mn-only-prefill": "14:9: missing-key",
    "mn-nodes-conflict": "14:9: node-count",
    "mn-nodes-zero": "14:9: node-count",
    "mn-nodes-ambiguous": "14:9: hardware-missing",
    "mn-nodes-unknown": "14:9: hardware-missing",
    "mn-recipe-conflict": "20:13: recipe-conflict",
    "mn-ag-dram-notile": "13:9: topology-fit",
    "mn-ag-dram-span": "13:9: topology-fit",
    "mn-ag-pp-field": "24:9: misplaced-key",
}
"""Line, column and rule of what both refuse, in the master config."""

TOLD: Final[dict[str, str]] = {
    "min-gt-max": "--min-conc 9 is above --max-conc 8",
    "step-1": "'--step-size': 1 is not in the range x>=2",
    "mn-recipe-noschema": "recipes/noschema.yaml:1:1: recipe-schema: ",
    "mn-recipe-noroles": "recipes/noroles.yaml: recipe-roles: ",
    "mn-recipe-nonodes": "recipes/nonodes.yaml:3:3: recipe-nodes: ",
    "mn-recipe-disagree": "recipes/disagree.yaml:4:1: recipe-placement: ",
    "runner-type-bad": "runner-unknown: --runner-type nope: ",
    "test-missing-key": "config-key-unknown: --config-keys zz: ",
    "test-glob-nomatch": "config-key-unknown: --config-keys z*: ",
    "no-evals-and-all": "--no-evals does not go with --all-evals",
    "no-evals-and-only": "--no-evals does not go with --evals-only",
    "smoke-and-trim": "--smoke trims and evaluates by itself; it does not go with --trim-conc",
    "mn-recipe-bundle": "c.yaml:20:13: warning: recipe-selector: ",
    "mn-recipe-missing": "c.yaml:20:13: warning: recipe-missing: ",
    "srt-recipe": "c.yaml:17:21: warning: recipe-missing: ",
    "min-above-range": "nothing passes --min-conc",
    "ag-max-only-filters": "nothing passes --max-conc",
    "seq-filter": "nothing passes --seq-lens",
    "empty-fixed": "the master configs hold none",
    "ev-below16": "nothing passes --evals-only",
    "precision-filter": "warning: filter-word-unknown: --precision fp4: ",
}
"""What stderr says elsewhere; where there is nothing in these tables it says nothing."""


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Any]:
    lines = gzip.decompress((shared / "parity" / "mini" / "cases.jsonl.gz").read_bytes()).splitlines()
    return {case["name"]: case for case in map(json.loads, lines)}


@pytest.fixture
def folder(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = shared / "parity" / "mini"
    shutil.copy(source / "runners-newest.yaml", tmp_path / "runners.yaml")
    shutil.copytree(source / "recipes", tmp_path / "recipes")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_case_is_as_recorded_or_differs_by_a_number(cases: dict[str, Any], folder: Path) -> None:
    wrong = []
    for name, case in cases.items():
        (folder / "c.yaml").write_text(case["config"], encoding="utf-8")
        flags = our_flags(case["flags"])
        ours = expand_cli("--config", "c.yaml", "--runners", "runners.yaml", "--recipes", "recipes", *flags)
        status, rows, told = wanted(name, case["newest"])
        said = told in ours.err if told else not ours.err
        if ours.status != status or not said:
            wrong.append(f"{name}: status {ours.status}, {ours.err}")
        elif "Traceback" in ours.err or (rows is None and ours.out):
            wrong.append(f"{name}: {ours.out[:80]} {ours.err}")
        elif rows is not None and ours.rows != rows:
            wrong.append(f"{name}: {ours.rows}")
    assert not wrong, "\n".join(wrong)


def wanted(name: str, theirs: Any) -> tuple[int, list[Row] | None, str]:
    """Exit status, rows (None: nothing on stdout) and a text of stderr."""
    instead = INSTEAD.get(name)
    if instead is not None:
        rows = instead.rows(theirs.get("rows", [])) if instead.status in (0, 3) else None
        return instead.status, rows, instead.told
    told = f"c.yaml:{REFUSED[name]}: " if name in REFUSED else TOLD.get(name, "")
    if not theirs["ok"]:
        return theirs["rc"], None, told
    return 0 if theirs["rows"] else 3, theirs["rows"], told


def test_the_tables_name_each_case_once(cases: dict[str, Any]) -> None:
    assert len(cases) == 173
    named = [*INSTEAD, *REFUSED, *TOLD]
    assert sorted(named) == sorted(set(named) & cases.keys())
    assert {name for name in cases if not cases[name]["newest"]["ok"]} <= {*REFUSED, *TOLD, *INSTEAD}
    for name, instead in INSTEAD.items():
        theirs = cases[name]["newest"]
        same = theirs["ok"] and instead.status == 0 and instead.rows(theirs["rows"]) == theirs["rows"]
        assert not same, f"{name} does not differ"


def test_fields_stand_in_their_order_and_ours_behind_them(cases: dict[str, Any], folder: Path) -> None:
    """The order among the eval fields is our own, one for all rows; theirs depends on how a row was made."""
    marks = ["eval-framework", "eval-suite", "eval-conc", "eval-all-concs", "eval-only"]
    compared = 0
    for name, case in cases.items():
        if name in INSTEAD or not case["newest"]["ok"]:
            continue
        (folder / "c.yaml").write_text(case["config"], encoding="utf-8")
        flags = our_flags(case["flags"])
        ours = expand_cli("--config", "c.yaml", "--runners", "runners.yaml", "--recipes", "recipes", *flags)
        for row, theirs in zip(json.loads(ours.out), case["newest"]["rows"], strict=True):
            plain = [key for key in theirs if key not in EVAL_FIELDS or key == "run-eval"]
            extra = [key for key in EXTRA if key in row]
            assert list(row) == [*plain, *(key for key in marks if key in theirs), *extra], name
            compared += 1
    assert compared == 149
