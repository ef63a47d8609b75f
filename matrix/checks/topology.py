"""Row and recipe have the same workers, on as many GPUs and nodes, spread in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.checks.case import Case
from matrix.checks.parallel import Value, parallel_of
from matrix.checks.rule import ROLE, Fault, rule
from matrix.config.model import Aggregated, Disaggregated
from matrix.config.source import Map
from matrix.findings import Severity
from matrix.recipes.layout import layout_of
from matrix.recipes.roles import RecipeView, ViewError, node_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.config.model import Worker
    from matrix.recipes.roles import Role

__all__ = [
    "recipe_dp_attention",
    "recipe_expert_parallel",
    "recipe_idle_nodes",
    "recipe_topology",
    "router_dp_aware",
]

_NODES_SETTINGS: Final = {"prefill": "PREFILL_NODES=", "decode": "DECODE_NODES="}
_RANK_AWARE: Final = ("atomesh", "sglang")
"""Frontends that are told by a flag that a worker has several attention ranks."""


@rule("recipe-topology", Case)
def recipe_topology(case: Case) -> Iterator[Fault]:
    """Kinds of workers, their number, the GPUs of each and the nodes are those of the row.

    `num-worker` is `workers`; tp x pp x pcp-size is `gpus` and what the engine is told; `num-nodes`, `PREFILL_NODES`
    and `DECODE_NODES` are the nodes of the recipe; `disagg: true` means `prefill` and `decode`, else `agg`.

    Why: throughput is published per GPU of the row. 34 of 412 rows of one pull request had another tp than their recipe
    (InferenceX #919), a row of tp 8 ran tp 1 (#1734), node counts were wrong for recipes that were not found (#2740).
    Fix: write in the row what the recipe runs, or the other way round.
    """
    view = case.view
    if view is None:
        return
    wanted = {"prefill", "decode"} if isinstance(case.entry.topology, Disaggregated) else {"agg"}
    if set(view.roles) != wanted:
        kind = "disaggregated" if len(wanted) == 2 else "not disaggregated"
        message = f"the row is {kind}, and the recipe has {' and '.join(view.roles)}."
        data = view.recipe.data
        place = view.recipe.document.of_key(data, "roles" if "roles" in data else "resources")
        key = "disagg" if "disagg" in case.config.node else "multinode"
        fix = "make the two agree: prefill and decode when disagg, agg when not"
        yield Fault(message, fix, case.said(case.config.node, key), place, "the roles")
        return
    for side in case.sides():
        assert side.role is not None  # noqa: S101 - the roles are as they should be
        yield from _counts(case, view, side.worker, side.role)
        yield from _sizes(case, view, side.worker, side.role)
        yield from _stated_nodes(case, view, side.worker, side.role)
    topology = case.entry.topology
    if isinstance(topology, Aggregated) and topology.num_nodes is not None:
        nodes = node_count(view)
        if nodes != topology.num_nodes:
            message = f"the row says num-nodes {topology.num_nodes}, and the recipe takes {nodes}."
            node, key = view.roles["agg"].places["nodes"]
            master = case.said(case.entry.node, "num-nodes")
            yield Fault(message, "make the two agree", master, view.recipe.span(node, key), "the role's nodes")


@rule("recipe-expert-parallel", Case)
def recipe_expert_parallel(case: Case) -> Iterator[Fault]:
    """ep of the row is what the engine does: 1 without expert parallelism, else the size.

    vLLM and ATOM have a flag, which takes all GPUs of the worker; SGLang a size, which its exchanges
    (`moe-a2a-backend`) raise to tp.

    Why: rows said ep 1 over recipes with `enable-expert-parallel` (InferenceX #2190), and ep 8 over one without
    (#3158).
    Fix: correct the row, or give the recipe the flag.
    """
    view = case.view
    if view is None:
        return
    for side in case.sides():
        sizes = parallel_of(view, side.role) if side.role is not None else None
        if side.role is None or sizes is None or sizes.experts.value == side.worker.ep:
            continue
        ranks = sizes.experts.value
        does = f"spreads experts over {ranks} GPUs" if ranks != 1 else "does not spread experts"
        message = f"the row says ep {side.worker.ep}, and the recipe {does} ({ROLE})."
        yield _differs(case, side.worker, "ep", message, sizes.experts, side.role)


@rule("recipe-dp-attention", Case)
def recipe_dp_attention(case: Case) -> Iterator[Fault]:
    """dp-attn of the row, and attn-dp-size where it is given, is what each role of the recipe does.

    SGLang takes `enable-dp-attention` with a `dp-size` above 1, ATOM the flag alone, vLLM `data-parallel-size`.

    Why: it changes how KV blocks are held and where requests go; parity was found by review alone (InferenceX #1810,
    #1238, #1295).
    Fix: correct the row, or give the role its arguments.
    """
    view = case.view
    if view is None:
        return
    for side in case.sides():
        worker, role = side.worker, side.role
        sizes = parallel_of(view, role) if role is not None else None
        if role is None or sizes is None:
            continue
        wanted = worker.attn_dp if worker.attn_dp is not None else worker.tp if worker.dp_attn else 1
        ranks = sizes.attention
        if ranks.value == wanted:
            continue
        if (wanted > 1) is worker.dp_attn and (ranks.value == 1) is (wanted == 1):
            key = "attn-dp-size" if worker.attn_dp is not None else "dp-attn"
            message = f"the row means {wanted} attention ranks, and the recipe has {ranks.value} ({ROLE})."
        else:
            key, said = "dp-attn", "true" if worker.dp_attn else "false"
            does = f"has {ranks.value} attention ranks" if ranks.value != 1 else "has no data-parallel attention"
            message = f"the row says dp-attn {said}, and the recipe {does} ({ROLE})."
        yield _differs(case, worker, key, message, ranks, role)


@rule("router-dp-aware", RecipeView)
def router_dp_aware(view: RecipeView) -> Iterator[Fault]:
    """The router is `dp-aware` exactly when a role has data-parallel attention.

    AToMesh and SGLang's router take the flag.

    Why: without it a router sends to the worker, which deals requests to its ranks without regard to what they cache;
    with it a worker of one rank is asked for ranks it does not have.
    Fix: write `dp-aware: true` below `frontend.args`, or remove it.
    """
    if view.frontend.get("type") not in _RANK_AWARE:
        return
    ranked = [role for role in view.roles.values() if (_ranks(view, role) or 1) > 1]
    args = view.frontend.get("args")
    args = args if isinstance(args, Map) else Map()
    keys = [key for key in args if isinstance(key, str) and key.replace("_", "-") == "dp-aware"]
    aware = any(args[key] is True for key in keys)
    if aware and not ranked:
        place = view.recipe.document.of_key(args, keys[0])
        yield Fault("the router is dp-aware, and no role has data-parallel attention.", "remove dp-aware", recipe=place)
    elif ranked and not aware:
        place = view.recipe.document.of_key(args, keys[0]) if keys else view.recipe.home()
        for role in ranked:
            message = f"the router is not dp-aware, and the recipe has data-parallel attention ({ROLE})."
            yield Fault(message, "write dp-aware: true below frontend.args", recipe=place, role=role.name)


@rule("recipe-idle-nodes", RecipeView, Severity.WARNING)
def recipe_idle_nodes(view: RecipeView) -> Iterator[Fault]:
    """No node is reserved that no worker runs on.

    Why: it is allocated, and its GPUs count into every figure per GPU.
    Fix: lower `nodes` of the role, or give it the workers it was meant for.
    """
    try:
        layout = layout_of(view)
    except ViewError:
        return
    idle = len(set(layout.workers) - {node for seat in layout.seats for node in seat.nodes})
    if idle:
        reserved = len(layout.workers)
        message = f"the roles reserve {reserved} nodes, and the workers fill {reserved - idle}."
        role = max(view.roles.values(), key=lambda role: role.nodes * view.gpus_per_node - role.workers * role.gpus)
        node, key = role.places["nodes"]
        fix = f"lower the nodes of {role.name}, or raise its workers"
        yield Fault(message, fix, recipe=view.recipe.span(node, key))


def _counts(case: Case, view: RecipeView, worker: Worker, role: Role) -> Iterator[Fault]:
    """Workers, and GPUs of each."""
    key = "num-worker" if "num-worker" in worker.node else "tp"
    pairs = [("workers", key, f"num-worker {worker.replicas}", worker.replicas, role.workers)]
    factors = [("tp", worker.tp), ("pp", worker.pp), ("pcp-size", worker.pcp)]
    product = " x ".join(f"{name} {size}" for name, size in factors if name == "tp" or size != 1)
    text = product if worker.gpus == worker.tp else f"{product} = {worker.gpus} GPUs"
    pairs.append(("gpus", "tp", text, worker.gpus, role.gpus))
    for what, place, said, wanted, found in pairs:
        if wanted != found:
            message = f"the row says {said}, and the recipe has {_named(what, found)} ({ROLE})."
            node, name = role.places[what]
            span = view.recipe.span(node, name)
            fix = "make the two agree"
            yield Fault(message, fix, case.said(worker.node, place), span, f"the {what} of a role", role.name)


def _sizes(case: Case, view: RecipeView, worker: Worker, role: Role) -> Iterator[Fault]:
    """What the engine itself is told."""
    sizes = parallel_of(view, role)
    if sizes is None:
        return
    told = (("tp", worker.tp, sizes.tp), ("pp", worker.pp, sizes.pp), ("dcp-size", worker.dcp, sizes.dcp))
    for name, wanted, found in told:
        if found is not None and found.value != wanted:
            does = f"tells its engine {found.value}" if found.key else f"leaves its engine at {found.value}"
            message = f"the row says {name} {wanted}, and the recipe {does} ({ROLE})."
            yield _differs(case, worker, name, message, found, role)


def _stated_nodes(case: Case, view: RecipeView, worker: Worker, role: Role) -> Iterator[Fault]:
    prefix = _NODES_SETTINGS.get("prefill" if role.name == "agg" else role.name, "")
    for index, setting in enumerate(worker.settings):
        if setting.startswith(prefix) and setting[len(prefix) :] != str(role.nodes):
            message = f"the row says {setting}, and the recipe has {role.nodes} ({ROLE})."
            master = case.config.document.of_value(worker.node["additional-settings"], index)
            node, key = role.places["nodes"]
            fix = "remove the setting: the recipe says it"
            yield Fault(message, fix, master, view.recipe.span(node, key), "the nodes of the role", role.name)


def _differs(case: Case, worker: Worker, key: str, message: str, found: Value, role: Role) -> Fault:
    note = found.key or "the variant, which does not say it"
    return Fault(message, "make the two agree", case.said(worker.node, key), found.span, note, role.name)


def _ranks(view: RecipeView, role: Role) -> int | None:
    sizes = parallel_of(view, role)
    value = sizes.attention.value if sizes is not None else None
    return value if type(value) is int else None


def _named(what: str, count: int) -> str:
    noun = {"workers": "worker", "gpus": "GPU"}[what] + ("" if count == 1 else "s")
    return f"{count} {noun}" if what == "workers" else f"{count} {noun} a worker"
