"""What jobs take: for a terminal, as JSON, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.answers.cost import Basis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.answers.cost import Estimate, Pool

__all__ = ["clock", "cost_lines", "cost_markdown", "cost_record"]

_MOST_CONFIGS: Final = 10
_MEASURED: Final = (Basis.JOB, Basis.CONFIG)
_WORDS: Final = {
    Basis.JOB: "measured of this very job",
    Basis.CONFIG: "the median of its config",
    Basis.STATED: "as the row says",
    Basis.ASSUMED: "assumed",
    Basis.UNKNOWN: "unknown",
}


def cost_lines(found: Estimate, width: int, budget: float | None = None) -> Iterator[str]:
    """For a terminal of ``width`` columns."""
    yield from _wrapped(f"{found.name}: {_sum(found)}", width)
    yield ""
    yield from _table(_POOL_HEAD, _pool_rows(found), width)
    for pool in found.pools:
        yield from (line for note in _notes(pool) for line in _wrapped(f"{pool.label}: {note}", width))
    yield ""
    yield from _table(_CONFIG_HEAD, _config_rows(found), width)
    if len(found.configs) > _MOST_CONFIGS:
        yield f"… {len(found.configs) - _MOST_CONFIGS:,} more configs; --format json has them all"
    yield ""
    for line in _rest(found, budget):
        yield from _wrapped(line, width)


def cost_markdown(found: Estimate, budget: float | None = None) -> Iterator[str]:
    """As Markdown."""
    from matrix.report.comment import code

    yield f"{code(found.name)}: {_sum(found)}"
    for head, rows in ((_POOL_HEAD, _pool_rows(found)), (_CONFIG_HEAD, _config_rows(found))):
        yield from ("", f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}")
        for first, *others in rows:
            yield f"| {code(first)} | {' | '.join(others)} |"
    if len(found.configs) > _MOST_CONFIGS:
        yield from ("", f"… {len(found.configs) - _MOST_CONFIGS:,} more configs")
    yield ""
    for pool in found.pools:
        yield from (f"- {code(pool.label)}: {note}" for note in _notes(pool))
    yield from (f"- {line}" for line in _rest(found, budget))


def cost_record(found: Estimate, budget: float | None = None) -> dict[str, Any]:
    """For machines; seconds are null where a pool cannot run all of its jobs."""
    return {
        "version": 1,
        "name": found.name,
        **_total(found),
        "seconds": found.seconds,
        "budget-gpu-hours": budget,
        "lengths": {basis.name.lower(): count for basis, count in found.bases.items()},
        "pools": [
            {
                "label": pool.label, **_total(pool), "machines": pool.machines, "seconds": pool.seconds,
                "too-wide": list(pool.too_wide), "shares-machines-with": list(pool.share),
            }
            for pool in found.pools
        ],
        "configs": [{"key": config.key, **_total(config)} for config in found.configs],
    }  # fmt: skip


def clock(seconds: float) -> str:
    """A time for people, in whole minutes.

    >>> clock(59), clock(3600), clock(100_000)
    ('1 min', '1 h 0 min', '27 h 47 min')
    """
    minutes = -(-int(seconds) // 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def _total(one: Any) -> dict[str, Any]:
    total = one.total
    return {
        "jobs": total.jobs,
        "nodes": total.nodes,
        "gpu-hours": round(total.gpu_hours, 3),
        "jobs-of-unknown-length": total.untimed,
    }


def _sum(found: Estimate) -> str:
    total = found.total
    text = f"{_counted(total.jobs, 'job')}, {_counted(total.nodes, 'node')}, {_hours(total.gpu_hours)} GPU-hours"
    ends = _ends(found.seconds, total.untimed)
    return f"{text}; {ends} on the clock" if found.seconds else f"{text}; time on the clock unknown"


def _ends(seconds: float | None, untimed: int) -> str:
    if seconds is None:
        return "no end"
    if untimed:
        return f"at least {clock(seconds)}" if seconds else "unknown"
    return clock(seconds)


_POOL_HEAD: Final = ("pool", "jobs", "nodes", "GPU-hours", "untimed", "machines", "clock")
_CONFIG_HEAD: Final = ("config", "jobs", "nodes", "GPU-hours", "untimed")


def _pool_rows(found: Estimate) -> list[list[str]]:
    return [
        [*_cells(pool.label, pool), f"{pool.machines:,}", _ends(pool.seconds, pool.total.untimed)]
        for pool in found.pools
    ]


def _config_rows(found: Estimate) -> list[list[str]]:
    return [_cells(config.key, config) for config in found.configs[:_MOST_CONFIGS]]


def _cells(name: str, one: Any) -> list[str]:
    total = one.total
    return [name, f"{total.jobs:,}", f"{total.nodes:,}", _hours(total.gpu_hours), f"{total.untimed:,}"]


def _notes(pool: Pool) -> Iterator[str]:
    if not pool.machines:
        yield "the runners file has no machine with this label"
    elif pool.too_wide:
        more = f" and {len(pool.too_wide) - 1:,} more" if len(pool.too_wide) > 1 else ""
        yield f"{pool.too_wide[0]}{more} wants more nodes than its {pool.machines:,}"
    if pool.share:
        yield f"shares machines with {', '.join(pool.share)}; all are scheduled together"


def _rest(found: Estimate, budget: float | None) -> Iterator[str]:
    jobs, bases = found.total.jobs, found.bases
    measured = sum(bases[basis] for basis in _MEASURED)
    told = [f"{count:,} {_WORDS[basis]}" for basis, count in bases.items() if count]
    share = f"{measured / jobs:.0%} measured" if jobs else "none"
    yield f"lengths: {share} ({', '.join(told)})"
    if bases[Basis.UNKNOWN]:
        yield (
            f"{_counted(bases[Basis.UNKNOWN], 'job')} of unknown length count no GPU-hours and no time: --history DIR"
            " takes their length from earlier launches, --assume MINUTES gives them one"
        )
    if budget is not None:
        spent = found.total.gpu_hours
        over = "; a plan that takes so much is refused" if spent > budget else ""
        yield f"budget-gpu-hours: {_hours(spent)} of {_hours(budget)}, {spent / budget:.0%}{over}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    """Where it is too wide the nodes go, then the machines, then letters of the names: a number is never cut."""
    cells = [list(head), *map(list, rows)]
    for name in _SPARED:
        if name in cells[0] and sum(_widths(cells)) > width:
            at = cells[0].index(name)
            cells = [[*row[:at], *row[at + 1 :]] for row in cells]
    room = max(_NAME, width - sum(_widths(cells)[1:]))
    sizes = _widths(cells)
    sizes[0] = min(sizes[0], room)
    for first, *others in cells:
        numbers = "".join(f"{text:>{size}}" for text, size in zip(others, sizes[1:], strict=True))
        yield f"{_shortened(first, room):{sizes[0]}}{numbers}"


_SPARED: Final = ("nodes", "machines")
_NAME: Final = 12


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """Of each column, with the two blanks before all but the first."""
    return [max(map(len, column)) + 2 * (number > 0) for number, column in enumerate(zip(*cells, strict=True))]


def _shortened(name: str, room: int) -> str:
    """Without its middle, where it is too long: keys differ at both ends."""
    if len(name) <= room:
        return name
    end = (room - 1) // 2
    return f"{name[: room - 1 - end]}…{name[len(name) - end :]}"


def _hours(hours: float) -> str:
    return f"{hours:,.1f}".removesuffix(".0")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _wrapped(text: str, width: int) -> Iterable[str]:
    from textwrap import wrap

    return wrap(text, max(width, 40), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
