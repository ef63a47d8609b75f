"""The plan of a change and a plan file, asked about in real repositories; each answer is acted on and asked again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.answers.edit import Action
from tests.answers.edits import apply, edit_of, relabeled
from tests.changelog.support import BASE, Repository
from tests.cli.support import cli
from tests.plan.events import labeled, pull
from tests.plan.support import RECIPE, added, multi, of, single
from tests.plan.support import commit as commit_files

if TYPE_CHECKING:
    from matrix.answers.edit import Edit

ROOT: Final = Path(__file__).parents[2]
ROLES: Final = ((1, "[8]", "override_a"), (8, "[32]", "override_b"))
OLD: Final = single("alpha", "[4, 16, 64]", "[4, 32]") + multi("beta", *ROLES, recipe="r.yaml")
NEW: Final = OLD.replace("image: i:1", "image: i:2").replace("[4, 16, 64]", "[4, 16, 64, 128]")
LONGER: Final = OLD.replace("[4, 16, 64]", "[4, 16, 64, 128]")
C16, C128 = "alpha--8k1k--tp8--c16", "alpha--8k1k--tp8--c128"
C4, AGENTIC = "alpha--8k1k--tp8--c4", "alpha--agentic--tp8--c32"
LOW, HIGH = "beta--8k1k--1p-tp8-1d-tp8--c8--override_a", "beta--8k1k--1p-tp8ep8-1d-tp8--c32--override_b"
FULL, TRIMMED = "full-sweep-enabled", "sweep-enabled"


def commit(scratch: Repository, masters: str, log: bytes = BASE) -> None:
    """Search space, recipe and log; the recipe has the image of the master."""
    image = "i:2" if "i:2" in masters else "i:1"
    commit_files(scratch, masters, log, recipe=RECIPE.replace("i:1", image).replace("path: m,", "path: beta,"))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """``main`` has the old search space, and the labels that are shipped; a branch is checked out."""
    repository = Repository(tmp_path / "scratch")
    (repository.folder / "configs").mkdir()
    shutil.copy(ROOT / "configs" / "labels.yaml", repository.folder / "configs")
    commit(repository, OLD)
    repository.git("switch", "--quiet", "--create", "branch")
    monkeypatch.chdir(repository.folder)
    return repository


def both(*fields: str) -> bytes:
    """A log with entries for both configs; the first has fields of its own."""
    return added(of("alpha", **dict(field.split("=") for field in fields)), of("beta"))


def ask(name: str, *words: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(cli("why-not", name, *words, "--format", "json").out)
    return record


def first_edit(record: dict[str, Any]) -> Edit:
    """What cures the first cause."""
    return edit_of(record["causes"][0]["edits"][0])


LINES: Final = {
    "no entry": (LONGER, BASE, C16, "changelog"),
    "an entry for another config": (NEW, added(of("beta")), C16, "changelog"),
    "another scenario": (NEW, both("scenario_type=[agentic-coding]"), C16, "scenario-type"),
    "another scenario, agentic": (NEW, both("scenario_type=[fixed-seq-len]"), AGENTIC, "scenario-type"),
    "evals-only": (NEW, both("evals_only=true"), C16, "evals-only"),
    "all-evals": (NEW, both("all_evals=true"), AGENTIC, "all-evals"),
    "no-evals": (NEW, both("no_evals=true"), f"{C128}--eval", "no-evals"),
    "append-only": (LONGER, added(of("alpha", append_only="true")), C16, "append-only"),
    "append-only, accuracy": (LONGER, added(of("alpha", append_only="true")), f"{C128}--eval", "append-only"),
    "eval-min-prefill-ep": (
        NEW, added(of("beta", eval_min_prefill_ep=16), of("alpha")), f"{HIGH}--eval", "eval-min-prefill-ep",
    ),
    "eval-min-prefill-ep of the entry that has its accuracy runs": (
        NEW.replace("[8]", "[64]"), added(of("beta", no_evals="true"), of("beta", eval_min_prefill_ep=2), of("alpha")),
        LOW.replace("c8", "c64") + "--eval", "eval-min-prefill-ep",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_the_log_brings_it_back(name: str, scratch: Repository) -> None:
    masters, log, wanted, rule = LINES[name]
    commit(scratch, masters, log)
    record = ask(wanted, "--base-ref", "main")
    assert (record["answer"], record["causes"][0]["rule"], len(record["causes"])) == ("absent", rule, 1), record[
        "causes"
    ]
    edit = first_edit(record)
    assert edit.place is not None
    assert edit.place.file == "perf-changelog.yaml"
    apply(edit, scratch.folder)
    scratch.commit()
    after = json.loads(cli("why", wanted, "--base-ref", "main", "--format", "json").out)
    assert after["answer"] == "present", after
    entry = next(fact for fact in after["kept"] if fact["rule"] == "changelog")
    line = int(entry["place"].split(":")[1])
    assert (scratch.folder / "perf-changelog.yaml").read_text(encoding="utf-8").split("\n")[line - 1].startswith("- ")
    assert wanted in cli("plan", "--base-ref", "main", "--format", "json").out


def test_every_append_only_entry_is_named_the_last_first(scratch: Repository) -> None:
    grown = LONGER.replace("conc-list: [8]", "conc-list: [8, 16]")
    commit(scratch, grown, added(of("alpha", append_only="true"), of("beta", append_only="true")))
    causes = ask(C16, "--base-ref", "main")["causes"]
    # One of them alone beside an entry that is not would be refused.
    assert [(cause["rule"], cause["reason"]) for cause in causes] == [
        ("append-only", "entry 5 is append-only, and so is every entry of this change"),
        ("append-only", "entry 4: the base has it"),
    ]
    for cause in causes:
        apply(edit_of(cause["edits"][0]), scratch.folder)
    scratch.commit()
    assert ask(C16, "--base-ref", "main")["answer"] == "present"


@pytest.mark.parametrize("wanted", [C128, LOW])
def test_the_working_tree_is_asked_before_anything_is_committed(wanted: str, scratch: Repository) -> None:
    commit(scratch, NEW)
    words = ("--worktree", "--base-ref", "main")
    apply(first_edit(ask(wanted, *words)), scratch.folder)
    record = ask(wanted, *words)
    if record["answer"] != "present":  # the other config changed too, and wants its own entry
        refused = [cause for cause in record["causes"] if cause["rule"] == "refused"]
        assert ["changelog-uncovered" in cause["reason"] for cause in refused] == [True]
        other = LOW if wanted == C128 else C128
        apply(first_edit(ask(other, *words)), scratch.folder)
    assert ask(wanted, *words)["answer"] == "present"


LABELS: Final = {
    "trimmed": ([TRIMMED], C16, "trim-conc"),
    "trimmed, agentic": ([TRIMMED], AGENTIC, "trim-conc"),
    "accuracy alone": ([FULL, "evals-only"], C16, "evals-only"),
    "not picked": ([FULL], f"{C16}--eval", "evals"),
    "below the minimum": ([FULL], f"{C4}--eval", "evals"),
    "a modifier alone": (["all-evals"], C16, "label"),
    "both": ([TRIMMED, "evals-only"], C4, "evals-only"),
}


@pytest.mark.parametrize("name", LABELS)
def test_a_label_brings_it_back(name: str, scratch: Repository) -> None:
    labels, wanted, rule = LABELS[name]
    commit(scratch, NEW, both())

    def words(names: list[str]) -> list[str]:
        return ["--base-ref", "main", *(word for label in names for word in ("--label", label))]

    record = ask(wanted, *words(labels))
    assert (record["answer"], record["causes"][0]["rule"]) == ("absent", rule)
    edit = first_edit(record)
    assert edit.action is Action.LABEL
    after = ask(wanted, *words(relabeled(list(labels), edit)))
    assert after["answer"] == "present"
    assert any(fact["rule"] == "label" for fact in after["kept"])


def test_what_the_change_removed_is_put_back(scratch: Repository) -> None:
    commit(scratch, NEW.replace("[4, 16, 64, 128]", "[4, 64, 128]"), both())
    record = ask(C16, "--base-ref", "main")
    (cause,) = record["causes"]
    assert (record["answer"], cause["rule"]) == ("absent", "removed")
    assert cause["place"].startswith("main:configs/amd-master.yaml:")
    apply(edit_of(cause["edits"][0]), scratch.folder)
    scratch.commit()
    assert ask(C16, "--base-ref", "main")["answer"] == "present"


def test_what_neither_revision_has_never_existed(scratch: Repository) -> None:
    commit(scratch, NEW, both())
    outcome = cli("why-not", "alpha--8k1k--tp8--c17", "--base-ref", "main", "--format", "json")
    record = json.loads(outcome.out)
    assert (outcome.status, record["answer"]) == (1, "undeclared")
    assert record["nearest"][0]["id"] == C16
    apply(first_edit(record), scratch.folder)
    scratch.commit()
    assert ask("alpha--8k1k--tp8--c17", "--base-ref", "main")["answer"] == "present"


def test_a_refused_change_runs_nothing_and_says_each_fault(scratch: Repository) -> None:
    commit(scratch, NEW, added(of("alpha"), of("nowhere")))
    causes = ask(C16, "--base-ref", "main")["causes"]
    assert {cause["rule"] for cause in causes} == {"refused"}
    assert [cause["place"].split(":")[0] for cause in causes if "changelog-key" in cause["reason"]] == [
        "perf-changelog.yaml"
    ]
    assert any("changelog-uncovered" in cause["reason"] for cause in causes)


def test_a_change_whose_plan_was_made_and_refused_runs_nothing(scratch: Repository) -> None:
    commit(scratch, LONGER.replace("runner: cluster:mi355x-a", "runner: cluster:mi355x-z", 1), added(of("alpha")))
    assert cli("plan", "--base-ref", "main").status == 1
    record = ask(C16, "--base-ref", "main")
    assert {cause["rule"] for cause in record["causes"]} == {"refused"}
    assert any("runner-unknown" in cause["reason"] for cause in record["causes"])
    assert "0 of 9 matching points are in the plan of main..HEAD" in cli("why-not", "a*", "--base-ref", "main").out


def test_a_pattern_is_answered_by_cause(scratch: Repository) -> None:
    commit(scratch, NEW, added(of("alpha", no_evals="true"), of("beta")))
    outcome = cli("why-not", "*", "--base-ref", "main", "--label", TRIMMED)
    assert outcome.status == 0
    assert outcome.out.count("not in the plan of main..HEAD") == outcome.out.count("to have it") == 4
    assert outcome.out.splitlines()[-1] == "5 of 20 matching points are in the plan of main..HEAD"
    record = json.loads(cli("why-not", "alpha*", "--base-ref", "main", "--label", TRIMMED, "--format", "json").out)
    assert (record["version"], record["present"], len(record["absent"])) == (1, 2, 7)
    nothing = cli("why-not", "gamma*", "--base-ref", "main")
    assert (nothing.status, nothing.out, nothing.err) == (3, "", "matrix: no point matches gamma*.\n")


def test_each_shipped_entry_is_asked_for_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(tmp_path / "shipped")
    shutil.copytree(ROOT / "configs", repository.folder / "configs")
    monkeypatch.chdir(repository.folder)
    shipped = (ROOT / "perf-changelog.yaml").read_text(encoding="utf-8")
    head, first, *rest = re.split(r"^(?=- config-keys:)", shipped, flags=re.MULTILINE)
    repository.commit(f"{head}{first}".encode())
    entries = [re.sub(r"pr-link: .*", "pr-link: XXX", entry) for entry in rest]
    words = ("--worktree", "--base-ref", "main", "--format", "json")
    ids = cli("expand", "--format", "ids").out.split()
    for number, entry in enumerate(entries):
        key = entry.splitlines()[1].removeprefix("    - ")
        wanted = next(name for name in ids if name.startswith(f"{key}--"))
        repository.write("".join([head, first, *entries[:number], *entries[number + 1 :]]).encode())
        (cause,) = json.loads(cli("why-not", wanted, *words).out)["causes"]
        assert (cause["rule"], cause["reason"]) == ("changelog", f"no new entry names {key}")
        apply(edit_of(cause["edits"][0]), repository.folder)
        assert json.loads(cli("why", wanted, *words).out)["answer"] == "present", wanted
    assert len(entries) == 9


def test_places_are_those_of_the_repository(scratch: Repository) -> None:
    commit(scratch, NEW, both())
    record = json.loads(cli("why", LOW, "--base-ref", "main", "--format", "json").out)
    places = [place for source in record["sources"].values() for place in source["places"]]
    assert len(places) > 10
    for place in places:
        file, line, _ = place.split(":")
        assert int(line) <= (scratch.folder / file).read_text(encoding="utf-8").count("\n")
    assert record["without"]["place"]["file"] == "configs/amd-master.yaml"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--label", "full-sweep-enable"), "did you mean full-sweep-enabled or"),
        (("--label", "skip_queue"), "jobs have no queue priority here"),
        (("--label", FULL, "--label", TRIMMED), "ask for different sweeps"),
        (("--label", FULL, "--min-conc", "8"), "do not go with"),
        (("--plan", "plan.json", "--label", FULL), "--plan says itself"),
        (("--plan", "plan.json", "--trim-conc"), "do not go with"),
    ],
)
def test_what_does_not_go_together_is_a_wrong_command_line(
    words: tuple[str, ...], said: str, scratch: Repository
) -> None:
    commit(scratch, NEW, both())
    outcome = cli("why", C16, *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err


# -- plan files --------------------------------------------------------------------------------------------------------


def planned(scratch: Repository, *labels: str) -> dict[str, Any]:
    """The plan file of an event at the branch's head, as the planning job writes it."""
    head, base = (scratch.git("rev-parse", name).strip() for name in ("HEAD", "main"))
    payload = labeled(labels[-1], *labels[:-1]) if labels else pull("synchronize")
    payload["pull_request"]["head"]["sha"], payload["pull_request"]["base"]["sha"] = head, base
    Path("../event.json").write_text(json.dumps(payload), encoding="utf-8")
    outcome = cli("plan", "--event", "../event.json", "--permission", "write", "--output", "../plan.json")
    assert outcome.status == 0, outcome
    record: dict[str, Any] = json.loads(Path("../plan.json").read_text(encoding="utf-8"))
    return record


