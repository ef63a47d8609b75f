"""Results: which files a job must have left, and what they must say."""

from __future__ import annotations

import errno
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from runners.results import Collected, Kind, Places, collect, kinds_of, pack_logs, settled, take_away
from runners.workspace import sha256_of

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
    path.write_text(content if isinstance(content, str) else json.dumps(content), errors="surrogateescape")
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
    assert source.exists(), "a launch that is killed here finds it again"
    assert list(take_away(collected)) == []
    assert not source.exists()
    assert other.exists()


def test_a_result_that_cannot_be_copied_stays_where_it_is(places: Places) -> None:
    source = put(places.workspace / f"{PREFIX}_conc16.json", GOOD_AGENTIC)
    collected = collect(AGENTIC, places, PREFIX, places.output / "no" / "such" / "folder")
    assert rules(collected) == ["result-copy"]
    assert list(take_away(collected)) == []
    assert source.exists()


@pytest.mark.parametrize(("said", "fits"), [(16, True), (64, False), (None, True), ("16", True), (True, True)])
def test_a_client_says_at_which_concurrency_it_ran(places: Places, said: object, fits: bool) -> None:
    put(places.workspace / f"{PREFIX}_conc16.json", {**GOOD_AGENTIC, "conc": said})
    collected = found(AGENTIC, places)
    assert collected.verified is fits
    assert collected.figures[0]["conc"] == 16
    assert "conc-said" not in collected.figures[0]


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
    "a count that is NaN": ('{"completed": NaN}', "result-shape"),
    "more than were sent": ({"completed": 5, "num_prompts": 4}, "result-shape"),
    "a rate that is NaN": ('{"completed": 4, "total_token_throughput": NaN}', "result-shape"),
    "a rate without end": ('{"completed": 4, "request_throughput": Infinity}', "result-shape"),
    "a rate beyond all numbers": ('{"completed": 4, "output_throughput": 1e999}', "result-shape"),
    "a rate of too many digits": (f'{{"completed": 4, "output_throughput": {"9" * 400}}}', "result-shape"),
    "a rate below nothing": ({"completed": 4, "output_throughput": -1.5}, "result-shape"),
    "no token in all that time": ({"completed": 4, "total_token_throughput": 0}, "result-empty"),
    "of another concurrency": ({"completed": 4, "max_concurrency": 8}, "result-shape"),
    "too deep": ("[" * 200_000, "result-broken"),
    "deep inside": (f'{{"completed": {"[" * 800 + "]" * 800}}}', "result-shape"),
    "a number of too many digits": (f'{{"completed": {"9" * 10_000}}}', "result-broken"),
    "not text": ("\udcff", "result-broken"),
}


@pytest.mark.parametrize(("content", "rule"), BAD.values(), ids=BAD)
def test_a_file_alone_is_no_result(places: Places, content: Any, rule: str) -> None:
    put(places.output / "logs" / "results_concurrency_4.json", content)
    collected = found({**FIXED, "conc": [4]}, places)
    assert rules(collected) == [rule]
    assert not collected.verified
    assert len(collected.findings[0].message) < 300
    json.dumps(collected.figures, allow_nan=False)


def test_what_a_client_has_nothing_of_costs_no_result(places: Places) -> None:
    """With one token a request there is no time between tokens."""
    text = '{"completed": 4, "num_prompts": "four", "median_tpot_ms": NaN, "median_ttft_ms": 2.5}'
    put(places.output / "logs" / "results_concurrency_4.json", text)
    collected = found({**FIXED, "conc": [4]}, places)
    assert collected.verified
    assert collected.figures == [{"conc": 4, "successful": 4, "median-ttft-ms": 2.5}]


def test_what_is_no_regular_file_is_no_result_and_holds_nothing_up(places: Places) -> None:
    os.mkfifo(places.output / "logs" / "results_concurrency_4.json")
    (places.output / "logs" / "results_concurrency_8.json").mkdir()
    assert not settled(FIXED, places, PREFIX)
    assert rules(found(FIXED, places)) == ["result-broken", "result-broken"]


