"""ATOM workers: the flags that srtctl owns, their KV connectors, and what srtctl refuses of a role.

A flag is written as the recipe spells it, because ATOM's parser mixes hyphens and underscores. Names are compared in
one spelling. ATOM takes the beginning of a flag for the flag, so the beginning of an owned one is owned too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, plain
from matrix.recipes.layout import engine_of, frontend_of, gpus_per_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matrix.findings import Finding
    from matrix.recipes.layout import Seat
    from matrix.recipes.roles import RecipeView, Role

__all__ = [
    "EXTRA_CONNECTORS",
    "HOST_IP",
    "RESERVED_ARGS",
    "ROUTER_ARGS",
    "atom_faults",
    "canonical_flag",
    "connector_of",
    "owned_args",
]

RESERVED_ARGS: Final = ("model", "host", "server-port", "tp", "tensor-parallel-size", "kv-transfer-config")
"""Worker flags that srtctl writes from topology and model."""

ROUTER_ARGS: Final = frozenset({"backend", "host", "port", "pd-disaggregation", "prefill", "decode", "worker-urls"})
"""AToMesh flags that srtctl writes from the topology."""

EXTRA_CONNECTORS: Final = "extra-kv-connectors"
"""Role argument with KV connectors beside the generated one; no flag of the server."""

HOST_IP: Final = "ATOM_HOST_IP"
"""The variable that srtctl sets to a worker's own address."""

_KV_ROLES: Final = {"prefill": "kv_producer", "decode": "kv_consumer"}
_GENERATED: Final = "mooncake"


def canonical_flag(key: str) -> str:
    """The name of a flag, however it is spelled.

    >>> canonical_flag("--server_port=6100")
    'server-port'
    """
    return key.lstrip("-").split("=", 1)[0].replace("_", "-")


def owned_args(keys: Iterable[str]) -> list[str]:
    """Those keys that would set a worker flag of srtctl's own.

    >>> owned_args(["kv_cache_dtype", "Tensor-parallel-size", "tensor_parallel_size", "kv-transfer"])
    ['tensor_parallel_size', 'kv-transfer']
    """
    return [key for key in keys if any(name.startswith(canonical_flag(key)) for name in RESERVED_ARGS)]


def connector_of(view: RecipeView, role: Role, seat: Seat) -> str | None:
    """The value of ``--kv-transfer-config``, compact JSON; None where a worker has no connector.

    Prefill and decode get Mooncake, with the worker's own address. Extra connectors follow it, wrapped in ``multi``.
    """
    connectors: list[dict[str, Any]] = []
    if role.name in _KV_ROLES:
        generated = {
            "kv_role": _KV_ROLES[role.name],
            "kv_connector": view.engine.get("connector", _GENERATED),
            "proxy_ip": seat.address,
            "handshake_port": seat.handshake,
        }
        protocol = view.engine.get("mooncake_protocol")
        connectors.append({**generated, "protocol": protocol} if protocol is not None else generated)
    for key, value in role.args.items():
        if canonical_flag(key) == EXTRA_CONNECTORS and value is not None:
            connectors.extend(plain(value))
    if not connectors:
        return None
    whole = connectors[0] if len(connectors) == 1 else {"kv_connector": "multi", "connectors": connectors}
    return json.dumps(whole, separators=(",", ":"))


def atom_faults(view: RecipeView) -> Iterator[Finding]:
    """What srtctl refuses of an ATOM recipe when it loads it; nothing for another engine."""
    if engine_of(view) != "atom":
        return
    yield from _environment_faults(view)
    for role in view.roles.values():
        yield from _argument_faults(view, role)
        yield from _connector_faults(view, role)
        per_node = gpus_per_node(view)
        if role.gpus > per_node:
            message = (
                f"a worker of role {role.name} has {role.gpus} GPUs, and ATOM keeps a worker on one node of {per_node}."
            )
            yield _fault(view, "atom-one-node", *role.places["gpus"], message, f"give a worker at most {per_node} GPUs")
    if frontend_of(view) != "atomesh":
        message = f"the engine atom answers to the frontend atomesh alone, not to {frontend_of(view)}."
        yield _fault(view, "atom-frontend", view.frontend, "type", message, "write frontend.type: atomesh")
    args = view.frontend.get("args")
    args = args if isinstance(args, Map) else Map()
    for key in args:
        if canonical_flag(key) in ROUTER_ARGS:
            message = f"frontend.args.{key} is srtctl's own: it is written from the topology."
            yield _fault(view, "router-reserved-arg", args, key, message, "remove it")


def _argument_faults(view: RecipeView, role: Role) -> Iterator[Finding]:
    for key in owned_args(role.args):
        message = f"the argument {key} of role {role.name} belongs to srtctl, which writes it from topology and model."
        if canonical_flag(key) not in RESERVED_ARGS:
            message = f"the argument {key} of role {role.name} is short for one that belongs to srtctl."
        yield _fault(view, "atom-reserved-arg", role.args, key, message, "remove it")
    for key, value in role.args.items():
        if isinstance(value, Map) and canonical_flag(key) != EXTRA_CONNECTORS:
            message = f"the argument {key} of role {role.name} is a mapping, and no flag takes one."
            yield _fault(view, "atom-argument-value", role.args, key, message, "write its JSON as a quoted string")
    spellings: dict[str, list[str]] = defaultdict(list)
    for key in role.args:
        spellings[canonical_flag(key)].append(key)
    for keys in spellings.values():
        if len(keys) > 1:
            message = f"role {role.name} has one flag in {len(keys)} spellings: {', '.join(keys)}. ATOM takes the last."
            yield _fault(view, "atom-flag-twice", role.args, keys[1], message, "keep one of them")


def _environment_faults(view: RecipeView) -> Iterator[Finding]:
    for env in (view.environment, *(role.env for role in view.roles.values())):
        if HOST_IP in env:
            message = f"{HOST_IP} is srtctl's own: each worker is told its own address."
            yield _fault(view, "atom-reserved-env", env, HOST_IP, message, "remove it")


def _connector_faults(view: RecipeView, role: Role) -> Iterator[Finding]:
    for key, value in role.args.items():
        if canonical_flag(key) != EXTRA_CONNECTORS or value is None:
            continue
        if not isinstance(value, Seq):
            message = f"{key} of role {role.name} is no list."
            yield _fault(view, "atom-connectors", role.args, key, message, "write a list of mappings")
            continue
        for index, connector in enumerate(value):
            name = connector.get("kv_connector") if isinstance(connector, Map) else None
            if not isinstance(name, str):
                message = f"member {index} of {key} of role {role.name} names no kv_connector."
                yield _fault(view, "atom-connectors", role.args, key, message, "write a mapping with kv_connector:")
            elif name == _GENERATED:
                message = f"{key} of role {role.name} lists {name}, which is generated for prefill and decode."
                yield _fault(view, "atom-connectors", role.args, key, message, "remove it from the list")


def _fault(view: RecipeView, rule: str, node: Map, key: str, message: str, fix: str) -> Finding:
    from matrix.findings import Finding

    return Finding(rule=rule, message=message, fix=fix, span=view.recipe.document.of_key(node, key))