def test_a_plan_file_says_who_let_the_point_run(scratch: Repository) -> None:
    commit(scratch, NEW, both())
    planned(scratch, FULL)
    record = ask(C16, "--plan", "../plan.json")
    kept = {fact["rule"]: fact["text"] for fact in record["kept"]}
    assert record["answer"] == "present"
    assert kept["label"] == f"{FULL} runs it"
    assert kept["decision"].startswith(f"run: labeled by ada, write: {FULL}")
    assert kept["approval"].startswith("by ada, who has write permission, for commit ")
    assert record["sources"]["image"]["places"] == ["configs/amd-master.yaml:2:10"]


@pytest.mark.parametrize(
    ("labels", "wanted", "rule"),
    [
        ([], C16, "decision"),
        (["all-evals"], C16, "decision"),
        ([TRIMMED], C16, "trim-conc"),
        ([FULL, "evals-only"], C16, "evals-only"),
        ([FULL], f"{C16}--eval", "evals"),
    ],
)
def test_a_label_brings_a_point_into_the_next_plan(
    labels: list[str], wanted: str, rule: str, scratch: Repository
) -> None:
    commit(scratch, NEW, both())
    planned(scratch, *labels)
    record = ask(wanted, "--plan", "../plan.json")
    assert (record["answer"], record["causes"][0]["rule"]) == ("absent", rule)
    planned(scratch, *sorted(relabeled(labels, first_edit(record)), reverse=True))
    assert ask(wanted, "--plan", "../plan.json")["answer"] == "present"


