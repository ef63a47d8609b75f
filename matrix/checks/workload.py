"""What is measured: the concurrency, the lengths, the client and the time it is given."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.checks.case import Case, absent
from matrix.checks.parallel import argument
from matrix.checks.rule import ROLE, Fault, rule
from matrix.config.source import Map, Seq
from matrix.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.findings import Span
    from matrix.recipes.roles import RecipeView

__all__ = ["recipe_client", "recipe_concurrency", "recipe_time_limit", "recipe_workload"]

_LISTS: Final = ("concurrencies", "concurrency")
_VARIABLES: Final = ("CONC", "CONC_LIST", "CONCURRENCY", "CONCURRENCIES", "CONCURRENCY_LIST")
_SEVERAL: Final = re.compile(r"\s*\d+(?:[\sx,]+\d+)*\s*\Z")
_SCRIPT: Final = re.compile(r"/infmax-workspace/([\w./-]+\.(?:sh|py|bash))(?![\w./-])")
_CLOCK: Final = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?\Z")
_ENDLESS: Final = ("UNLIMITED", "INFINITE")

WARM_UP_SECONDS: Final = 600
"""Allowed for warm-up requests and for collecting results. A job that misses its end by minutes has lost it all."""


class _Stated(NamedTuple):
    """A place where a recipe says concurrencies; ``values`` is None where they cannot be read."""

    name: str
    written: Any
    values: tuple[int, ...] | None
    span: Span


@rule("recipe-concurrency", Case)
def recipe_concurrency(case: Case) -> Iterator[Fault]:
    """The recipe runs exactly the concurrencies of the row, and one of them where the point is agentic.

    Read are `benchmark.env` CONC, CONC_LIST and CONCURRENCY_LIST, and `benchmark.concurrencies`, with `16x64` as the
    list 16, 64. All that are there have to agree.

    Why: the recipe decides what runs while the row is what is published: 256 in the one and 16 in the other
    (InferenceX #1232, #1305, #1735); a job of [64, 96] was sized by its first member (#2555).
    Fix: give each concurrency a variant with its own `benchmark.env.CONC`.
    """
    view = case.view
    if view is None:
        return
    key = "conc-list" if "conc-list" in case.entry.node else "conc-start"
    master, stated = case.said(case.entry.node, key), _concurrencies(view)
    row = _listed(case.concs)
    if not stated and view.benchmark.get("type", "manual") != "manual":
        message = f"the row says concurrency {row}, and the recipe says none."
        yield Fault(message, "write benchmark.env.CONC", master, absent(view, "benchmark", "env"), "the benchmark")
    for name, written, values, span in stated:
        if values is None:
            message = f"the recipe says {name}: {written}, which is no concurrency. The row says {row}."
            yield Fault(message, "write a number", master, span, name)
            continue
        missing = [conc for conc in case.concs if conc not in values]
        extra = [conc for conc in values if conc not in case.concs]
        if missing or extra:
            message = f"the row says concurrency {row}, and the recipe says {_listed(values)}."
            if len({*case.concs, *values}) > 2:
                parts = [("missing in the recipe", missing), ("only in the recipe", extra)]
                message += f" {_sentence(f'{what}: {_listed(those)}' for what, those in parts if those)}"
            yield Fault(message, "make the two agree", master, span, name)
        elif case.deployment.agentic and len(values) > 1:
            message = f"an agentic point runs one concurrency, and the recipe says {_listed(values)}."
            yield Fault(message, "give each concurrency a variant of its own", master, span, name)


@rule("recipe-workload", Case)
def recipe_workload(case: Case) -> Iterator[Fault]:
    """A fixed-length recipe sends and asks for as many tokens as its row says, and its servers take them.

    Read are ISL and OSL of `benchmark.env`, `benchmark.isl` and `benchmark.osl`; `context-length` and `max-model-len`
    of a role are at least the sum of both.

    Why: a curve of 8k1k with a point of 1k1k in it looks like a good point.
    Fix: correct the recipe, or move the entry to the scenario that it is for.
    """
    view = case.view
    if view is None or case.deployment.agentic:
        return
    scenario, env = case.scenario, _env(view)
    for name, wanted in (("isl", scenario.isl), ("osl", scenario.osl)):
        for node, key, path in ((env, name.upper(), f"benchmark.env.{name.upper()}"), (view.benchmark, name, name)):
            if key in node and str(node[key]) != str(wanted):
                message = f"the row says {name} {wanted}, and the recipe says {node[key]}."
                span = view.recipe.span(node, key)
                yield Fault(message, "make the two agree", case.said(scenario.node, name), span, path)
    total = scenario.isl + scenario.osl
    for role in view.roles.values():
        limit = argument(view, role, "context-length", "max-model-len")
        if type(limit.value) is int and limit.value < total:
            message = f"the row's requests have {total} tokens, and the recipe's servers take {limit.value} ({ROLE})."
            master = case.said(scenario.node, "isl")
            yield Fault(message, f"raise it to {total} or more", master, limit.span, str(limit.key), role.name)


@rule("recipe-client", Case)
def recipe_client(case: Case) -> Iterator[Fault]:
    """A script that the benchmark command names is in the workspace. Looked at with `--workspace DIR` alone.

    DIR is what the cluster mounts as `/infmax-workspace`.

    Why: the server loads a model for half an hour, and then bash finds no client.
    Fix: correct the path, or add the script to the workspace.
    """
    view = case.view
    command = view.benchmark.get("command") if view is not None else None
    if view is None or case.workspace is None or not isinstance(command, str):
        return
    for name in dict.fromkeys(_SCRIPT.findall(command)):
        if ".." in PurePosixPath(name).parts or not (case.workspace / name).is_file():
            message = f"the command runs /infmax-workspace/{name}, and {case.workspace} has no such file."
            fix = "correct the path, or add the script to the workspace"
            yield Fault(message, fix, recipe=view.recipe.span(view.benchmark, "command"))


@rule("recipe-time-limit", Case, Severity.WARNING)
def recipe_time_limit(case: Case) -> Iterator[Fault]:
    """The time limit of the job is there, and holds loading, warm-up and the run itself.

    Loading is `health_check.max_attempts` x `interval_seconds`, warm-up ten minutes, an agentic run its hour.

    Why: without one a cluster's default applies, often an hour, and a job that is cut off has no results.
    Fix: write `slurm.time_limit`, as `HH:MM:SS`.
    """
    view = case.view
    if view is None:
        return
    data, master = view.recipe.data, case.named
    slurm, health = data.get("slurm"), data.get("health_check")
    health = health if isinstance(health, Map) else Map()
    attempts, interval = health.get("max_attempts", 180), health.get("interval_seconds", 10)
    loading = attempts * interval if type(attempts) is int and type(interval) is int else 0
    run = case.points[0].seconds or 0
    needed = loading + WARM_UP_SECONDS + run
    if not isinstance(slurm, Map) or slurm.get("time_limit") is None:
        message = f"the recipe has no time limit, and may need {_clock(needed)}."
        fix = f'write time_limit: "{_clock(needed)}" or more below slurm'
        yield Fault(message, fix, master, absent(view, "slurm"), "the recipe", recipe_first=True)
        return
    limit, span = slurm["time_limit"], view.recipe.span(slurm, "time_limit")
    seconds = _seconds(limit)
    if seconds is None:
        message = f"the time limit {limit} is none that Slurm reads."
        yield Fault(message, 'write it as "HH:MM:SS"', recipe=span, severity=Severity.ERROR)
    elif seconds < needed:
        parts = [f"{_clock(loading)} of loading", f"{_clock(WARM_UP_SECONDS)} of warm-up"]
        parts += [f"{_clock(run)} of running"] if run else []
        message = f"the time limit {limit} is shorter than {', '.join(parts)}."
        yield Fault(message, f'raise it to "{_clock(needed)}" or more', recipe=span)


def _concurrencies(view: RecipeView) -> list[_Stated]:
    env = _env(view)
    homes = [(view.benchmark, key, f"benchmark.{key}") for key in _LISTS]
    homes += [(env, key, f"benchmark.env.{key}") for key in _VARIABLES]
    return [
        _Stated(name, node[key], _numbers(node[key]), view.recipe.span(node, key))
        for node, key, name in homes
        if node.get(key) is not None
    ]


def _numbers(value: Any) -> tuple[int, ...] | None:
    """The concurrencies that a value says.

    >>> _numbers("16x64"), _numbers("4 8"), _numbers(2), _numbers("${CONC}")
    ((16, 64), (4, 8), (2,), None)
    """
    if isinstance(value, Seq):
        members = [_numbers(member) for member in value]
        return None if None in members or not members else tuple(n for member in members if member for n in member)
    if type(value) is int:
        return (value,)
    if isinstance(value, str) and _SEVERAL.match(value):
        return tuple(int(text) for text in re.findall(r"\d+", value))
    return None


def _listed(values: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, values))


def _sentence(parts: Iterator[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _env(view: RecipeView) -> Map:
    env = view.benchmark.get("env")
    return env if isinstance(env, Map) else Map()


def _seconds(limit: Any) -> int | None:
    """Slurm's time formats, a bare number being minutes; None for text that is none of them.

    >>> _seconds("08:00:00"), _seconds(30), _seconds("1-2"), _seconds("45:30"), _seconds("soon")
    (28800, 1800, 93600, 2730, None)
    """
    if type(limit) is int:
        return limit * 60
    if not isinstance(limit, str):
        return None
    if limit.upper() in _ENDLESS:
        return 10**9
    found = _CLOCK.match(limit)
    if found is None:
        return None
    days, *rest = found.groups()
    parts = [int(part) for part in rest if part is not None]
    if days is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return int(days) * 86400 + hours * 3600 + minutes * 60 + seconds
    match parts:
        case [minutes]:
            return minutes * 60
        case [minutes, seconds]:
            return minutes * 60 + seconds
        case _:
            return parts[0] * 3600 + parts[1] * 60 + parts[2]


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
