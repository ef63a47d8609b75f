"""The figures of a result: what is read of it, and whether that can have been measured.

Clients write NaN for what they have nothing of, and Python's JSON takes it. NaN is neither above nor below anything, so
every comparison with it would let it pass.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Fault", "far_off", "faults_of", "finite", "of_agentic", "of_evaluation", "of_fixed", "read_back", "shown"]

_TOLERANCE: Final = 0.02
"""Of a golden length, relative: a forced length is drawn at random, request by request."""

_ACCEPTANCE: Final = frozenset({
    "acceptance_length", "mean_acceptance_length", "average_tokens_per_forward", "mtp_average_tokens_per_forward",
    "avg_spec_accept_length", "spec_accept_length",
})  # fmt: skip
_FIXED: Final = {
    "total-tokens-per-second": "total_token_throughput",
    "output-tokens-per-second": "output_throughput",
    "requests-per-second": "request_throughput",
    "median-ttft-ms": "median_ttft_ms",
    "median-tpot-ms": "median_tpot_ms",
    "median-e2el-ms": "median_e2el_ms",
}
_TOTALS: Final = ("total-tokens-per-second", "total.tokens_per_second")
_SAID: Final = "conc-said"
"""The concurrency that a client says it ran at. It is held against the point's, and not kept."""
_LONGEST: Final = 60


class Fault(NamedTuple):
    """What is wrong with figures: the rule, and a sentence that begins with a small letter."""

    rule: str
    message: str


def of_fixed(conc: int, record: Mapping[str, Any]) -> dict[str, Any]:
    """What a client of fixed lengths measured at a concurrency."""
    figures = {"conc": conc, "successful": record.get("completed"), "total": record.get("num_prompts")}
    figures |= {name: record[field] for name, field in _FIXED.items() if _is_number(record.get(field))}
    return _with_acceptance(figures | {_SAID: record.get("max_concurrency")}, record)


def of_agentic(conc: int, record: Mapping[str, Any]) -> dict[str, Any]:
    """What the agentic client measured at a concurrency."""
    accounting = record.get("request_accounting")
    successful = record.get("num_requests_successful")
    if successful is None and isinstance(accounting, dict):
        successful = accounting.get("records_profiled")
    metrics = record.get("request_metrics")
    throughput = metrics.get("throughput") if isinstance(metrics, dict) else None
    figures = {"conc": conc, "successful": successful, "total": record.get("num_requests_total")}
    return _with_acceptance(figures | _numbers(throughput) | {_SAID: record.get("conc")}, record)


def of_evaluation(record: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of an evaluation by task; no ``eval`` where it names no task."""
    scores = record.get("results")
    if not isinstance(scores, dict) or not scores:
        return {}
    return {"eval": {str(task): _numbers(score) for task, score in sorted(scores.items())}}


def faults_of(figures: Mapping[str, Any]) -> Iterator[Fault]:
    """Why nothing, or no such thing, can have been measured."""
    if "eval" in figures or "conc" not in figures:
        yield from _faults_of_scores(figures.get("eval", {}))
        return
    successful, total, said = figures["successful"], figures["total"], figures.get(_SAID)
    if type(said) is int and said != figures["conc"]:
        yield Fault("result-shape", f"it is of concurrency {shown(said)}, and {figures['conc']} was to be measured.")
    if type(successful) is not int:
        it = shown(successful)
        yield Fault("result-shape", f"this result does not say how many requests succeeded (it says {it}).")
    elif successful <= 0:
        yield Fault("result-empty", "no request succeeded, so nothing was measured.")
    elif type(total) is int and successful > total:
        counts = f"{shown(successful)} requests succeeded of {shown(total)}"
        yield Fault("result-shape", f"this result says that {counts}, so it cannot be believed.")
    for name, value in figures.items():
        if not name.endswith(("per-second", "per_second")):
            continue
        if not _is_finite(value) or value < 0:
            yield Fault("result-shape", f"{name} is {shown(value)}, which is no rate, so it cannot be believed.")
        elif name in _TOTALS and not value:
            yield Fault("result-empty", f"{name} is 0, so nothing was measured.")
    for length in figures.get("acceptance-lengths", ()):
        if not _is_finite(length):
            yield Fault("result-shape", f"the acceptance length is {shown(length)}, so it cannot be believed.")


def _faults_of_scores(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[Fault]:
    if not tasks:
        yield Fault("result-empty", "this evaluation names no task and no score.")
        return
    scores = [
        (task, name, value) for task, found in tasks.items() for name, value in found.items() if "stderr" not in name
    ]
    if not scores:
        yield Fault("result-empty", f"this evaluation has no score for {', '.join(map(shown, tasks))}.")
    for task, name, value in scores:
        if not _is_finite(value):
            where = f"{shown(name)} of {shown(task)}"
            yield Fault("result-shape", f"the score {where} is {shown(value)}, so nothing was evaluated.")


def finite(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures without what is no number that JSON has, and without counts that are none."""
    kept: dict[str, Any] = {}
    for name, value in figures.items():
        if name == _SAID or (name in {"conc", "successful", "total"} and type(value) is not int):
            continue
        if isinstance(value, dict):
            kept[name] = finite(value)
        elif isinstance(value, list):
            kept[name] = [each for each in value if _is_finite(each)]
        elif _is_finite(value):
            kept[name] = value
    return kept


def read_back(figures: Any) -> dict[str, Any]:
    """Figures as a summary has them, of this launch or of whoever else wrote the file.

    Raises:
        ValueError: they are none.
    """
    tasks = figures.get("eval", {}) if isinstance(figures, dict) else None
    if not isinstance(tasks, dict) or not all(isinstance(scores, dict) for scores in tasks.values()):
        msg = f"{shown(figures)} are no figures"
        raise ValueError(msg)
    return finite(figures)


def far_off(figures: Mapping[str, Any], golden: float) -> Iterator[float]:
    """The realised acceptance lengths that are not the golden one."""
    for length in figures.get("acceptance-lengths", ()):
        if not abs(length - golden) <= golden * _TOLERANCE:
            yield length


def shown(value: Any) -> str:
    """A value as a message can have it: quoted, on one line, cut where it is long.

    >>> shown("a" * 100)[-4:]
    'aaa…'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or a list of a list of ...
        return "what cannot be written down"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _with_acceptance(figures: dict[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    lengths = sorted(set(_acceptance(record)))
    return figures | ({"acceptance-lengths": lengths} if lengths else {})


def _acceptance(record: Mapping[str, Any]) -> Iterator[float]:
    # No recursion, here and below: others choose how deep this is.
    todo: list[Any] = [record]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            for key, value in node.items():
                if key.rpartition(":")[2] in _ACCEPTANCE and _is_number(value):
                    yield value
                else:
                    todo.append(value)


def _numbers(node: Any) -> dict[str, Any]:
    """The numbers of nested mappings by dotted name."""
    found: dict[str, Any] = {}
    todo = [("", node)]
    while todo:
        name, value = todo.pop()
        if _is_number(value):
            found[name] = value
        elif isinstance(value, dict):
            todo += [(f"{name}.{key}" if name else key, each) for key, each in reversed(value.items())]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    """Whether it is a number that every reader of JSON can hold."""
    try:
        return _is_number(value) and math.isfinite(value)
    except OverflowError:
        return False
