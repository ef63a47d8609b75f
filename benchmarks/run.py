"""`make bench`: each budget of the design as one line, its ratio measured side by side.

make bench                                    everything but the peer
make bench ARGS="--peer 'python gen.py ...'"  against InferenceX's generator, started in the folder of the masters
make bench ARGS="--only expand --rounds 25"   one of them, more exactly
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.inputs import ROOT, Masters, changelog, history, masters, repeated, synthetic
from benchmarks.measure import Command, Pair, middle, pair, run

FLOOR: Final = """\
import sys, yaml
for name in sys.argv[1:]:
    with open(name, "rb") as stream:
        for _ in yaml.parse(stream, Loader=yaml.CSafeLoader):
            pass
"""
"""A process that does nothing but start and read the same bytes through libyaml's events."""

POINT: Final = (
    "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark--agentic--1p-tp8dpa-1d-tp8dpa--c256--override_dpa8_c256_lmcache"
)

TAB: Final = """\
import os, sys
os.environ.update(XDG_CACHE_HOME=sys.argv[1], COMP_WORDS=sys.argv[2], COMP_CWORD=sys.argv[3])
os.environ["_MATRIX_COMPLETE"] = "bash_complete"
from matrix.cli.start import matrix
matrix()
"""
"""A shell that asks at Tab: the cache folder, the line, and which of its words is completed."""

