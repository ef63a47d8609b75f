"""What `matrix check` refuses is refused by every door behind it: the validator, the plan, the launch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from matrix.cli import main
from matrix.cli.main import run
from matrix.errors import RefusedError
from matrix.plan.labels import Mode
from matrix.plan.selection import plan_selection
from matrix.points.evals import EvalMode
from matrix.points.pipeline import expand
from matrix.points.request import Filters, Request
from matrix.workspace import open_workspace
from runners.cli.main import main as runners
from runners.target import target_of
from tests.changelog.support import BASE, HISTORY, entry, log
from tests.checks.support import FILES, GOLDEN
from tests.checks.test_breaks import BREAKS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.checks.breaks import Break
    from tests.checks.support import Repository

KEYS: Final = ("mu-fp4-mi355x-atom-disagg-agentic", "nu-fp8-mi355x-sglang-disagg-mtp", "xi-fp16-mi300x-vllm-agg")
SETTINGS: Final = (
    '[tool.matrix]\nmasters = ["master.yaml"]\nrunners = "runners.yaml"\nrecipes = ["recipes"]\ngolden = "golden"\n'
)
LOGS: Final = ("--base-file", "base.yaml", "--head-file", "head.yaml", "--pr", "77")
ERRORS: Final = [case for case in BREAKS if not case.warns]
POINT: Final = "xi-fp16-mi300x-vllm-agg--128-32--2w-tp2--c4"


@pytest.fixture
def swept(repository: Repository) -> Repository:
    """The small repository, with a change of the log that runs all of it."""
    repository.write("pyproject.toml", SETTINGS)
    (repository.folder / "base.yaml").write_bytes(BASE)
    (repository.folder / "head.yaml").write_bytes(log(*HISTORY, *(entry(key) for key in KEYS)))
    return repository


def break_(repository: Repository, case: Break) -> None:
    for name, line, old, new in sorted(case.edits, key=lambda edit: -edit[1]):
        repository.edit(name, line, old, new)


def validated(repository: Repository, *logs: str) -> tuple[int, list[dict[str, str]]]:
    """Exit status of the validator, and the errors that it tells a program."""
    arguments = ["changelog", "check", *(logs or LOGS), *FILES, *GOLDEN, "--format", "json"]
    status = run(main.matrix, arguments, prog="matrix")
    found = json.loads(repository.capsys.readouterr().out)["findings"]
    return status, [one for one in found if one["severity"] == "error"]


def planned(repository: Repository) -> tuple[int, list[str]]:
    """Exit status of the plan, and the errors that it tells people."""
    status = run(main.matrix, ["plan", *LOGS, *FILES, *GOLDEN], prog="matrix")
    return status, [line for line in repository.capsys.readouterr().err.splitlines() if ": warning: " not in line]


def launched(folder: Path) -> set[tuple[str, str, int]]:
    """Rule, file and line of all that the launches of all points are refused for."""
    space = open_workspace(str(folder))
    found = set()
    for point in expand(space.configs, space.facts, space.policy, Request(evals=EvalMode.NONE)).points:
        try:
            target_of(point.id, space)
        except RefusedError as error:
            found |= {
                (one.rule, one.span.file.removeprefix(f"{folder}/"), one.span.line) if one.span else (one.rule, "", 0)
                for one in error.findings
            }
    return found


@pytest.mark.parametrize("case", ERRORS, ids=str)
def test_every_door_refuses_what_the_check_refuses(case: Break, swept: Repository) -> None:
    break_(swept, case)
    answer = swept.check()
    wanted = [one for one in answer.findings if one["severity"] == "error"]
    assert answer.status == 1
    bare = [{name: value for name, value in one.items() if name != "points"} for one in wanted]
    assert validated(swept) == (1, bare)
    status, told = planned(swept)
    assert status == 1
    assert [line for line in told if any(one["message"] in line for one in wanted)]
    assert len(told) == len(wanted), told
    places = {(one["rule"], one.get("file", ""), one.get("line", 0)) for one in wanted}
    assert places <= launched(swept.folder)


def test_every_door_lets_the_right_repository_in(swept: Repository) -> None:
    assert validated(swept) == (0, [])
    assert planned(swept) == (0, [])
    assert launched(swept.folder) == set()


def narrow(repository: Repository) -> None:
    """The recipe of the last config admits one request a worker, and its point sends four to two of them."""
    repository.edit("recipes/xi.yaml", 15, "max-num-seqs: 8", "max-num-seqs: 1")


def test_a_waiver_opens_every_door(swept: Repository) -> None:
    narrow(swept)
    assert swept.check().rules == {"recipe-admission"}
    assert [one["rule"] for one in validated(swept)[1]] == ["recipe-admission"]
    assert {rule for rule, _, _ in launched(swept.folder)} == {"recipe-admission"}
    text = (swept.folder / "master.yaml").read_text(encoding="utf-8")
    waiver = '            check-waivers: [{rule: recipe-admission, reason: "the queue is measured"}]\n'
    swept.write("master.yaml", text.replace("          - conc-list: [4]\n", f"          - conc-list: [4]\n{waiver}"))
    assert swept.check().findings == []
    assert validated(swept) == (0, [])
    assert planned(swept) == (0, [])
    assert launched(swept.folder) == set()


def test_only_what_a_plan_runs_is_looked_at(swept: Repository) -> None:
    """What is wrong with another config is that config's to mend: the check of the repository is red for it."""
    narrow(swept)
    (swept.folder / "head.yaml").write_bytes(log(*HISTORY, entry(KEYS[0])))
    assert swept.check().status == 1
    assert validated(swept) == (0, [])


def test_a_sweep_by_hand_is_a_door_too(swept: Repository) -> None:
    narrow(swept)
    space = open_workspace(str(swept.folder))
    mode = Mode(label="full-sweep", canary=False, fail_fast=False, trim=False)
    _, found = plan_selection(space, Request(ids=(POINT,)), mode)
    assert [(one.rule, one.severity) for one in found] == [("recipe-admission", "error")]
    _, found = plan_selection(space, Request(filters=Filters(config_keys=(KEYS[0],))), mode)
    assert found == ()


def test_what_the_log_and_what_the_configs_get_wrong_come_together(swept: Repository) -> None:
    narrow(swept)
    (swept.folder / "head.yaml").write_bytes(log(*HISTORY, entry(KEYS[2]), entry("nobody")))
    assert sorted(one["rule"] for one in validated(swept)[1]) == ["changelog-key", "recipe-admission"]


def test_the_command_that_launches_refuses_before_anything_is_made(swept: Repository) -> None:
    narrow(swept)
    wanted = swept.check().only("recipe-admission")
    with pytest.raises(SystemExit) as caught:
        runners(["launch", POINT, "--dry-run", "--off-cluster"])
    err = swept.capsys.readouterr().err
    assert caught.value.code == 1
    assert f"{wanted['file']}:{wanted['line']}:{wanted['column']}: recipe-admission: {wanted['message']}" in err
