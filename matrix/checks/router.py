"""The router in front of the workers: it fits the engine, is the one of the row, and is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.checks.case import Case, absent
from matrix.checks.parallel import argument
from matrix.checks.rule import ROLE, Fault, rule
from matrix.config.source import Map
from matrix.findings import Severity
from matrix.recipes.draft import argument_keys, json_argument
from matrix.recipes.layout import engine_of
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.checks.parallel import Value
    from matrix.recipes.roles import Role

__all__ = ["recipe_router", "recipe_transfer", "router_engine", "router_single_frontend", "router_sticky_session"]

_FRONTENDS: Final = {
    "sglang": ("sglang", "dynamo"),
    "vllm": ("vllm", "vllm-router", "dynamo"),
    "trtllm": ("trtllm_serve", "dynamo"),
}
"""The frontends that each engine can stand behind. ATOM's own rule is atom-frontend."""

_ROUTERS: Final = {
    "atomesh": "atomesh",
    "sglang-router": "sglang",
    "vllm-router": "vllm-router",
    "dynamo-router": "dynamo",
    "dynamo": "dynamo",
}
"""What a row calls a router, and what a recipe calls it."""

_DIRECT: Final = ("vllm", "atom", "trtllm_serve")
"""Frontends without a router: the worker answers the client."""

_STATEFUL: Final = ("cache_aware", "consistent_hash", "consistent_hashing", "prefix_hash", "dp_sticky", "bucket")
"""Policies by which a router remembers where requests went."""

_DEFAULT_TRANSFER: Final = {"atom": "mooncake", "sglang": "mooncake", "vllm": "nixl"}
_SESSION: Final = "AIPERF_HTTP_X_SESSION_ID_FROM_CORRELATION_ID"


@rule("router-engine", RecipeView)
def router_engine(view: RecipeView) -> Iterator[Fault]:
    """The frontend can stand in front of the engine.

    SGLang stands behind `sglang` or `dynamo`, vLLM behind `vllm`, `vllm-router` or `dynamo`, TensorRT-LLM behind
    `trtllm_serve` or `dynamo`. ATOM has a rule of its own, atom-frontend.

    Why: srtctl refuses the pair, or starts a router that does not find its workers.
    Fix: write another `frontend.type`. Left out it is `dynamo`.
    """
    engine, kind = engine_of(view), view.frontend.get("type", "dynamo")
    known = _FRONTENDS.get(engine)
    if known is not None and kind not in known:
        place = view.recipe.span(view.frontend, "type")
        message = f"the engine {engine} does not work behind the frontend {kind}."
        yield Fault(message, f"write one of {', '.join(known)}", recipe=place)


@rule("router-single-frontend", RecipeView)
def router_single_frontend(view: RecipeView) -> Iterator[Fault]:
    """AToMesh runs with `enable_multiple_frontends: false`. Left out, srtctl starts ten routers behind nginx.

    Another router that remembers where requests went (cache-aware, hashed or sticky policies) gets a warning.

    Why: each router sees a part of the sessions and of the cache state, so that sessions lose their ranks and prefixes
    are computed again.
    Fix: write `enable_multiple_frontends: false` below `frontend`.
    """
    kind = view.frontend.get("type", "dynamo")
    if kind in ("dynamo", *_DIRECT) or view.frontend.get("enable_multiple_frontends", True) is False:
        return
    stateful = sorted({policy for _, policy in _policies(view) if policy in _STATEFUL})
    if kind != "atomesh" and not stateful:
        return
    said = "enable_multiple_frontends" in view.frontend
    place = view.recipe.span(view.frontend, "enable_multiple_frontends") if said else absent(view, "frontend")
    what = f"several routers of {kind}"
    severity = Severity.ERROR
    if kind != "atomesh":
        what, severity = f"{what} with the policy {' and '.join(stateful)}", Severity.WARNING
    message = f"{what} would each see a part of the sessions{'' if said else '; left out, there are ten'}."
    fix = "write enable_multiple_frontends: false below frontend"
    yield Fault(message, fix, recipe=place, severity=severity)


@rule("router-sticky-session", RecipeView, Severity.WARNING)
def router_sticky_session(view: RecipeView) -> Iterator[Fault]:
    """With the policy `dp_sticky` the client sends session ids: AIPERF_HTTP_X_SESSION_ID_FROM_CORRELATION_ID is 1.

    Why: the router pins a session to a rank by its id; without one nothing sticks.
    Fix: write it below `benchmark.env`.
    """
    env = view.benchmark.get("env")
    env = env if isinstance(env, Map) else Map()
    if str(env.get(_SESSION, "")) == "1":
        return
    for key, policy in _policies(view):
        if policy == "dp_sticky":
            args = view.frontend["args"]
            message = "the router pins sessions (dp_sticky), and the client is not told to send their ids."
            place = view.recipe.span(args, key)
            yield Fault(message, f'write {_SESSION}: "1" below benchmark.env', recipe=place)
            return