VALIDATE: Final = "from matrix.cli.start import validate_perf_changelog; validate_perf_changelog()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How it is measured. ``points``: the two sizes whose time is compared. ``follow``: seconds that a job runs."""

    rounds: int
    points: tuple[int, int]
    peer: str | None
    follow: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measured figure against its budget; ``budget`` None is for the record alone."""

    what: str
    figure: float
    unit: str
    budget: float | None
    detail: str
    at_least: bool = False

    def __str__(self) -> str:
        if self.budget is None:
            verdict, bound = "", ""
        else:
            met = self.figure >= self.budget if self.at_least else self.figure <= self.budget
            verdict, bound = "ok" if met else "OVER", f"{'>=' if self.at_least else '<='} {self.budget:g}"
        return f"{self.what:<44} {self.figure:>8.2f} {self.unit:<4} {bound:<8} {verdict:<5} {self.detail}"


def expand(options: Options, folder: Path) -> Iterator[Line]:
    """Budget 1: `expand` against the floor, in each format for programs."""
    found = masters(folder)
    floor = python("-c", FLOOR, *map(str, (*found.configs, found.runners)), folder=found.folder)
    for style in ("json", "jsonl", "ids"):
        both = pair(expanding(found, style), floor, options.rounds)
        yield ratio(f"expand --format {style} / floor", both, 2.0, found.about)


def peer(options: Options, folder: Path) -> Iterator[Line]:
    """Budget 2: `expand` against the peer's generator, which the user names."""
    if options.peer is None:
        yield Line(
            what="expand against the peer: name it with --peer", figure=0, unit="", budget=None, detail="not run"
        )
        return
    found = masters(folder)
    other = Command(words=tuple(shlex.split(options.peer)), folder=found.folder)
    both = pair(other, expanding(found, "json"), max(3, options.rounds // 3))
    detail = f"{both.ours.seconds:.2f} s against {both.other.seconds:.2f} s"
    yield Line(what="peer / expand, time", figure=both.ratio, unit="x", budget=8, detail=detail, at_least=True)
    detail = f"{both.other.mebibytes:.0f} MiB against {both.ours.mebibytes:.0f} MiB"
    share = both.other.mebibytes / both.ours.mebibytes
    yield Line(what="expand / peer, peak memory", figure=share, unit="x", budget=0.5, detail=detail)


def stream(options: Options, folder: Path) -> Iterator[Line]:
    """Budget 3: time linear in the points, memory flat."""
    small, large = options.points
    runs = []
    for points in (small, large):
        found = synthetic(folder, points)
        runs.append(run(expanding(found, "jsonl")))
    growth = (runs[1].seconds / large) / (runs[0].seconds / small)
    detail = f"{runs[0].seconds:.1f} s for {small:,}, {runs[1].seconds:.1f} s for {large:,}"
    yield Line(what="time a point, large / small", figure=growth, unit="x", budget=1.2, detail=detail)
    detail = f"{runs[0].mebibytes:.0f} MiB for {small:,}"
    yield Line(what=f"peak memory of {large:,} points", figure=runs[1].mebibytes, unit="MiB", budget=300, detail=detail)


def diff(options: Options, folder: Path) -> Iterator[Line]:
    """What `diff` of two neighbouring revisions takes, against one `expand` of the newer."""
    repository, about = history(folder)
    one = python("-m", "matrix", "diff", "HEAD~1..HEAD", folder=repository)
    other = python("-m", "matrix", "expand", "--format", "json", folder=repository)
    yield ratio("diff A..B / expand --format json", pair(one, other, options.rounds), 2.5, about)


def log(options: Options, folder: Path) -> Iterator[Line]:
    """Budget 4: `validate_perf_changelog` against the floor."""
    files = changelog(folder)
    if files is None:
        yield Line(what="validate_perf_changelog: no log to read", figure=0, unit="", budget=None, detail="not run")
        return
    base, head = files
    ours = python("-c", VALIDATE, "--bytes-only", "--base-file", str(base), "--head-file", str(head), statuses=(0, 1))
    both = pair(ours, python("-c", FLOOR, str(head)), options.rounds)
    lines = head.read_bytes().count(b"\n")
    yield ratio("validate_perf_changelog / floor", both, 2.0, f"{lines:,} lines")


def help_text(options: Options, _: Path) -> Iterator[Line]:
    """Budget 5: `--help` against importing click."""
    both = pair(python("-m", "matrix", "--help"), python("-c", "import click"), options.rounds)
    yield ratio("matrix --help / import click", both, 1.5, "")


def why(options: Options, folder: Path) -> Iterator[Line]:
    """`why` of a point, `why-not` of one that an option left out and of one that never existed, against `expand`."""
    found = masters(folder)
    plain = expanding(found, "json")
    ids = run_text(expanding(found, "ids")).split()
    name = ids[len(ids) // 2]
    asked = {
        "why ID": (("why", name), 0),
        "why-not ID --trim-conc": (("why-not", name, "--trim-conc"), 0),
        "why-not of no ID": (("why-not", re.sub(r"--c[0-9]+", "--c99991", name)), 1),
    }
    for what, (arguments, status) in asked.items():
        ours = python("-m", "matrix", *arguments, *found.options, folder=found.folder, statuses=(status,))
        yield ratio(f"{what} / expand", pair(ours, plain, options.rounds), 2.5, found.about)


def tab(options: Options, folder: Path) -> Iterator[Line]:
    """Completion at a warm cache against importing click."""
    found = masters(folder)
    files = " ".join(found.options)
    lines = {"a command": ("matrix wh", 1), "an option": ("matrix expand --m", 2)}
    lines["all ids"] = (f"matrix show {files} ", 2 + len(found.options))
    lines["all config keys"] = (f"matrix expand {files} --config-keys ", 3 + len(found.options))
    for what, (line, at) in lines.items():
        ours = python("-c", TAB, str(folder), line, str(at), folder=found.folder)
        run(ours)
        yield ratio(f"Tab at {what} / import click", pair(ours, python("-c", "import click"), options.rounds), 1.5, "")


def report(options: Options, folder: Path) -> Iterator[Line]:
    """The page of 5,000 points, made-up ones and such with recipes: how long it takes to make, and how large it is."""
    page = folder / "report.html"
    for found in (synthetic(folder, 5_000), repeated(folder, 31)):
        making = python("-m", "matrix", "report", *found.options, "-o", str(page))
        run(making)
        seconds = middle([run(making) for _ in range(max(3, options.rounds // 3))]).seconds
        detail = f"{page.stat().st_size / 1e6:.1f} MB of at most 3; {found.about}"
        yield Line(what="report of 5,000 points", figure=seconds, unit="s", budget=2, detail=detail)


def prepare(options: Options, _: Path) -> Iterator[Line]:
    """Budget 6: a warm preparation of a launch, as the whole process of a dry run."""
    if not any((ROOT / "runners/srt-slurm/upstream").glob("*")):
        detail = "not run: git submodule update --init"
        yield Line(what="warm preparation: no submodule", figure=0, unit="", budget=None, detail=detail)
        return
    dry = python("-m", "runners", "launch", POINT, "--dry-run", "--off-cluster")
    run(dry)
    seconds = middle([run(dry) for _ in range(max(3, options.rounds // 3))]).seconds
    yield Line(what="launch --dry-run, warm, whole process", figure=seconds, unit="s", budget=1, detail="")


def following(options: Options, _: Path) -> Iterator[Line]:
    """The runner beside a job: its share of one core, with every program that it starts."""
    from benchmarks.following import cost_of_following
    from tests.slurm.cluster import unavailable

    if reason := unavailable():
        detail = f"not run: {reason}"
        yield Line(what="CPU while following: no Slurm", figure=0, unit="", budget=None, detail=detail)
        return
    cost = cost_of_following(options.follow)
    detail = f"{cost.cpu:.2f} s in {cost.wall:.0f} s, {cost.calls} calls of a real Slurm on this machine included"
    yield Line(what="CPU while following a job", figure=100 * cost.cpu / cost.wall, unit="%", budget=0.5, detail=detail)


MEASURES: Final[dict[str, Callable[[Options, Path], Iterator[Line]]]] = {
    "expand": expand, "peer": peer, "stream": stream, "diff": diff, "log": log, "help": help_text, "why": why,
    "tab": tab, "report": report, "prepare": prepare, "follow": following,
}  # fmt: skip


def python(*words: str, folder: Path = ROOT, statuses: tuple[int, ...] = (0,)) -> Command:
    """A process of this interpreter, in the root of the checkout if not elsewhere."""
    return Command(words=(sys.executable, *words), folder=folder, statuses=statuses)


def run_text(command: Command) -> str:
    """What a command prints."""
    return subprocess.run(command.words, cwd=command.folder, capture_output=True, text=True, check=True).stdout


def expanding(found: Masters, style: str) -> Command:
    """`expand` in the folder of the masters: no repository is there, so nothing is read but what is named."""
    return python("-m", "matrix", "expand", *found.options, "--format", style, folder=found.folder)


def ratio(what: str, both: Pair, budget: float, about: str) -> Line:
    """The median ratio of a pair as a line."""
    detail = f"{both.ours.seconds * 1000:.0f} ms / {both.other.seconds * 1000:.0f} ms, {both.rounds} pairs"
    return Line(what=what, figure=both.ratio, unit="x", budget=budget, detail=f"{detail}; {about}" if about else detail)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; the exit status says that it ran, not that a budget is met."""
    parser = argparse.ArgumentParser(description="Measure speed and memory against the budgets.")
    parser.add_argument("--only", choices=MEASURES, action="append", help="one of them; repeat for several")
    parser.add_argument("--rounds", type=int, default=15, help="counted pairs of each comparison (default 15)")
    parser.add_argument("--points", type=int, nargs=2, default=(100_000, 1_000_000), metavar=("SMALL", "LARGE"))
    parser.add_argument("--peer", help="the command of InferenceX's generator, in the folder of the masters")
    parser.add_argument("--follow", type=int, default=65, metavar="SECONDS", help="length of the job (default 65)")
    given = parser.parse_args(arguments)
    options = Options(rounds=given.rounds, points=tuple(given.points), peer=given.peer, follow=given.follow)
    for name in given.only or MEASURES:
        with tempfile.TemporaryDirectory() as folder:
            for line in MEASURES[name](options, Path(folder)):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
