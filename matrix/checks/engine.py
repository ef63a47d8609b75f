"""What an engine is told: no flag that belongs to srtctl, none twice, none with a value that it does not know."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from matrix.checks.parallel import argument
from matrix.checks.rule import ROLE, Fault, rule
from matrix.findings import Severity
from matrix.recipes.atom import atom_faults, canonical_flag
from matrix.recipes.commands import CommandsError, commands_of
from matrix.recipes.layout import engine_of
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.findings import Finding

__all__ = [
    "atom_connectors",
    "atom_engine_arg",
    "atom_flag_twice",
    "atom_frontend",
    "atom_one_node",
    "atom_reserved_arg",
    "atom_spelling",
    "atom_value",
    "engine_flag_twice",
    "recipe_braces",
    "recipe_layout",
    "router_reserved_arg",
]

_BOTH_SPELLINGS: Final = "20260723"
"""Since ROCm/ATOM#1686, commit 6a12488b4, the server takes each flag in either spelling."""

_UNDERSCORED: Final = ("kv_cache_dtype", "enable_prefix_caching", "no-enable_prefix_caching")
"""Flags that ATOM declares with underscores; of the others the recipes use, all have hyphens."""

_DATED: Final = re.compile(r"(?<!\d)(20\d{6})\d*")

_ROLE: Final = re.compile(r"\brole (prefill|decode|agg)\b")

_VALUES: Final = {
    "kv-cache-dtype": ("bf16", "fp8"),
    "index-cache-dtype": ("bf16", "fp8", "fp4"),
    "cudagraph-mode": ("NONE", "PIECEWISE", "FULL", "FULL_AND_PIECEWISE", "AF_PIECEWISE"),
    "all2all-backend": ("high-throughput", "low-latency"),
    "moe-backend": ("standard", "mega"),
    "level": ("0", "1", "2", "3"),
}
_OWN_SIZES: Final = (
    "data-parallel-size",
    "pipeline-parallel-size",
    "prefill-context-parallel-size",
    "decode-context-parallel-size",
)


@rule("atom-reserved-arg", RecipeView)
def atom_reserved_arg(view: RecipeView) -> Iterator[Fault]:
    """A role of ATOM has no argument that srtctl writes itself, however it is spelled or shortened.

    These are `model`, `host`, `server-port`, `tp`, `tensor-parallel-size` and `kv-transfer-config`.

    Why: srtctl refuses them by name, but ATOM takes the beginning of a flag for the flag, so that `kv-transfer` slips
    through and replaces what the launcher worked out.
    Fix: remove it. Connectors beside Mooncake go to `extra-kv-connectors`.
    """
    return _refused(view, "atom-reserved-arg")


@rule("atom-flag-twice", RecipeView)
def atom_flag_twice(view: RecipeView) -> Iterator[Fault]:
    """A role of ATOM has no flag in two spellings.

    Why: arguments are passed as they are written, and ATOM takes the last of the two.
    Fix: keep one of them.
    """
    return _refused(view, "atom-flag-twice")


@rule("atom-connectors", RecipeView)
def atom_connectors(view: RecipeView) -> Iterator[Fault]:
    """`extra-kv-connectors` is a list of mappings with `kv_connector`, and Mooncake is not among them.

    Why: Mooncake is generated for prefill and decode, with the worker's own address and port.
    Fix: list the connectors beside it alone.
    """
    return _refused(view, "atom-connectors")


@rule("atom-one-node", RecipeView)
def atom_one_node(view: RecipeView) -> Iterator[Fault]:
    """A worker of ATOM fits one node.

    Why: ATOM has no worker that spans nodes.
    Fix: give a worker at most `gpus_per_node` GPUs, and take more workers.
    """
    return _refused(view, "atom-one-node")


@rule("atom-frontend", RecipeView)
def atom_frontend(view: RecipeView) -> Iterator[Fault]:
    """ATOM stands behind the frontend `atomesh`.

    Why: no other router of srtctl knows how ATOM's workers pair up.
    Fix: write `frontend.type: atomesh`. Left out it is `dynamo`.
    """
    return _refused(view, "atom-frontend")


@rule("router-reserved-arg", RecipeView)
def router_reserved_arg(view: RecipeView) -> Iterator[Fault]:
    """AToMesh is given no argument that srtctl writes from the topology: addresses, ports, `backend`.

    Why: the router would get the flag twice.
    Fix: remove it from `frontend.args`.
    """
    return _refused(view, "router-reserved-arg")


@rule("recipe-layout", RecipeView)
def recipe_layout(view: RecipeView) -> Iterator[Fault]:
    """The workers fit the nodes that their roles reserve.

    Why: srtctl refuses the recipe when the job has already started.
    Fix: raise `nodes` of the role, or lower its `workers` or `gpus`.
    """
    return _refused(view, "recipe-layout")


