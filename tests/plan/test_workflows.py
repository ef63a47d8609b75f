"""Workflows: ours are as their templates have them, drift is shown, foreign files are left alone, faults are found."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.cli.main import matrix, run
from matrix.config.source import Map, load
from matrix.plan.labels import Registry, load_labels
from matrix.plan.workflow_lint import lint
from matrix.plan.workflows import TEMPLATES, compare, render

if TYPE_CHECKING:
    from pathlib import Path

PIN: Final = re.compile(r"^\s*(?:- )?uses: (\S+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$")


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    return load_labels(str(root / "configs/labels.yaml"))


@pytest.fixture
def lab(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A foreign repository with labels and nothing else."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/labels.yaml").write_bytes((root / "configs/labels.yaml").read_bytes())
    (tmp_path / "configs/runners.yaml").write_text("labels: {}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workflows(*words: str) -> int:
    return run(matrix, ["workflows", *words], prog="matrix")


def test_ours_are_as_their_templates_have_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert workflows("check") == 0, capsys.readouterr().err
    assert {path.name for path in TEMPLATES.glob("*.yml")} <= {
        path.name for path in (root / ".github/workflows").glob("*")
    }


def test_written_once_they_are_right(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert workflows("check") == 1
    assert capsys.readouterr().err.count("workflow-drift: this workflow is missing. fix: matrix workflows write") == 5
    assert workflows("write") == 0
    assert workflows("check") == 0
    names = sorted(path.name for path in (lab / ".github/workflows").iterdir())
    assert names == ["benchmark.yml", "pull-request.yml", "reuse.yml", "run-sweep.yml", "sweep-shard.yml"]
    assert "matrix-runner==" in (lab / ".github/workflows/benchmark.yml").read_text(encoding="utf-8")
    before = (lab / ".github/workflows/benchmark.yml").stat().st_mtime_ns
    assert workflows("write") == 0
    assert (lab / ".github/workflows/benchmark.yml").stat().st_mtime_ns == before


def test_their_place_is_a_setting(lab: Path) -> None:
    (lab / "pyproject.toml").write_text('[tool.matrix]\nworkflows = "elsewhere"\n', encoding="utf-8")
    assert workflows("write") == 0
    assert (lab / "elsewhere/run-sweep.yml").exists()


def edited(lab: Path, name: str, old: str, new: str) -> Path:
    assert workflows("write") == 0
    path = lab / ".github/workflows" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_drift_is_shown_with_its_repair(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited(lab, "benchmark.yml", "timeout-minutes: 7200", "timeout-minutes: 5")
    capsys.readouterr()
    assert workflows("check") == 1
    out, err = capsys.readouterr()
    assert "\n-    timeout-minutes: 5 " in out
    assert "\n+    timeout-minutes: 7200 " in out
    assert "differs from its template. fix: matrix workflows write" in err
    assert workflows("write") == 0
    assert workflows("check") == 0


def test_a_label_more_is_drift(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert workflows("write") == 0
    labels = lab / "configs/labels.yaml"
    text = labels.read_text(encoding="utf-8")
    labels.write_text(text.replace("  sweep-enabled:", "  quick-sweep:"), encoding="utf-8")
    capsys.readouterr()
    assert workflows("check") == 1
    err = capsys.readouterr().err
    assert "workflow-drift" in err
    assert "workflow-label: the label sweep-enabled is compared with" in err
    assert "lacks quick-sweep" in err


OLD: Final = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"


@pytest.mark.parametrize(
    ("pin", "right"),
    [
        (f"actions/checkout@{'a' * 40} # v7.0.2", True),
        (f"actions/checkout@{'a' * 40} # v10.0.0", True),
        (f"actions/checkout@{'a' * 40} # v7.0.1", False),
        (f"actions/checkout@{'a' * 40} # v6.9.9", False),
        (f"actions/checkout@{'a' * 40}", False),
        ("actions/checkout@v8", False),
        (f"evil/checkout@{'a' * 40} # v9.0.0", False),
    ],
)
def test_newer_pins_are_no_drift(lab: Path, pin: str, right: bool) -> None:
    path = edited(lab, "sweep-shard.yml", OLD, pin)
    assert workflows("check") == int(not right)
    assert workflows("write") == 0
    text = path.read_text(encoding="utf-8")
    assert (pin in text) is right
    assert (OLD in text) is not right


def test_foreign_files_are_left_alone(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = lab / ".github/workflows"
    folder.mkdir(parents=True)
    (folder / "benchmark.yml").write_text("name: mine\n", encoding="utf-8")
    (folder / "other.yml").write_text("name: other\n", encoding="utf-8")
    assert workflows("write") == 1
    assert "benchmark.yml: workflow-foreign" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["benchmark.yml", "other.yml"]
    assert (folder / "benchmark.yml").read_text(encoding="utf-8") == "name: mine\n"
    (folder / "benchmark.yml").write_bytes(b"\xff\xfe")
    assert workflows("check") == 1
    (folder / "benchmark.yml").unlink()
    assert workflows("write") == 0
    assert (folder / "other.yml").read_text(encoding="utf-8") == "name: other\n"


def test_no_registry_no_workflows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert workflows("write") == 1
    assert list(tmp_path.iterdir()) == []


# -- what holds for each of ours --------------------------------------------------------------------------------------


def jobs(root: Path) -> list[tuple[str, Any]]:
    found = []
    for path in sorted((root / ".github/workflows").glob("*.yml")):
        document = load(path).root
        assert document["permissions"] == {}, path.name
        found += [(f"{path.name} {name}", job) for name, job in document["jobs"].items()]
    return found


MORE: Final = {
    "run-sweep.yml plan": {"pull-requests": "read", "actions": "read"},
    "run-sweep.yml comment": {"pull-requests": "write"},
    "run-sweep.yml collect": {"actions": "read"},
    "reuse.yml answer": {"pull-requests": "write", "actions": "read"},
}
"""What a job may do besides reading the repository. Those that write run nothing but the comment."""


def test_permissions_are_least_and_time_is_bounded(root: Path) -> None:
    for name, job in jobs(root):
        assert job["permissions"] == {"contents": "read"} | MORE.get(name, {}), name
        assert "secrets" not in job, name
        if "uses" not in job:
            assert 0 < job["timeout-minutes"] <= 7200, name


def test_actions_are_pinned_and_leave_no_credentials(root: Path) -> None:
    for path in sorted((root / ".github/workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            if "uses: " in line and "$/.github/" not in line:
                assert PIN.match(line), f"{path.name}: {line}"
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")
        assert "secrets." not in text


def test_no_expression_reaches_a_shell(root: Path) -> None:
    for name, job in jobs(root):
        for step in job.get("steps", ()):
            assert "${{" not in step.get("run", ""), name
            if "$" in step.get("run", ""):
                for word in re.findall(r"\$[A-Z_]+", step["run"]):
                    assert f'"{word}' in step["run"], f"{name}: {word} is not quoted"


def test_every_script_is_one_that_bash_reads(root: Path) -> None:
    for name, job in jobs(root):
        for step in job.get("steps", ()):
            result = subprocess.run(
                ["bash", "-n"], input=step.get("run", ""), capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, f"{name}: {result.stderr}"


def test_the_planning_job_knows_no_secret_and_runs_hosted(root: Path) -> None:
    for name, job in jobs(root):
        if "runs-on" in job and name != "benchmark.yml benchmark":
            assert job["runs-on"] == "ubuntu-24.04", name


def test_every_way_to_our_machines_asks_for_the_repository(root: Path) -> None:
    guard = "github.event.pull_request.head.repo.full_name == github.repository"
    for name, job in jobs(root):
        if "uses" in job or name == "benchmark.yml benchmark":
            assert guard in job["if"], name


def test_templates_do_not_grow_with_the_plan(registry: Registry, root: Path) -> None:
    assert all(len(workflow.text) < 15_000 for workflow in render(registry, root))
    assert all(state.right for state in compare(root / ".github/workflows", render(registry, root)))


# -- our own lint -----------------------------------------------------------------------------------------------------

OF_A: Final = "\n    strategy:\n      matrix:\n        x: ${{ fromJSON(needs.a.outputs.x) }}"
PLANTED: Final[dict[str, tuple[str, str]]] = {
    "matrix without a condition": ("    strategy: {matrix: {include: '${{ fromJSON(needs.a.outputs.x) }}'}}", "matrix"),
    "whole matrix": ("    strategy:\n      matrix: ${{ fromJson(needs.a.outputs.x) }}", "matrix"),
    "one vector": ("    strategy:\n      matrix:\n        x: ${{ fromJSON(needs.a.outputs.x) }}", "matrix"),
    "of an input": ("    strategy:\n      matrix:\n        x: ${{ fromJSON(inputs.x) }}", "matrix"),
    "guard by text": (f"    if: needs.a.outputs.x != '[]'{OF_A}", "matrix"),
    "guard of another job": (f"    if: needs.b.outputs.has == 'true'{OF_A}", "matrix"),
    "guard that can be passed by": (f"    if: needs.a.outputs.has == 'true' || always(){OF_A}", "matrix"),
    "long run": (f"    run: |\n      echo ${{{{ github.sha }}}} {'x' * 21_000}", "expression"),
    "long condition": (f"    if: \"'{'x' * 21_000}' == 'x'\"", "expression"),
    "misspelt label": ("    if: github.event.label.name == 'full-sweep-failfast'", "label"),
    "label of the past": (
        "    if: github.event.label.name == 'all-evals' && github.event.label.name != 'sweepy'",
        "label",
    ),
    "label among all": ("    if: contains(github.event.pull_request.labels.*.name, 'all-eval')", "label"),
    "list with a stranger": (
        "    if: contains(fromJSON('[\"all-evals\", \"nonsense\"]'), github.event.label.name)",
        "label",
    ),
}  # fmt: skip

HARMLESS: Final = {
    "guarded": (
        "    if: >-\n      !cancelled() && needs.a.outputs.has == 'true' && (a || b)\n    strategy:\n"
        "      matrix:\n        x: ${{ fromJSON(needs.a.outputs.x) }}"
    ),
    "guarded in an expression": (
        "    if: ${{ needs.a.outputs.has == 'true' }}\n    strategy:\n      matrix: ${{ fromJSON(needs.a.outputs.x) }}"
    ),
    "guarded input": ("    if: inputs.has && true\n    strategy:\n      matrix:\n        x: ${{ fromJSON(inputs.x) }}"),
    "written out": "    strategy:\n      matrix:\n        x: [1, 2]",
    "long and plain": f"    run: echo {'x' * 30_000}",
    "labels of others": "    if: github.event.label.name == 'documentation'",
    "ours": "    if: github.event.label.name == 'All-Evals'",
    "part of a name": "    if: contains(github.event.label.name, 'sweep')",
    "unclear elsewhere": "    env: {a: yes, b: 3.10, c: 010}",
}


def linted(tmp_path: Path, registry: Registry, body: str) -> list[str]:
    path = tmp_path / "w.yml"
    path.write_text(f"on: push\njobs:\n  a: {{runs-on: x}}\n  j:\n    runs-on: x\n{body}\n", encoding="utf-8")
    found = list(lint(str(path), registry))
    assert all(finding.span is not None and finding.span.line >= 6 for finding in found)
    return [finding.rule for finding in found]


@pytest.mark.parametrize("what", PLANTED)
def test_planted_faults_are_found(what: str, tmp_path: Path, registry: Registry) -> None:
    body, rule = PLANTED[what]
    assert f"workflow-{rule}" in linted(tmp_path, registry, body)


@pytest.mark.parametrize("what", HARMLESS)
def test_harmless_ones_are_not(what: str, tmp_path: Path, registry: Registry) -> None:
    assert linted(tmp_path, registry, HARMLESS[what]) == []


def test_files_that_are_too_large(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "w.yml"
    path.write_text(f"on: push\n# {'x' * 500_000}\n", encoding="utf-8")
    assert [finding.rule for finding in lint(str(path), registry)] == ["workflow-size"]


def test_the_key_on_stays_a_word(root: Path) -> None:
    document = load(root / ".github/workflows/run-sweep.yml").root
    assert isinstance(document, Map)
    assert set(document["on"]) == {"pull_request", "workflow_dispatch"}
