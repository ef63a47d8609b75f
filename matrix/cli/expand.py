"""``matrix expand``: the jobs of the search space, exactly as CI would run them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import Command, option
from matrix.cli.options import file_options, kept, listed, terminal_width, workspace_of
from matrix.cli.report import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matrix.points.pipeline import Expansion
    from matrix.points.point import Point
    from matrix.points.request import Request

__all__ = ["expand", "selection_options"]

POSITIVE = click.IntRange(min=1)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Every option that selects points."""
    options = [
        listed(
            "--config-keys",
            metavar="KEY",
            help="Config keys, exact or as a glob.",
            words="config-key",
        ),
        listed(
            "--model-prefix",
            metavar="PREFIX",
            help="Configs of this model-prefix.",
            words="model-prefix",
        ),
        listed("--precision", metavar="NAME", help="Configs of this precision.", words="precision"),
        listed("--framework", metavar="NAME", help="Configs of this framework.", words="framework"),
        listed(
            "--runner-type",
            metavar="LABEL",
            help="Configs of this runner label.",
            words="runner-type",
        ),
        listed(
            "--seq-lens",
            metavar="NAME",
            help="Fixed-length points: 1k1k, 8k1k or ISL-OSL.",
            words="seq-lens",
        ),
        listed(
            "--scenario-type",
            member=click.Choice(["fixed-seq-len", "agentic-coding"]),
            metavar="NAME",
            help="fixed-seq-len or agentic-coding.",
        ),
        option("--single-node", is_flag=True, help="Single-node configs."),
        option("--multi-node", is_flag=True, help="Multi-node configs."),
        option("--min-conc", type=POSITIVE, metavar="N", help="Concurrencies from here on."),
        option("--max-conc", type=POSITIVE, metavar="N", help="Concurrencies up to here."),
        option("--max-tp", type=POSITIVE, metavar="N", help="Single-node fixed-length points up to this tp."),
        option("--max-ep", type=POSITIVE, metavar="N", help="Single-node fixed-length points up to this ep."),
        listed("--conc", member=POSITIVE, metavar="N", help="These concurrencies."),
        listed("--exp-names", metavar="NAME", help="Points of this exp-name.", words="exp-name"),
        listed("--ids", metavar="ID", help="Points of this id, exact or as a glob.", words="id"),
        option("--runner-node-filter", metavar="TEXT", help="One point per node whose name contains TEXT."),
        option(
            "--step-size", type=click.IntRange(min=2), default=2, metavar="N", help="Factor of a range. [default: 2]"
        ),
        option("--no-evals", is_flag=True, help="Mark no accuracy runs."),
        option("--evals-only", is_flag=True, help="The marked accuracy runs alone."),
        option("--all-evals", is_flag=True, help="An accuracy run of every eligible point, alone."),
        option("--trim-conc", is_flag=True, help="Of each family the lowest concurrency."),
        option("--smoke", is_flag=True, help="Of each family the lowest throughput point and accuracy run."),
    ]
    for add in reversed(options):
        command = add(command)
    return command


@click.command(cls=Command, short_help="Show the jobs of the search space.")
@file_options
@selection_options
@option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "jsonl", "ids"]),
    default="table",
    help="table for people, json as one array, jsonl streamed, or ids alone.",
)
@option("--allow-empty", is_flag=True, help="Exit 0, not 3, when nothing is selected.")
def expand(
    *,
    masters: tuple[str, ...],
    runners: str | None,
    recipes: tuple[str, ...],
    golden: str | None,
    style: str,
    allow_empty: bool,
    **selection: Any,
) -> int:
    """Show the jobs of the search space, as CI would run them.

    Without --config and --runners the repository's own files are read: those of the nearest [tool.matrix] or configs/
    folder upwards. Options that take several words may be repeated or hold commas. Filters only remove points.
    """
    from matrix.points.pipeline import expand as expand_points

    request = request_of(selection)
    workspace = workspace_of(masters, runners, recipes, golden)
    expansion = kept(expand_points(workspace.configs, workspace.facts, workspace.policy, request))
    tell(expansion.findings)
    return emit(expansion, request, style, allow_empty=allow_empty)


