"""docs/rows.md names every option and every field, and its example is what the command prints."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from matrix.cli.expand import expand
from tests.cli.support import cli
from tests.parity.replay import expand_cli, our_flags

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rows.md").read_text(encoding="utf-8")
SCHEMA: dict[str, Any] = json.loads((ROOT / "matrix" / "schemas" / "row.json").read_text(encoding="utf-8"))


def test_every_option_is_named() -> None:
    files = {"--config", "--runners", "--recipes", "--golden"}
    options = {name for parameter in expand.params for name in parameter.opts} - files
    assert {option for option in options if f"`{option}" not in PAGE} <= {"--allow-empty"}
    assert set(re.findall(r"`(--[a-z][a-z-]+)", PAGE)) - {"--eval", "--eval-", "--on-"} <= options


def test_every_field_is_in_the_table_once() -> None:
    rows = PAGE.partition("## Rows")[2]
    named = [field for line in rows.splitlines() if line.startswith("| `") for field in fields(line)]
    assert sorted(named) == sorted(SCHEMA["properties"])


def fields(line: str) -> list[str]:
    return re.findall(r"`([a-z0-9-]+)`", line.split("|")[1])


def test_the_example_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command, shown) = re.findall(r"^    \$ python -m matrix (.+)\n((?:    .+\n)+)", PAGE, flags=re.MULTILINE)[0]
    assert cli(*shlex.split(command)).out == re.sub("^    ", "", shown, flags=re.MULTILINE)


# -- rows are what their schema says -----------------------------------------------------------------------------------


def shipped() -> Iterator[dict[str, Any]]:
    for mode in ((), ("--no-evals",), ("--evals-only",), ("--all-evals",), ("--trim-conc",), ("--smoke",)):
        yield from cli("expand", "--format", "json", *mode).rows


def recorded(shared: Path, folder: Path) -> Iterator[dict[str, Any]]:
    source = shared / "parity" / "mini"
    (folder / "runners.yaml").write_bytes((source / "runners-newest.yaml").read_bytes())
    for line in gzip.decompress((source / "cases.jsonl.gz").read_bytes()).splitlines():
        case = json.loads(line)
        (folder / "c.yaml").write_text(case["config"], encoding="utf-8")
        outcome = expand_cli(
            "--config",
            "c.yaml",
            "--runners",
            "runners.yaml",
            "--recipes",
            str(source / "recipes"),
            *our_flags(case["flags"]),
        )
        if outcome.out:
            yield from json.loads(outcome.out)


def faults(rows: Iterator[dict[str, Any]], *, least: int) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    listed = list(rows)
    assert len(listed) >= least
    return [f"{row['id']}: {error.message}" for row in listed for error in validator.iter_errors(row)]


def test_rows_of_this_repository_are_what_the_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert faults(shipped(), least=500) == []


def test_rows_of_every_kind_are_what_the_schema_says(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert faults(recorded(shared, tmp_path), least=200) == []
