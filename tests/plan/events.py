"""Events and what becomes of them: one table for the decision and for the workflow's own expressions."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from matrix.plan.labels import Permission

REPOSITORY: Final = "org/bench"
HEAD: Final = "aaa1" * 10

FAST, FULL, ALL_AT_ONCE, TRIMMED = (
    "full-sweep-fail-fast",
    "full-sweep-enabled",
    "non-canary-full-sweep-enabled",
    "sweep-enabled",
)
DEAR: Final = "over-budget-approved"


class Row(NamedTuple):
    """An event, the answers, and what is wanted: decision, words of the reason, and whether the running sweep ends."""

    name: str
    payload: dict[str, Any]
    action: str
    reason: str
    ends: bool
    permission: str = "write"
    subject: str = "Raise the batch"

    @property
    def event_name(self) -> str:
        return "workflow_dispatch" if "inputs" in self.payload else kind_of(self.payload)


class Answers:
    """Answers out of a row."""

    def __init__(self, permission: str, subject: str) -> None:
        self._permission = permission
        self._subject = subject

    def permission(self, login: str) -> Permission | None:
        return None if self._permission == "unknown" else Permission(self._permission)

    def subject(self, sha: str) -> str:
        return self._subject


def kind_of(payload: dict[str, Any]) -> str:
    return next((kind for kind in ("pull_request", "merge_group") if kind in payload), "push")


def pull(
    action: str,
    *labels: str,
    label: str | None = None,
    draft: bool = False,
    head: str | None = REPOSITORY,
    merged: bool = False,
    **more: Any,
) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "action": action,
        "number": 77,
        "pull_request": {
            "number": 77,
            "title": "Raise the batch",
            "draft": draft,
            "merged": merged,
            "labels": [{"name": name} for name in labels],
            "head": {"sha": HEAD, "ref": "feature", "repo": None if head is None else {"full_name": head}},
            "base": {"sha": "bbb2" * 10, "ref": "main", "repo": {"full_name": REPOSITORY}},
        },
        "repository": {"full_name": REPOSITORY},
        "sender": {"login": "ada"},
    }
    payload["pull_request"] |= more
    if label is not None:
        payload["label"] = {"name": label}
    return payload


def dispatch(**inputs: Any) -> dict[str, Any]:
    return {"inputs": inputs, "ref": "refs/heads/main", "repository": {"full_name": REPOSITORY}}


def labeled(label: str, *others: str, **more: Any) -> dict[str, Any]:
    return pull("labeled", *others, label, label=label, **more)


def unlabeled(label: str, *left: str, **more: Any) -> dict[str, Any]:
    return pull("unlabeled", *left, label=label, **more)


FORK: Final = "someone/bench"
HOSTILE: Final = "x\n::set-output name=decision::run\n$(touch /tmp/x)`id`"

TABLE: Final = (
    # a label of ours is set
    *(Row(f"labeled {name}", labeled(name), "run", name, True) for name in (FAST, FULL, ALL_AT_ONCE, TRIMMED)),
    Row("labeled in capitals", labeled("Full-Sweep-Enabled"), "run", FULL, True),
    Row("labeled by maintain", labeled(FAST), "run", "ada, maintain", True, permission="maintain"),
    Row("labeled by admin", labeled(FAST), "run", "ada, admin", True, permission="admin"),
    Row("labeled by triage", labeled(FAST), "refuse", "has triage permission, and a sweep needs write", True, "triage"),
    Row("labeled by read", labeled(FAST), "refuse", "has read permission", True, "read"),
    Row("labeled by nobody", labeled(FAST), "refuse", "has none permission", True, "none"),
    Row("labeled, API down", labeled(FAST), "refuse", "nobody could tell", True, "unknown"),
    Row("41 labels", labeled(FAST, *(f"l{n:03}" for n in range(40))), "run", FAST, True),
    Row("foreign beside", labeled(FAST, "bug", "documentation"), "run", FAST, True),
    Row("hostile label beside", labeled(FAST, HOSTILE), "run", FAST, True),
    Row("hostile title", labeled(FAST, title=HOSTILE), "run", FAST, True),
    # modifiers
    Row("all-evals added", labeled("all-evals", FAST), "run", f"{FAST} with all-evals", True),
    Row("evals-only added", labeled("evals-only", FULL), "run", f"{FULL} with evals-only", True),
    Row("both modifiers", labeled("evals-only", FULL, "all-evals"), "run", "all-evals and evals-only", True),
    Row("modifier in capitals", labeled("ALL-EVALS", FAST), "run", "with all-evals", True),
    Row("modifier alone", labeled("all-evals"), "skip", "changes a sweep and starts none", True),
    Row("both modifiers alone", labeled("all-evals", "evals-only"), "skip", "all-evals and evals-only changes", True),
    Row("modifier by triage", labeled("all-evals", FAST), "refuse", "needs write", True, "triage"),
    # what approved another commit, or a sweep of another shape
    Row("over budget", labeled(DEAR, FAST), "run", f"{FAST} with {DEAR}", True, "maintain"),
    Row("over budget by write", labeled(DEAR, FAST), "refuse", f"{DEAR} needs maintain", True),
    Row("started behind over budget", labeled(FAST, DEAR), "refuse", f"it to set {DEAR} again", True),
    Row("started behind it by maintain", labeled(FAST, DEAR), "run", f"with {DEAR}", True, "maintain"),
    Row("changed behind it", labeled("all-evals", FAST, DEAR), "refuse", f"it to set {DEAR} again", True),
    Row("pushed behind it", pull("synchronize", FAST, DEAR), "skip", f"somebody who has it may set {DEAR}", True),
    Row("pushed behind it by admin", pull("synchronize", FAST, DEAR), "run", f"with {DEAR}", True, "admin"),
    Row("ready behind it", pull("ready_for_review", FAST, DEAR), "skip", f"may set {DEAR} again", True),
    Row("over budget removed", unlabeled(DEAR, FAST), "run", FAST, True),
    # a burst of labels, conflicts
    Row("two primaries", labeled(FAST, FULL), "refuse", f"{FULL} and {FAST} ask for different", True),
    Row("three primaries", labeled(FAST, FULL, TRIMMED), "refuse", TRIMMED, True),
    Row("two in other case", labeled("Sweep-Enabled", FULL), "refuse", f"{FULL} and {TRIMMED}", True),
    Row("one label twice", labeled(FAST, FAST), "run", FAST, True),
    Row("one label in two cases", labeled("FULL-sweep-enabled", FULL), "run", FULL, True),
    Row("conflict by triage", labeled(FAST, FULL), "refuse", "different", True, "triage"),
    Row("conflict on a push", pull("synchronize", FAST, FULL), "refuse", "different", True),
    # labels of the peer, near misses, foreign ones
    Row("agentx-fast", labeled("agentx-fast", FAST), "refuse", "agentx-fast is not supported here", False),
    Row("agentx-fast in capitals", labeled("AgentX-Fast", FAST), "refuse", "agentx-fast is not supported", False),
    Row("agentx-fast alone", labeled("agentx-fast"), "refuse", "set sweep-enabled", False),
    Row("no-canary of the peer", labeled("full-sweep-fail-fast-no-canary"), "refuse", "has a canary here", False),
    Row("skip_queue", labeled("skip_queue", FAST), "refuse", "no queue priority", False),
    Row("refused one beside", labeled(FAST, "agentx-fast"), "refuse", "agentx-fast", True),
    Row("refused one removed", unlabeled("agentx-fast", FAST), "skip", "nothing to do with sweeps", False),
    Row("near miss", labeled("full-sweep-failfast"), "skip", f"did you mean {FAST}", False),
    Row("near miss beside a sweep", labeled("sweeps-enabled", FAST), "skip", "did you mean", False),
    Row("foreign", labeled("bug", FAST), "skip", "bug has nothing to do with sweeps", False),
    Row("foreign without a sweep", labeled("bug"), "skip", "nothing to do with sweeps", False),
    Row("foreign removed", unlabeled("bug", FAST), "skip", "was removed, and it has nothing", False),
    Row("hostile label", labeled(HOSTILE, FAST), "skip", r'"x\n::set-output', False),
    Row("command label", labeled("##[set-output name=decision]run"), "skip", "# #[set-output", False),
    Row("emoji", labeled("\U0001f680"), "skip", "nothing to do with sweeps", False),
    Row("prefix of a name", labeled("full-sweep"), "skip", "nothing to do with sweeps", False),
    Row("a name in quotes", labeled(f"'{FAST}'"), "skip", "did you mean", False),
    # removed
    Row("primary removed", unlabeled(FAST), "cancel", f"{FAST} was removed", True),
    Row("primary removed in capitals", unlabeled("Sweep-Enabled"), "cancel", TRIMMED, True),
    Row("primary removed, modifier left", unlabeled(FAST, "all-evals"), "cancel", "its sweep ends", True),
    Row("conflict resolved", unlabeled(FULL, FAST), "run", f"a label removed by ada, write: {FAST}", True),
    Row("modifier removed", unlabeled("all-evals", FAST), "run", FAST, True),
    Row("modifier removed, none left", unlabeled("all-evals"), "skip", "no label asks", True),
    Row("conflict resolved by triage", unlabeled(FULL, FAST), "skip", "set the label again", True, "triage"),
    # pushes
    Row("push to the branch", pull("synchronize", FAST), "run", "pushed by ada, write", True),
    Row("push by triage", pull("synchronize", FAST), "skip", "set the label again", True, "triage"),
    Row("push, API down", pull("synchronize", FAST), "skip", "set the label again", True, "unknown"),
    Row("push without label", pull("synchronize"), "skip", "no label asks for a sweep", True),
    Row("push, near miss", pull("synchronize", "full-sweep-fast"), "skip", "did you mean", True),
    Row("push with modifier", pull("synchronize", "all-evals"), "skip", "starts none", True),
    Row("push, 41 labels", pull("synchronize", FAST, *(f"l{n:03}" for n in range(40))), "run", FAST, True),
    # the skip word
    Row("skip word", pull("synchronize", FAST), "skip", "[skip-sweep]", True, subject="Tidy [skip-sweep]"),
    Row("skip word, labeled", labeled(FAST), "skip", "[skip-sweep]", True, subject="[skip-sweep] x"),
    Row("skip word in capitals", labeled(FAST), "run", FAST, True, subject="[SKIP-SWEEP] x"),
    Row("half a skip word", labeled(FAST), "run", FAST, True, subject="skip-sweep"),
    # drafts
    Row("draft", labeled(FAST, draft=True), "skip", "draft", True),
    Row("draft pushed", pull("synchronize", FAST, draft=True), "skip", "draft", True),
    Row("ready", pull("ready_for_review", FAST), "run", "marked ready by ada", True),
    Row("ready by triage", pull("ready_for_review", FAST), "skip", "set the label again", True, "triage"),
    Row("ready without label", pull("ready_for_review"), "skip", "no label", True),
    Row("became a draft", pull("converted_to_draft", FAST, draft=True), "cancel", "became a draft", True),
    # forks
    Row("fork", labeled(FAST, head=FORK), "skip", f"the head is in {FORK}", True),
    Row("fork by admin", labeled(FAST, head=FORK), "skip", "never reaches our machines", True, "admin"),
    Row("fork that is gone", labeled(FAST, head=None), "skip", "a fork that is gone", True),
    Row("fork pushed", pull("synchronize", FAST, head=FORK), "skip", FORK, True),
    Row("fork of one name", labeled(FAST, head="org/bench-evil"), "skip", "org/bench-evil", True),
    Row("own repository in capitals", labeled(FAST, head="Org/Bench"), "run", FAST, True),
    Row("conflict in a fork", labeled(FAST, FULL, head=FORK), "skip", FORK, True),
    # its end, and what starts nothing
    Row("closed", pull("closed", FAST), "cancel", "was closed", True),
    Row("closed without label", pull("closed"), "cancel", "was closed", True),
    Row("labeled after the end", labeled(FAST, state="closed"), "skip", "the pull request is closed", True),
    Row("pushed after the end", pull("synchronize", FAST, state="closed"), "skip", "is closed", True),
    Row("merged", pull("closed", FAST, merged=True), "skip", "its sweep goes on", False),
    Row("reopened", pull("reopened", FAST), "skip", "set the label again", False),
    Row("opened", pull("opened", FAST), "skip", "opened starts nothing", False),
    Row("edited", pull("edited", FAST), "skip", "edited starts nothing", False),
    # by hand
    Row("by hand", dispatch(label=FAST, ids="a--8k1k--tp8--c1"), "run", f"by hand, as {FAST}", False),
    Row("by hand, selected", dispatch(label=TRIMMED, select="--max-conc 4"), "run", TRIMMED, False),
    Row("by hand, nothing named", dispatch(label=FAST, ids=" ", select=""), "refuse", "names its points", False),
    Row("by hand, no label", dispatch(ids="a"), "refuse", "no primary label", False),
    Row("by hand, modifier", dispatch(label="all-evals", ids="a"), "refuse", "no primary label", False),
    Row("by hand, hostile", dispatch(label=HOSTILE, ids="a"), "refuse", "no primary label", False),
    # events that never sweep
    Row("push to main", {"ref": "refs/heads/main", "before": "0", "repository": {"full_name": REPOSITORY}},
        "skip", "a push never sweeps", False),
    Row("merge queue", {"merge_group": {}, "repository": {"full_name": REPOSITORY}}, "skip", "merge queue", False),
)  # fmt: skip