@rule("recipe-braces", RecipeView)
def recipe_braces(view: RecipeView) -> Iterator[Fault]:
    """Braces in the value of an environment variable are such as srtctl can fill in: `{node}` and `{node_id}`.

    Why: it formats every value as text with fields, and ends over JSON or a single brace when it starts a worker.
    Fix: write the value without braces.
    """
    return _refused(view, "recipe-braces")


@rule("atom-engine-arg", RecipeView)
def atom_engine_arg(view: RecipeView) -> Iterator[Fault]:
    """A role of ATOM leaves the sizes of other parallel kinds alone, and its engine's internal `port`.

    Why: `data-parallel-size` and its like are no arguments of srtctl, so nothing refuses them, yet they change how many
    GPUs a worker takes beside the `-tp` that it is given. One fixed `port` collides where two workers share a node.
    Fix: remove them; `gpus` of the role and `enable-dp-attention` say the same.
    """
    if engine_of(view) != "atom":
        return
    for role in view.roles.values():
        for name in (*_OWN_SIZES, "port"):
            found = argument(view, role, name)
            if found.key is None or (name != "port" and found.value == 1):
                continue
            does = "sets a port that srtctl does not know of"
            if name != "port":
                does = "changes how many GPUs a worker takes"
            message = f"the argument {found.key}: {found.value} {does} ({ROLE})."
            yield Fault(message, "remove it", recipe=found.span, role=role.name)


@rule("atom-value", RecipeView)
def atom_value(view: RecipeView) -> Iterator[Fault]:
    """Arguments of ATOM that have a closed set of values have one of them.

    `kv_cache_dtype`, `index-cache-dtype`, `cudagraph-mode`, `all2all-backend`, `moe-backend` and `level`.

    Why: the server ends at once, after the allocation and the image were waited for.
    Fix: write one of the values that the message lists.
    """
    if engine_of(view) != "atom":
        return
    for role in view.roles.values():
        for name, known in _VALUES.items():
            found = argument(view, role, name)
            if found.key is not None and str(found.value) not in known:
                message = f"{found.key} is {found.value}, which ATOM does not know ({ROLE})."
                yield Fault(message, f"write one of {', '.join(known)}", recipe=found.span, role=role.name)


@rule("atom-spelling", RecipeView, Severity.WARNING)
def atom_spelling(view: RecipeView) -> Iterator[Fault]:
    """Arguments of ATOM are spelled as its parser declares them, where the image is older than 2026-07-23.

    Declared with underscores are `kv_cache_dtype`, `enable_prefix_caching` and `no-enable_prefix_caching`. The age is
    read from the date in the tag; an image without one is not looked at.

    Why: an older server does not know the other spelling, and arguments are passed as they are written.
    Fix: use the spelling in the message, or a newer image.
    """
    dated = _DATED.search(str(view.model.get("container", "")))
    if engine_of(view) != "atom" or dated is None or dated[1] >= _BOTH_SPELLINGS:
        return
    for role in view.roles.values():
        for key in role.args:
            declared = next((name for name in _UNDERSCORED if canonical_flag(name) == canonical_flag(key)), None)
            wanted = declared or canonical_flag(key)
            if key != wanted:
                message = f"an image of {dated[1]} knows the argument {key} as {wanted} alone ({ROLE})."
                place = view.recipe.document.of_key(role.args, key)
                yield Fault(message, f"write {wanted}", recipe=place, role=role.name)


@rule("engine-flag-twice", RecipeView)
def engine_flag_twice(view: RecipeView) -> Iterator[Fault]:
    """A role of another engine has no flag in two spellings. ATOM has a rule of its own, atom-flag-twice.

    Why: srtctl turns underscores into hyphens, so the flag is there twice and the later one wins.
    Fix: keep one of them.
    """
    if engine_of(view) == "atom":
        return
    for role in view.roles.values():
        spellings: dict[str, list[str]] = defaultdict(list)
        for key in role.args:
            spellings[key.replace("_", "-")].append(key)
        for keys in spellings.values():
            if len(keys) > 1:
                place = view.recipe.document.of_key(role.args, keys[1])
                message = f"one flag is there as {' and '.join(keys)} ({ROLE})."
                yield Fault(message, "keep one of them", recipe=place, role=role.name)


def _refused(view: RecipeView, name: str) -> Iterator[Fault]:
    for finding in _refusals(view):
        if finding.rule == name:
            role = _ROLE.search(finding.message)
            message = _ROLE.sub(ROLE, finding.message)
            # The only one that can be about two roles at one line and has a verb for one.
            message = message.replace(f"{ROLE} has one flag", f"{ROLE}: one flag")
            yield Fault(message, finding.fix, recipe=finding.span, role=role[1] if role is not None else "")


@lru_cache(maxsize=1)
def _refusals(view: RecipeView) -> tuple[Finding, ...]:
    """Why srtctl would refuse the recipe. Kept for one recipe: several rules ask in turn."""
    faults = tuple(atom_faults(view))
    if faults:
        return faults
    try:
        commands_of(view.recipe)
    except CommandsError as error:
        return error.findings
    return ()