def request_of(options: dict[str, Any]) -> Request:
    """The request that the selection options make; what does not go together is a usage error."""
    from matrix.points.evals import EvalMode
    from matrix.points.request import Filters, Request

    step, node_filter, ids = options.pop("step_size"), options.pop("runner_node_filter"), options.pop("ids")
    flags = {name: options.pop(name) for name in ("no_evals", "evals_only", "all_evals", "trim_conc", "smoke")}
    _refuse_together(flags)
    low, high = options["min_conc"], options["max_conc"]
    if low is not None and high is not None and low > high:
        message = f"--min-conc {low} is above --max-conc {high}, so nothing could be left."
        raise click.UsageError(message)
    mode = EvalMode.NONE if flags["no_evals"] else EvalMode.ALL if flags["all_evals"] else EvalMode.MARK
    return Request(
        filters=Filters(**options),
        step=step,
        node_filter=node_filter,
        evals=mode,
        evals_only=flags["evals_only"] or flags["all_evals"],
        trim=flags["trim_conc"],
        smoke=flags["smoke"],
        ids=ids,
    )


def _refuse_together(flags: dict[str, bool]) -> None:
    given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value]
    if flags["no_evals"] and (flags["evals_only"] or flags["all_evals"]):
        message = f"--no-evals does not go with {' or '.join(given[1:])}: it leaves no accuracy run to select."
        raise click.UsageError(message)
    if flags["smoke"] and len(given) > 1:
        message = f"--smoke trims and evaluates by itself; it does not go with {' or '.join(given[:-1])}."
        raise click.UsageError(message)


def emit(expansion: Expansion, request: Request, style: str, *, allow_empty: bool) -> int:
    """Write the points; say on stderr what was selected from nothing or not looked at."""
    counted = _Counted(expansion)
    write = sys.stdout.write
    if next(iter(expansion.points), None) is None:
        if style == "json":
            write("[]\n")
        click.echo("matrix: no point is selected; " + _why_empty(expansion, request), err=True)
        return 0 if allow_empty else 3
    for piece in _render(counted, style):
        write(piece)
    for line in counted.unseen():
        click.echo(line, err=True)
    return 0


def _render(points: Iterable[Point], style: str) -> Iterator[str]:
    """The output, in pieces."""
    from matrix.report.json import lines, rows_json, rows_jsonl

    if style == "ids":
        return lines(point.id for point in points)
    if style == "table":
        from matrix.report.text import points_table

        return lines(points_table(points, terminal_width()))
    return rows_json(points) if style == "json" else rows_jsonl(points)


class _Counted:
    """The points, counting those that a filter let pass unseen."""

    def __init__(self, expansion: Expansion) -> None:
        self.points = expansion.points
        self.partial = [
            selector for selector in expansion.selectors if selector.rule in ("--seq-lens", "--max-tp", "--max-ep")
        ]
        self.counts = dict.fromkeys((selector.rule for selector in self.partial), 0)

    def __iter__(self) -> Iterator[Point]:
        if not self.partial:
            return iter(self.points)
        return self._counting()

    def _counting(self) -> Iterator[Point]:
        for point in self.points:
            for selector in self.partial:
                if not selector.looks_at(point):
                    self.counts[selector.rule] += 1
            yield point

    def unseen(self) -> list[str]:
        kinds = {"--seq-lens": "fixed-length points", "--max-tp": "single-node fixed-length points"}
        kinds["--max-ep"] = kinds["--max-tp"]
        found = [(rule, count) for rule, count in self.counts.items() if count]
        others = ((rule, "1 other point is" if count == 1 else f"{count:,} other points are") for rule, count in found)
        return [f"matrix: {rule} looks at {kinds[rule]} only; {text} listed unfiltered" for rule, text in others]


def _why_empty(expansion: Expansion, request: Request) -> str:
    rules = [selector.rule for selector in expansion.selectors]
    rules += ["--runner-node-filter"] if request.node_filter is not None else []
    rules += ["--all-evals" if request.evals == "all" else "--evals-only"] if request.evals_only else []
    rules += ["--ids"] if request.ids else []
    return f"nothing passes {', '.join(dict.fromkeys(rules))}" if rules else "the master configs hold none"
