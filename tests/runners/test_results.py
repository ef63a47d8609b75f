"""Results: which files a job must have left, and what they must say."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from runners.results import Collected, Kind, Places, collect, kinds_of, pack_logs, settled

AGENTIC: dict[str, Any] = {"conc": [16], "run-eval": False}
FIXED: dict[str, Any] = {"conc": [4, 8], "isl": 8192, "osl": 1024}
EVAL: dict[str, Any] = {"conc": [16], "isl": 8192, "osl": 1024, "eval-only": True, "run-eval": True}
PREFIX = "id.tag"
GOOD_AGENTIC = {
    "num_requests_total": 12,
    "num_requests_successful": 11,
    "request_metrics": {"throughput": {"total": {"tokens_per_second": 10.5}}},
}
GOOD_EVAL = {"results": {"gsm8k": {"exact_match,strict-match": 0.93}}}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("output/logs", "workspace", "client", "kept"):
        (tmp_path / name).mkdir(parents=True)
    return Places(output=tmp_path / "output", workspace=tmp_path / "workspace", scratch=tmp_path / "client")


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def found(row: dict[str, Any], places: Places, **more: Any) -> Collected:
    return collect(row, places, PREFIX, places.output.parent / "kept", **more)


def rules(collected: Collected) -> list[str]:
    return [finding.rule for finding in collected.findings]


def test_an_agentic_result_is_kept_and_taken_out_of_the_shared_folder(places: Places) -> None:
    source = put(places.workspace / f"{PREFIX}_conc16.json", GOOD_AGENTIC)
    other = put(places.workspace / "another.tag_conc16.json", GOOD_AGENTIC)
    collected = found(AGENTIC, places)
    assert collected.verified
    assert [kept.name for kept in collected.kept] == ["result_conc16.json"]
    assert collected.figures == [{"conc": 16, "successful": 11, "total": 12, "total.tokens_per_second": 10.5}]
    assert not source.exists()
    assert other.exists()


def test_a_result_that_cannot_be_copied_stays_where_it_is(places: Places) -> None:
    source = put(places.workspace / f"{PREFIX}_conc16.json", GOOD_AGENTIC)
    collected = collect(AGENTIC, places, PREFIX, places.output / "no" / "such" / "folder")
    assert rules(collected) == ["result-copy"]
    assert source.exists()


def test_the_agentic_client_may_write_into_the_logs(places: Places) -> None:
    put(places.output / "logs" / "out" / f"{PREFIX}_conc16.json", GOOD_AGENTIC)
    assert found(AGENTIC, places, agentic_folder="/logs/out").verified
    assert not found(AGENTIC, places).verified


def test_every_concurrency_of_an_allocation_has_its_file(places: Places) -> None:
    put(places.output / "logs" / "fixed-seq" / "results_concurrency_4.json", {"completed": 40, "num_prompts": 40})
    collected = found(FIXED, places)
    assert rules(collected) == ["result-missing"]
    assert "concurrency 8" in collected.findings[0].message
    put(
        places.output / "logs" / "sa-bench_isl_8192_osl_1024" / "results_concurrency_8_gpus_16_ctx_8_gen_8.json",
        {"completed": 80, "total_token_throughput": 1.5, "median_ttft_ms": 2},
    )
    collected = found(FIXED, places)
    assert collected.verified
    assert collected.figures[1] == {
        "conc": 8, "successful": 80, "total-tokens-per-second": 1.5, "median-ttft-ms": 2
    }  # fmt: skip


def test_one_concurrency_is_no_beginning_of_another(places: Places) -> None:
    put(places.output / "logs" / "results_concurrency_40.json", {"completed": 40})
    assert rules(found({**FIXED, "conc": [4]}, places)) == ["result-missing"]


def test_two_results_for_one_concurrency_are_no_result(places: Places) -> None:
    for folder in ("a", "b"):
        put(places.output / "logs" / folder / "results_concurrency_4.json", {"completed": 40})
    assert rules(found({**FIXED, "conc": [4]}, places)) == ["result-twice"]


BAD: dict[str, tuple[Any, str]] = {
    "half written": ('{"completed": 4', "result-broken"),
    "empty": ("", "result-broken"),
    "a list": ([1], "result-broken"),
    "nothing succeeded": ({"completed": 0}, "result-empty"),
    "less than nothing": ({"completed": -1}, "result-empty"),
    "no count": ({"num_prompts": 4}, "result-shape"),
    "a count as text": ({"completed": "4"}, "result-shape"),
    "a count as a boolean": ({"completed": True}, "result-shape"),
}


@pytest.mark.parametrize(("content", "rule"), BAD.values(), ids=BAD)
def test_a_file_alone_is_no_result(places: Places, content: Any, rule: str) -> None:
    put(places.output / "logs" / "results_concurrency_4.json", content)
    collected = found({**FIXED, "conc": [4]}, places)
    assert rules(collected) == [rule]
    assert not collected.verified


def test_an_evaluation_needs_scores(places: Places) -> None:
    assert rules(found(EVAL, places)) == ["result-missing"]
    file = put(places.output / "logs" / "eval_results" / "m" / "results_2026.json", {"results": {}})
    assert rules(found(EVAL, places)) == ["result-empty"]
    put(file, GOOD_EVAL)
    collected = found(EVAL, places)
    assert collected.verified
    assert collected.figures == [{"eval": {"gsm8k": {"exact_match,strict-match": 0.93}}}]
    assert [kept.name for kept in collected.kept] == ["eval_m_results_2026.json"]


def test_an_evaluation_after_throughput_is_not_taken_on_trust(places: Places) -> None:
    """srtctl ends with 0 when it fails."""
    put(places.output / "logs" / "results_concurrency_4.json", {"completed": 4})
    row = {**FIXED, "conc": [4], "run-eval": True}
    assert kinds_of(row) == (Kind.FIXED, Kind.EVAL)
    assert rules(found(row, places)) == ["result-missing"]


@pytest.mark.parametrize(("length", "fits"), [(3.01, True), (3.05, True), (2.4, False), (3.5, False)])
def test_the_realised_acceptance_is_held_against_the_golden_one(places: Places, length: float, fits: bool) -> None:
    record = {**GOOD_AGENTIC, "server_metrics": {"decode": [{"atom:mtp_average_tokens_per_forward": length}]}}
    put(places.workspace / f"{PREFIX}_conc16.json", record)
    collected = found(AGENTIC, places, golden="3.01")
    assert collected.verified is fits
    assert collected.figures[0]["acceptance-lengths"] == [length]


def test_logs_are_packed_whole(places: Places) -> None:
    into = places.output.parent / "kept"
    put(places.output / "logs" / "node1_prefill_w0.out", "up\n")
    kept = pack_logs(places.output, into)
    assert kept is not None
    with tarfile.open(into / kept.name) as archive:
        assert "output/logs/node1_prefill_w0.out" in archive.getnames()
    assert [path.name for path in into.iterdir()] == ["server-logs.tar.gz"]


def test_a_job_without_logs_has_none_packed(tmp_path: Path) -> None:
    assert pack_logs(tmp_path / "nothing", tmp_path) is None


def test_paths_of_containers_are_found_on_the_host(places: Places) -> None:
    assert places.host("/infmax-workspace/LOGS/agentic") == places.scratch / "agentic"
    assert places.host("/infmax-workspace/a") == places.workspace / "a"
    assert places.host("/logs/a") == places.output / "logs" / "a"
    assert places.host("/logsx") == Path("/logsx")


def test_results_have_settled_when_all_of_them_are_whole(places: Places) -> None:
    logs = places.output / "logs"
    assert not settled(FIXED, places, PREFIX)
    put(logs / "results_concurrency_4.json", {})
    assert not settled(FIXED, places, PREFIX)
    half = put(logs / "results_concurrency_8.json", '{"completed')
    assert not settled(FIXED, places, PREFIX)
    put(half, {})
    assert settled(FIXED, places, PREFIX)
    assert not settled({**FIXED, "run-eval": True}, places, PREFIX)
    put(logs / "eval_results" / "results_1.json", {})
    assert settled({**FIXED, "run-eval": True}, places, PREFIX)
    assert not settled(AGENTIC, places, PREFIX)
    file = put(places.workspace / f"{PREFIX}_conc16.json", {})
    assert settled(AGENTIC, places, PREFIX)
    assert file.exists()
