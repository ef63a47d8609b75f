"""A server admits what the client sends, and its captured graphs cover what it admits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.checks.case import Case
from matrix.checks.parallel import argument, parallel_of
from matrix.checks.rule import ROLE, Fault, rule
from matrix.findings import Severity
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.checks.parallel import Value
    from matrix.recipes.roles import Role

__all__ = ["capture_cover", "capture_list", "recipe_admission"]

_ATOM_ADMITS: Final = 512
"""ATOM's own limit where a recipe gives none."""

_ATOM_DENSE: Final = 64
"""Largest size that recipes capture without data-parallel attention; a larger batch is bound by its arithmetic."""

_LIMITS: Final = {"sglang": "max-running-requests", "vllm": "max-num-seqs", "atom": "max-num-seqs"}
_CAPTURES: Final = {"sglang": "cuda-graph-bs", "vllm": "cudagraph-capture-sizes", "atom": "cudagraph-capture-sizes"}
_CAPTURE_LIMITS: Final = {"sglang": "cuda-graph-max-bs", "vllm": "max-cudagraph-capture-size"}
_NO_GRAPHS: Final = ("enforce-eager", "disable-cuda-graph")


class _Admission(NamedTuple):
    """``total``: requests that all workers of a role hold at once; ``per_rank``: those of one attention rank."""

    total: int
    per_rank: int
    limit: Value


@rule("recipe-admission", Case)
def recipe_admission(case: Case) -> Iterator[Fault]:
    """All workers of a role together admit the concurrency of the point; ATOM under agents twice as many.

    `max-num-seqs` or `max-running-requests` of a worker times its workers; vLLM counts each data-parallel rank. Without
    the argument ATOM admits 512. An agent keeps more than one request in flight, so for agentic ATOM points less than
    twice the concurrency is a warning.

    Why: the rest waits in a queue, and the point measures a lower concurrency than it says (InferenceX #1863, #392,
    #411, #1375).
    Fix: raise the argument.
    """
    view = case.view
    if view is None:
        return
    most = max(case.concs)
    key = "conc-list" if "conc-list" in case.entry.node else "conc-end"
    master = case.said(case.entry.node, key)
    for role in view.roles.values():
        admission = _admission(view, role)
        if admission is None:
            continue
        name = admission.limit.key or _LIMITS[role.engine]
        workers = f"{role.workers} workers x {admission.total // role.workers}"
        sum_ = f"{workers} = {admission.total}" if role.workers > 1 else str(admission.total)
        if admission.total < most:
            message = f"the row says concurrency {most}, and the recipe admits {sum_} ({ROLE})."
            fix = f"raise {name} to {-(-most // role.workers)} or more"
            yield Fault(message, fix, master, admission.limit.span, name, role.name)
        elif case.deployment.agentic and role.engine == "atom" and admission.total < 2 * most:
            message = f"{most} agents keep more than {most} requests in flight, and the recipe admits {sum_} ({ROLE})."
            fix = f"raise {name} to {-(-2 * most // role.workers)}"
            span = admission.limit.span
            yield Fault(message, fix, master, span, name, role.name, severity=Severity.WARNING)


@rule("capture-list", RecipeView)
def capture_list(view: RecipeView) -> Iterator[Fault]:
    """Batch sizes to capture are whole numbers in ascending order; for ATOM they are text, such as "[1,2,4]".

    Why: srtctl writes a list as separate words, of which ATOM takes the first.
    Fix: for ATOM put the list into quotes; sort it, and list each size once.
    """
    for role in view.roles.values():
        if role.engine not in _CAPTURES:
            continue
        sizes = argument(view, role, _CAPTURES[role.engine])
        if sizes.key is None:
            continue
        found = _sizes(sizes.value, text=role.engine == "atom")
        if found is None:
            wanted = 'text such as "[1,2,4]"' if role.engine == "atom" else "a list of whole numbers"
            kind = "a list" if isinstance(sizes.value, list) else f"written as {sizes.value}"
            message = f"{sizes.key} is {kind}, and {wanted} is wanted ({ROLE})."
            yield Fault(message, f"write {wanted}", recipe=sizes.span, role=role.name)
        elif found != sorted(set(found)) or (found and found[0] < 1):
            message = f"{sizes.key} does not ascend from 1 or more, each size once ({ROLE})."
            yield Fault(message, "sort it and remove repetitions", recipe=sizes.span, role=role.name)


@rule("capture-cover", RecipeView, Severity.WARNING)
def capture_cover(view: RecipeView) -> Iterator[Fault]:
    """The largest captured batch size is what one attention rank admits.

    A rank admits its share of the worker's limit, with vLLM the limit itself. For ATOM without data-parallel attention
    64 is enough. ATOM captures every size that is listed, so that more than it can use is told as well; SGLang leaves
    such sizes out by itself. Prefill is not looked at: it runs no decode steps.

    Why: a batch beyond the list runs without a graph, many times slower (InferenceX #2555); a size that no batch
    reaches costs memory and minutes at each start.
    Fix: list the sizes up to the admission of a rank.
    """
    for role in view.roles.values():
        admission, sizes = _admission(view, role), _captures(view, role)
        if role.name == "prefill" or admission is None or sizes is None or sizes.key is None:
            continue
        found = _sizes(sizes.value, text=role.engine == "atom")
        found = [sizes.value] if type(sizes.value) is int else found
        if not found:
            continue
        wanted = admission.per_rank
        if role.engine == "atom" and admission.per_rank == admission.total // role.workers:
            wanted = min(wanted, _ATOM_DENSE)
        if max(found) < wanted:
            message = f"a rank admits {wanted} requests, and {sizes.key} ends at {max(found)} ({ROLE})."
            yield Fault(message, f"capture to {wanted}", recipe=sizes.span, role=role.name)
        elif max(found) > wanted and role.engine == "atom":
            message = f"{sizes.key} ends at {max(found)}, and a rank admits {wanted} requests ({ROLE})."
            yield Fault(message, f"end the list at {wanted}", recipe=sizes.span, role=role.name)


def _admission(view: RecipeView, role: Role) -> _Admission | None:
    name = _LIMITS.get(role.engine)
    sizes = parallel_of(view, role)
    if name is None or sizes is None:
        return None
    limit = argument(view, role, name, default=_ATOM_ADMITS if role.engine == "atom" else None)
    ranks = sizes.attention.value
    if type(limit.value) is not int or type(ranks) is not int or ranks < 1:
        return None
    if role.engine == "vllm":
        return _Admission(limit.value * ranks * role.workers, limit.value, limit)
    return _Admission(limit.value * role.workers, limit.value // ranks, limit)


def _captures(view: RecipeView, role: Role) -> Value | None:
    """The argument that says batch sizes, or how far they go; None where nothing is captured."""
    if role.engine not in _CAPTURES or argument(view, role, *_NO_GRAPHS).value is True:
        return None
    found = argument(view, role, _CAPTURES[role.engine])
    if found.key is None and role.engine in _CAPTURE_LIMITS:
        found = argument(view, role, _CAPTURE_LIMITS[role.engine])
    return found


def _sizes(value: Any, *, text: bool) -> list[int] | None:
    """A list of whole numbers, written as text or as a list; None for anything else."""
    if text:
        if not isinstance(value, str):
            return None
        try:
            value = json.loads(value)
        except ValueError:
            return None
    good = isinstance(value, list) and all(type(member) is int for member in value)
    return list(value) if good else None
