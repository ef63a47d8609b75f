"""The recipe that an entry names is there, can be read, and is exactly one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.checks.case import Case, Space
from matrix.checks.rule import Fault, rule
from matrix.findings import Finding, Severity
from matrix.recipes.recipe import RecipeError
from matrix.recipes.roles import ViewError, node_count, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "hardware_missing",
    "node_count_of_settings",
    "point_conflict",
    "point_duplicate",
    "recipe_conflict",
    "recipe_missing",
    "recipe_nodes",
    "recipe_path",
    "recipe_placement",
    "recipe_roles",
    "recipe_root",
    "recipe_schema",
    "recipe_selector",
    "recipe_yaml",
    "recipe_zip",
    "runner_unknown",
    "topology_fit",
]


@rule("recipe-missing", Case)
def recipe_missing(case: Case) -> Iterator[Fault]:
    """The recipe file that CONFIG_FILE names exists below a recipe root.

    Why: nothing looks at the path before the cluster does, and there every job of the config fails at once. 49 files
    were missing from one release (InferenceX #2384), others were named relative to another folder (#2993).
    Fix: correct the path; `recipes/` and `benchmarks/multi_node/srt-slurm-recipes/` both stand for a recipe root.
    """
    return _unread(case, "recipe-missing")


@rule("recipe-path", Case)
def recipe_path(case: Case) -> Iterator[Fault]:
    """The path of a recipe stays below the recipe roots: no `..`, no absolute path, no link that leaves them.

    Why: such a file is not part of what is reviewed, and the cluster has another one at that place, or none.
    Fix: put the recipe below a root and name it from there.
    """
    return _unread(case, "recipe-path")


@rule("recipe-selector", Case)
def recipe_selector(case: Case) -> Iterator[Fault]:
    """CONFIG_FILE selects exactly one variant, and the file has it.

    Why: a file with variants and no selector, a glob or a zip group submits every variant from a job that declares one
    topology (InferenceX #1697).
    Fix: name one of the variants that the message lists, `zip_override_NAME[N]` for a member of a group.
    """
    return _unread(case, "recipe-selector")


@rule("recipe-yaml", Case)
def recipe_yaml(case: Case) -> Iterator[Fault]:
    """A named recipe is a YAML mapping, and so are its base and its variants.

    Why: srtctl would refuse the file after the allocation was asked for.
    Fix: mend the file at the line that is given.
    """
    return _unread(case, "recipe-yaml")


@rule("recipe-zip", Case)
def recipe_zip(case: Case) -> Iterator[Fault]:
    """The lists that a zip group zips have one length, or length 1.

    Why: with unequal lengths no member of the group is defined.
    Fix: give every list the same length; a list of one is repeated.
    """
    return _unread(case, "recipe-zip")


@rule("recipe-schema", Case)
def recipe_schema(case: Case) -> Iterator[Fault]:
    """A recipe with `roles` says `schema: 2`; other schemas than 1 and 2 do not exist.

    Why: without it srtctl reads the recipe as schema 1 and refuses its keys.
    Fix: write `schema: 2` at the top of the recipe or of its base.
    """
    return _unread(case, "recipe-schema")


@rule("recipe-roles", Case)
def recipe_roles(case: Case) -> Iterator[Fault]:
    """The roles of a recipe are `agg`, or `prefill` and `decode`, each a mapping.

    Why: a role by another name is started by nobody.
    Fix: rename the role, or add what it lacks.
    """
    return _unread(case, "recipe-roles")


@rule("recipe-nodes", Case)
def recipe_nodes(case: Case) -> Iterator[Fault]:
    """Each role says how many nodes it has: 1 or more, or `colocate` for decode.

    Why: the node count of the job is the sum over the roles.
    Fix: write `nodes:` in the role, or leave the role out.
    """
    return _unread(case, "recipe-nodes")


@rule("recipe-placement", Case)
def recipe_placement(case: Case) -> Iterator[Fault]:
    """etcd and NATS are placed alike.

    Why: they share one dedicated node or have none, and that node counts.
    Fix: give both `placement.node: dedicated`, or neither.
    """
    return _unread(case, "recipe-placement")


@rule("recipe-root", Space)
def recipe_root(space: Space) -> Iterator[Finding]:
    """There is a folder of recipes where configs name recipes.

    Why: without one no entry can be held to what would run.
    Fix: name it with `--recipes DIR`, or as `recipes` in `[tool.matrix]`.
    """
    return _found(space, "recipe-root")


@rule("recipe-conflict", Space)
def recipe_conflict(space: Space) -> Iterator[Finding]:
    """The roles of an entry do not name two different recipes.

    Why: one job runs one recipe, and which of the two it is depends on who reads last (InferenceX #3086, #3103).
    Fix: keep one CONFIG_FILE, on either role.
    """
    return _found(space, "recipe-conflict")


@rule("runner-unknown", Space)
def runner_unknown(space: Space) -> Iterator[Finding]:
    """The runner label of a config is one of the runners file.

    Why: no machine takes the job, and it waits until GitHub gives up.
    Fix: name one of the labels that the message lists, or add the label.
    """
    return _found(space, "runner-unknown")


@rule("point-duplicate", Space)
def point_duplicate(space: Space) -> Iterator[Finding]:
    """No job is declared twice, and no concurrency is listed twice.

    Why: the second run costs an allocation and overwrites the result of the first.
    Fix: remove one of the two.
    """
    return _found(space, "point-duplicate")


@rule("point-conflict", Space)
def point_conflict(space: Space) -> Iterator[Finding]:
    """Two different jobs do not share one id.

    Why: results, artifacts and decisions go by the id, so one job would pass for the other.
    Fix: give each its own recipe variant, topology or config key.
    """
    return _found(space, "point-conflict")


@rule("hardware-missing", Space)
def hardware_missing(space: Space) -> Iterator[Finding]:
    """The runners file has the facts that an entry's DRAM budget and node count follow from.

    A warning where only the node count of a runners file without `clusters:` stays open.

    Why: both are part of the row, and a job is allocated by them.
    Fix: add `gpus-per-node` or `available-cpu-dram-mib` to the runner's record.
    """
    return (finding for finding in space.found if finding.rule == "hardware-missing")


@rule("topology-fit", Space)
def topology_fit(space: Space) -> Iterator[Finding]:
    """A worker whose DRAM is budgeted divides a node evenly, or fills whole nodes.

    Why: its share of the node's memory is its share of the node's GPUs.
    Fix: choose a tp, pp or pcp-size that does.
    """
    return _found(space, "topology-fit")


@rule("node-count", Space)
def node_count_of_settings(space: Space) -> Iterator[Finding]:
    """`PREFILL_NODES` and `DECODE_NODES` of a role say one count.

    Why: the job is allocated by it.
    Fix: keep one of them, or none where the recipe says it.
    """
    return _found(space, "node-count")


def _found(space: Space, name: str) -> Iterator[Finding]:
    """What expansion goes on with after a warning is refused here."""
    for finding in space.found:
        if finding.rule == name:
            yield finding._replace(severity=Severity.ERROR)


def _unread(case: Case, name: str) -> Iterator[Fault]:
    reference, book = case.deployment.reference, case.facts.recipes
    if reference is None or not book or case.view is not None:
        return
    try:
        node_count(view_of(book.resolve(reference)))
    except (RecipeError, ViewError) as error:
        finding = error.finding
        if finding.rule != name:
            return
        where = f"{case.config.key}, entry {case.number}, names {reference}"
        # What the master gets wrong is told there, what a file does at its line, once for all that name it.
        master_first = finding.span is None or name == "recipe-selector"
        yield Fault(
            message=f"{where}: {finding.message}" if master_first else finding.message,
            fix=finding.fix,
            master=case.named,
            recipe=finding.span,
            note="the file" if master_first else where,
            recipe_first=not master_first,
        )