def test_what_is_reused_says_of_which_run(scratch: Repository) -> None:
    commit(scratch, NEW, both())
    record = planned(scratch, FULL)
    record["points"] = [row for row in record["points"] if row["id"] != C16]
    record["left-out"].append({"what": C16, "rule": "reuse", "reason": "run 1001 has the result of the same job, x"})
    del record["shards"]
    Path("../plan.json").write_text(json.dumps(record), encoding="utf-8")
    (cause,) = ask(C16, "--plan", "../plan.json")["causes"]
    assert (cause["rule"], cause["reason"]) == ("reuse", "run 1001 has the result of the same job, x")
    assert edit_of(cause["edits"][0]).action is Action.COMMENT
    assert "delete the comment with /reuse-sweep-run" in cli("why-not", C16, "--plan", "../plan.json").out


def test_a_plan_file_alone_answers_from_what_it_holds(
    scratch: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(scratch, NEW, both())
    record = planned(scratch, TRIMMED)
    alone = tmp_path / "alone"
    alone.mkdir()
    monkeypatch.chdir(alone)
    present = ask(C4, "--plan", "../plan.json")
    assert present["answer"] == "present"
    assert next(fact for fact in present["kept"] if fact["rule"] == "changelog")["text"].startswith("entry 1 of")
    assert ask(C16, "--plan", "../plan.json")["causes"][0]["rule"] == "trim-conc"
    assert ask("gamma--8k1k--tp8--c4", "--plan", "../plan.json")["causes"][0]["rule"] == "changelog"
    unknown = cli("why-not", "alpha--8k1k--tp8--c5", "--plan", "../plan.json")
    assert unknown.status == 1
    assert record["head"]["commit"][:12] in unknown.out
    assert C4 in unknown.out


def test_a_refused_plan_file_says_its_faults(scratch: Repository) -> None:
    commit(scratch, NEW, added(of("alpha")))
    head, base = (scratch.git("rev-parse", name).strip() for name in ("HEAD", "main"))
    payload = labeled(FULL)
    payload["pull_request"]["head"]["sha"], payload["pull_request"]["base"]["sha"] = head, base
    Path("../event.json").write_text(json.dumps(payload), encoding="utf-8")
    assert cli("plan", "--event", "../event.json", "--permission", "write", "--output", "../plan.json").status == 1
    causes = ask(C16, "--plan", "../plan.json")["causes"]
    assert [cause["rule"] for cause in causes] == ["decision", "changelog-uncovered"]
    assert causes[1]["place"].startswith("configs/amd-master.yaml:")
