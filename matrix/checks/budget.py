"""KV blocks in host memory: the recipe offloads when the row does, by the same means, within the row's budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.checks.case import Case
from matrix.checks.parallel import argument
from matrix.checks.rule import ROLE, Fault, rule
from matrix.config.source import Map, Seq
from matrix.findings import Severity
from matrix.recipes.atom import EXTRA_CONNECTORS
from matrix.recipes.draft import argument_keys, json_argument
from matrix.recipes.layout import gpus_per_node
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.findings import Span
    from matrix.recipes.roles import Role

__all__ = ["Tier", "lmcache_hash_seed", "lmcache_staging_slots", "recipe_budget", "recipe_offload", "tiers_of"]

ENOUGH: Final = 0.9
"""Of the budget; less means that a figure was not worked out from this row."""

_CONNECTOR_SIZE: Final = "lmcache.max_local_cpu_size"
_VARIABLE_SIZE: Final = "LMCACHE_MAX_LOCAL_CPU_SIZE"
_BACKENDS: Final = {
    "lmcache": ("lmcache",),
    "hicache": ("hicache",),
    "mooncake": ("mooncake", "hicache"),
    "native": ("native", "hicache"),
    "vllm-simple": ("native",),
    "vllm-native": ("native",),
}
"""What a row calls a backend, and the tiers that can be meant."""


class Tier(NamedTuple):
    """A place outside the GPUs that a role keeps KV blocks in.

    ``size``: gigabytes, None where the recipe gives no figure (a ratio, or the engine's default); ``per_rank`` whether
    each rank takes as much. ``span`` is where the tier is asked for, ``sized`` where its size is.
    """

    kind: str
    role: str
    span: Span
    size: float | None = None
    per_rank: bool = True
    sized: Span | None = None
    unreadable: Any = None


@rule("recipe-offload", Case)
def recipe_offload(case: Case) -> Iterator[Fault]:
    """kv-offloading of the row is dram exactly when the recipe has an offload tier, and it is the backend's.

    Tiers are ATOM's `extra-kv-connectors`, SGLang's `enable-hierarchical-cache`, vLLM's `kv-offloading-size` and its
    connectors, an `lmcache-server`. With prefill and decode the tier is prefill's: ATOM's decode keeps Mooncake alone.

    Why: the row decides what host memory the job may use, and whether the host is made ready for it.
    Fix: correct the row, or add the connector.
    """
    view = case.view
    if view is None or not case.deployment.agentic:
        return
    tiers, offload = tiers_of(view), case.entry.offload
    master = case.said(case.entry.node, "kv-offloading")
    if offload.mode != "dram":
        for tier in tiers:
            message = f"the row says kv-offloading {offload.mode}, and the recipe offloads by {tier.kind} ({ROLE})."
            fix = "write kv-offloading: dram with its backend, or take the tier out of the variant"
            yield Fault(message, fix, master, tier.span, tier.kind, tier.role)
        return
    name = str(offload.backend["name"]) if offload.backend is not None else ""
    if not tiers:
        message = f"the row says kv-offloading dram by {name}, and the recipe has no offload tier."
        fix = "add the connector to prefill, or write kv-offloading: none"
        yield Fault(message, fix, master, view.recipe.home(), "the variant")
        return
    kinds = _BACKENDS.get(name, (name,))
    for tier in tiers:
        if tier.kind not in kinds:
            message = f"the row offloads by {name}, and the recipe by {tier.kind} ({ROLE})."
            backend = case.said(offload.backend, "name") if offload.backend is not None else master
            yield Fault(message, "make the two agree", backend, tier.span, tier.kind, tier.role)
    for tier in tiers:
        if tier.role == "decode" and view.roles["decode"].engine == "atom":
            message = f"decode offloads by {tier.kind}, and only prefill's blocks are looked up there."
            yield Fault(message, "leave the connector to prefill", recipe=tier.span)


@rule("recipe-budget", Case)
def recipe_budget(case: Case) -> Iterator[Fault]:
    """What the tiers of a worker take of its node fits total-cpu-dram-gb of the row, and uses most of it.

    LMCache's `max_local_cpu_size` and SGLang's `hicache-size` count for each rank, vLLM's `kv-offloading-size` for the
    worker. More than the budget is an error, less than nine tenths of it a warning. `hicache-ratio` gives no figure.

    Why: 256 GB a rank where 75 were there (InferenceX #2816), 512 a rank, or 2 TiB, against 210 GB (#2975); too little
    measures another cache than the row says (#2576, #2651, #2658).
    Fix: total-cpu-dram-gb / ranks, rounded down.
    """
    view = case.view
    if view is None or case.entry.offload.mode != "dram":
        return
    budget, per_node = case.deployment.budget_gb, gpus_per_node(view)
    share = case.scenario.node
    master = case.said(share, "dram-utilization") if "dram-utilization" in share else case.place
    for tier in tiers_of(view):
        where = tier.sized or tier.span
        if tier.unreadable is not None:
            message = f"{tier.kind} is given {tier.unreadable}, which is no number of gigabytes ({ROLE})."
            yield Fault(message, "write a number", recipe=where, role=tier.role)
        if tier.size is None:
            continue
        ranks = min(view.roles[tier.role].gpus, per_node) if tier.per_rank else 1
        taken = ranks * tier.size
        sum_, fitting = f"{_short(taken)} GB", f"write {budget}"
        if tier.per_rank:
            sum_, fitting = f"{ranks} ranks x {_short(tier.size)} GB = {sum_}", f"give each rank {budget // ranks}"
        if taken > budget:
            message = f"{tier.kind} takes {sum_} of a node, and the row's total-cpu-dram-gb is {budget} ({ROLE})."
            yield Fault(message, fitting, master, where, f"{tier.kind}'s size", tier.role)
        elif taken < budget * ENOUGH:
            message = f"{tier.kind} takes {sum_} of a node, well below the row's total-cpu-dram-gb, {budget} ({ROLE})."
            yield Fault(message, fitting, master, where, f"{tier.kind}'s size", tier.role, severity=Severity.WARNING)


@rule("lmcache-hash-seed", RecipeView, Severity.WARNING)
def lmcache_hash_seed(view: RecipeView) -> Iterator[Fault]:
    """A role with LMCache has PYTHONHASHSEED=0 in its environment.

    Why: keys of the tier are Python hashes, which differ from process to process without a fixed seed, so that blocks
    are stored and never found.
    Fix: write `PYTHONHASHSEED: "0"` below the role's `env`.
    """
    for tier in tiers_of(view):
        env = view.roles[tier.role].env
        if tier.kind == "lmcache" and str(view.environment.get("PYTHONHASHSEED", env.get("PYTHONHASHSEED"))) != "0":
            home = next((node for node in (view.environment, env) if "PYTHONHASHSEED" in node), None)
            place = view.recipe.span(home, "PYTHONHASHSEED") if home is not None else tier.span
            message = f"LMCache without PYTHONHASHSEED=0 does not find what another process stored ({ROLE})."
            yield Fault(message, 'write PYTHONHASHSEED: "0" below env', recipe=place, role=tier.role)


@rule("lmcache-staging-slots", RecipeView, Severity.WARNING)
def lmcache_staging_slots(view: RecipeView) -> Iterator[Fault]:
    """`slot_sidecar_staging_slots` of an LMCache connector is OFFLOAD_SLOT_STAGING_SLOTS of its role, if both are said.

    Why: the engine takes one of the two, and which one depends on its version.
    Fix: write one number in both.
    """
    for role in view.roles.values():
        variable = role.env.get("OFFLOAD_SLOT_STAGING_SLOTS")
        for connector, _ in _connectors(view, role):
            slots = connector.get("slot_sidecar_staging_slots")
            if slots is not None and variable is not None and str(slots) != str(variable):
                place = view.recipe.span(connector, "slot_sidecar_staging_slots")
                message = f"staging slots are {slots} in the connector and {variable} in the environment ({ROLE})."
                yield Fault(message, "write one number in both", recipe=place, role=role.name)


def tiers_of(view: RecipeView) -> list[Tier]:
    """Every offload tier that the recipe asks for."""
    found: list[Tier] = []
    for role in view.roles.values():
        found += _of_connectors(view, role)
        found += _of_sglang(view, role)
        found += _of_vllm(view, role)
    first = next(iter(view.roles))
    for service in view.services:
        if service.get("type") == "lmcache-server" and not any(tier.kind == "lmcache" for tier in found):
            found.append(Tier("lmcache", first, view.recipe.span(service, "type")))
    return found


def _of_connectors(view: RecipeView, role: Role) -> Iterator[Tier]:
    for connector, span in _connectors(view, role):
        name = str(connector.get("kv_connector", "")).casefold()
        if "lmcache" not in name and "offload" not in name:
            continue
        kind = "lmcache" if "lmcache" in name else "native"
        extra = connector.get("kv_connector_extra_config")
        homes = [(connector, _CONNECTOR_SIZE), (extra, _CONNECTOR_SIZE), (role.env, _VARIABLE_SIZE)]
        said = [(node, key) for node, key in homes if isinstance(node, Map) and node.get(key) is not None]
        tier = Tier(kind, role.name, span)
        for node, key in said[:1]:
            tier = _sized(tier, node[key], view.recipe.span(node, key))
        yield tier


def _connectors(view: RecipeView, role: Role) -> Iterator[tuple[Map, Span]]:
    """ATOM's extra connectors, each with its line."""
    for key in argument_keys(role.args, EXTRA_CONNECTORS):
        value = role.args[key]
        if isinstance(value, Seq):
            for index, connector in enumerate(value):
                if isinstance(connector, Map):
                    yield connector, view.recipe.span(value, index)


def _of_sglang(view: RecipeView, role: Role) -> Iterator[Tier]:
    switch = argument(view, role, "enable-hierarchical-cache", default=False)
    if role.engine != "sglang" or switch.value is not True:
        return
    size = argument(view, role, "hicache-size")
    tier = Tier("hicache", role.name, switch.span)
    # 0 leaves the size to hicache-ratio.
    yield tier if size.value in (None, 0) else _sized(tier, size.value, size.span)


def _of_vllm(view: RecipeView, role: Role) -> Iterator[Tier]:
    if role.engine != "vllm":
        return
    size = argument(view, role, "kv-offloading-size")
    if size.key is not None:
        backend = argument(view, role, "kv-offloading-backend", default="native")
        kind = "lmcache" if backend.value == "lmcache" else "native"
        yield _sized(Tier(kind, role.name, size.span, per_rank=False), size.value, size.span)
    transfer = argument(view, role, "kv-transfer-config", "connector")
    text = transfer.value if isinstance(transfer.value, str) else str(json_argument(transfer.value) or "")
    if transfer.key is None and isinstance(view.engine.get("connector"), str):
        text, transfer = view.engine["connector"], transfer._replace(span=view.recipe.span(view.engine, "connector"))
    folded = text.casefold()
    kind = "lmcache" if "lmcache" in folded else "native" if "offload" in folded or "kvbm" in folded else ""
    if kind:
        yield Tier(kind, role.name, transfer.span)


def _sized(tier: Tier, value: Any, span: Span) -> Tier:
    size = _gigabytes(value)
    return tier._replace(size=size, sized=span, unreadable=value if size is None else None)


def _gigabytes(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _short(number: float) -> str:
    return f"{number:g}" if number < 1e5 else f"{number:.0f}"
