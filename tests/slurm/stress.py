"""Repeat the tests of this folder, and print how each of them fared: ``make stress``, ``make stress ARGS="--times 3"``.

What passes nine times out of ten has a race in it, here or in what is tested. The files run side by side, as in
`make test`, each on a cluster of its own: a busy machine shows more. Ends with 1 when any run was not a pass.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from statistics import median
from subprocess import run
from typing import Final, NamedTuple
from xml.etree import ElementTree

import click

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
BESIDE: Final = ("-n", "auto", "--dist", "loadfile")
OUTCOMES: Final = ("passed", "failed", "skipped")


class Result(NamedTuple):
    """One test in one round."""

    test: str
    outcome: str
    seconds: float


def results(report: Path) -> list[Result]:
    """What a report of pytest in JUnit's format holds."""
    found: list[Result] = []
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - the file is pytest's own
        module = case.get("classname", "").rpartition(".")[2].removeprefix("test_contract_")
        marks = {child.tag for child in case}
        outcome = "failed" if marks & {"failure", "error"} else "skipped" if "skipped" in marks else "passed"
        found.append(Result(f"{module}: {case.get('name', '')}", outcome, float(case.get("time", 0))))
    return found


def repeat(times: int, arguments: tuple[str, ...]) -> tuple[list[Result], list[int]]:
    """All results of all rounds, and the exit status of each round."""
    found: list[Result] = []
    statuses: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, times + 1):
            report = Path(folder) / f"{number}.xml"
            output = Path(folder) / f"{number}.txt"
            argv = [sys.executable, "-m", "pytest", str(HERE), *BESIDE, f"--junitxml={report}", *arguments]
            with output.open("w") as file:
                done = run(
                    argv, cwd=ROOT, env=os.environ | {"REQUIRE_SLURM": "1"}, stdout=file, stderr=file, check=False
                )
            lines = output.read_text().splitlines()
            counts = [line.strip("= ") for line in lines if re.search(r" in [0-9.]+s\b", line)]
            click.echo(f"round {number} of {times}: {counts[-1] if counts else 'pytest did not end'}", err=True)
            if done.returncode:
                click.echo("\n".join(lines), err=True)
            statuses.append(done.returncode)
            found += results(report) if report.exists() else []
    return found, statuses


def table(found: list[Result]) -> str:
    """One row a test, slowest first; a test that failed comes before all that did not."""
    from tabulate import tabulate

    tests: dict[str, list[Result]] = {}
    for result in found:
        tests.setdefault(result.test, []).append(result)
    rows: list[tuple[str, int, int, int, float, float, float]] = []
    for test, rounds in tests.items():
        passed, failed, skipped = (sum(each.outcome == kind for each in rounds) for kind in OUTCOMES)
        seconds = [each.seconds for each in rounds]
        rows.append((test, passed, failed, skipped, min(seconds), median(seconds), max(seconds)))
    rows.sort(key=lambda row: (-row[2], -row[5]))
    headers = ["test", *OUTCOMES, "min s", "median s", "max s"]
    return tabulate(rows, headers=headers, floatfmt=".1f")


@click.command()
@click.option("--times", type=click.IntRange(min=1), default=10, show_default=True, help="Number of rounds.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(times: int, arguments: tuple[str, ...]) -> None:
    """Repeat the tests on a real Slurm cluster; what follows `--` goes to pytest."""
    found, statuses = repeat(times, arguments)
    click.echo(table(found))
    bad = sum(map(bool, statuses))
    click.echo(f"{len(statuses)} rounds, {bad} of them not a pass")
    sys.exit(bool(bad or not found))


if __name__ == "__main__":
    main()