@rule("recipe-router", Case)
def recipe_router(case: Case) -> Iterator[Fault]:
    """The router of the row is the frontend of the recipe, and of the version that its identity declares.

    Why: the row says which router a result was measured with, and the version is looked up when two results differ.
    Fix: make the two agree. A row without a router stands for a worker that answers clients itself, or for Dynamo.
    """
    view = case.view
    if view is None:
        return
    router, recipe = case.entry.router or case.config.router, view.recipe
    kind = view.frontend.get("type", "dynamo")
    place = recipe.span(view.frontend, "type") if "type" in view.frontend else absent(view, "frontend")
    if router is None:
        if kind != "dynamo" and kind not in _DIRECT:
            message = f"the row names no router, and the recipe's frontend is {kind}."
            name = next((name for name, own in _ROUTERS.items() if own == kind), kind)
            master = case.config.document.span(case.config.mark)
            yield Fault(message, f"add router: {{name: {name}, version: ...}}", master, place, "frontend.type")
        return
    name, master = router["name"], case.said(router, "name")
    if _ROUTERS.get(name, name) != kind:
        message = f"the row's router is {name}, and the recipe's frontend is {kind}."
        yield Fault(message, "make the two agree", master, place, "frontend.type")
        return
    identity = recipe.data.get("identity")
    declared = identity.get("frameworks") if isinstance(identity, Map) else None
    if isinstance(declared, Map) and name in declared and str(declared[name]) != router["version"]:
        message = f"the row's router is {name} {router['version']}, and the recipe's identity says {declared[name]}."
        span = recipe.span(declared, name)
        yield Fault(message, "make the two agree", case.said(router, "version"), span, "identity.frameworks")


@rule("recipe-transfer", Case)
def recipe_transfer(case: Case) -> Iterator[Fault]:
    """kv-p2p-transfer of the row is how the recipe moves KV blocks from prefill to decode.

    ATOM and vLLM say it as `engine.connector`, vLLM also as `connector` or `kv-transfer-config` of a role, SGLang as
    `disaggregation-transfer-backend`. Left out it is Mooncake, for vLLM NIXL.

    Why: it is published with the result, and it is what a slow disaggregated point is suspected of first.
    Fix: make the two agree.
    """
    view = case.view
    transfer = case.entry.kv_p2p_transfer or case.config.kv_p2p_transfer
    if view is None or transfer is None or "agg" in view.roles:
        return
    node = case.entry.node if case.entry.kv_p2p_transfer is not None else case.config.node
    for role in view.roles.values():
        found = _transfer(view, role)
        if found is not None and _folded(found.value) != _folded(transfer):
            message = f"the row moves KV blocks by {transfer}, and the recipe by {found.value} ({ROLE})."
            note = found.key or "the variant, which leaves it to the default"
            master = case.said(node, "kv-p2p-transfer")
            yield Fault(message, "make the two agree", master, found.span, note, role.name)


def _transfer(view: RecipeView, role: Role) -> Value | None:
    engine = role.engine or engine_of(view)
    if engine == "sglang":
        return argument(view, role, "disaggregation-transfer-backend", default=_DEFAULT_TRANSFER[engine])
    if engine not in _DEFAULT_TRANSFER:
        return None
    found = argument(view, role, "connector", "kv-transfer-config") if engine == "vllm" else None
    if found is None or found.key is None:
        span = view.recipe.span(view.engine, "connector") if "connector" in view.engine else view.recipe.home()
        key = "engine.connector" if "connector" in view.engine else None
        default = argument(view, role, default=_DEFAULT_TRANSFER[engine])
        return default._replace(value=view.engine.get("connector", default.value), key=key, span=span)
    spec = json_argument(found.value)
    return found._replace(value=spec.get("kv_connector", "")) if spec is not None else found


def _folded(name: Any) -> str:
    """A connector however it is spelled.

    >>> _folded("NixlConnector"), _folded("mori-io"), _folded("MoRIIOConnector")
    ('nixl', 'moriio', 'moriio')
    """
    return str(name).casefold().replace("-", "").replace("_", "").removesuffix("connector")


def _policies(view: RecipeView) -> Iterator[tuple[str, str]]:
    """The router's policies, each with the argument that says it."""
    args = view.frontend.get("args")
    if not isinstance(args, Map):
        return
    for key in argument_keys(args, "policy", "prefill-policy", "decode-policy"):
        yield key, str(args[key])