def test_a_file_larger_than_any_result_is_not_read(places: Places) -> None:
    path = put(places.output / "logs" / "results_concurrency_4.json", {"completed": 4})
    os.truncate(path, 2**40)
    collected = found({**FIXED, "conc": [4]}, places)
    assert rules(collected) == ["result-broken"]
    assert "1,099,511,627,776 bytes" in collected.findings[0].message


def test_a_result_that_cannot_be_taken_out_of_the_workspace_is_kept_and_told(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that ran as root leaves files that the launch may read alone."""
    put(places.workspace / f"{PREFIX}_conc16.json", GOOD_AGENTIC)

    unlink = Path.unlink

    def refuse(path: Path, **options: bool) -> None:
        if path.parent == places.workspace:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    collected = found(AGENTIC, places)
    assert collected.verified
    (warning,) = take_away(collected)
    assert "warning: result-stays" in str(warning)
    assert "Permission denied" in str(warning)
    assert [kept.name for kept in collected.kept] == ["result_conc16.json"]


def test_an_evaluation_needs_scores(places: Places) -> None:
    assert rules(found(EVAL, places)) == ["result-missing"]
    file = put(places.output / "logs" / "eval_results" / "m" / "results_2026.json", {"results": {}})
    assert rules(found(EVAL, places)) == ["result-empty"]
    put(file, GOOD_EVAL)
    collected = found(EVAL, places)
    assert collected.verified
    assert collected.figures == [{"eval": {"gsm8k": {"exact_match,strict-match": 0.93}}}]
    assert [kept.name for kept in collected.kept] == ["eval_m_results_2026.json"]


def test_several_evaluations_are_as_many_files(places: Places) -> None:
    folder = places.output / "logs" / "eval_results"
    names = ("results_a/results_b/results_c", "results_a_results_b/results_c", "results_a/results_b_results_c")
    for number, name in enumerate(names):
        put(folder / f"{name}.json", {"results": {"mmlu": {"acc": number}}})
    collected = found(EVAL, places)
    assert collected.verified
    assert len({(kept.name, kept.sha256) for kept in collected.kept}) == 3
    for kept in collected.kept:
        assert sha256_of(places.output.parent / "kept" / kept.name) == kept.sha256


SCORES: dict[str, tuple[Any, str]] = {
    "no score of a task": ({"gsm8k": {"alias": "gsm8k"}}, "result-empty"),
    "a task that is no mapping": ({"gsm8k": 0.93}, "result-verified"),
    "its error alone": ({"gsm8k": {"exact_match_stderr,strict-match": 0.1}}, "result-empty"),
    "NaN": ('{"gsm8k": {"exact_match,strict-match": NaN}}', "result-shape"),
    "words": ({"gsm8k": "failed"}, "result-empty"),
    "a list": ([0.93], "result-empty"),
}


@pytest.mark.parametrize(("content", "rule"), SCORES.values(), ids=SCORES)
def test_tasks_without_a_score_are_no_evaluation(places: Places, content: Any, rule: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    put(places.output / "logs" / "eval_results" / "results_1.json", f'{{"results": {text}}}')
    collected = found(EVAL, places)
    assert collected.verified is (rule == "result-verified")
    assert rules(collected) == ([] if rule == "result-verified" else [rule])


def test_an_error_of_a_score_that_is_nan_costs_no_evaluation(places: Places) -> None:
    text = '{"results": {"gsm8k": {"exact_match": 0.5, "exact_match_stderr": NaN}, "group": {"alias": "all"}}}'
    put(places.output / "logs" / "eval_results" / "results_1.json", text)
    collected = found(EVAL, places)
    assert collected.verified
    assert collected.figures == [{"eval": {"gsm8k": {"exact_match": 0.5}, "group": {}}}]


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


@pytest.mark.parametrize("length", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "0"])
def test_a_length_that_is_no_number_is_not_the_golden_one(places: Places, length: str) -> None:
    text = json.dumps({**GOOD_AGENTIC, "decode": [{"acceptance_length": 0}]}).replace(": 0}", f": {length}}}")
    put(places.workspace / f"{PREFIX}_conc16.json", text)
    assert found(AGENTIC, places, golden="3.01").verified is False


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
