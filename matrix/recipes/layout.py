"""Where a recipe's workers sit: nodes, GPUs and ports, as srtctl allots them before anything is started.

Nodes are numbered from 0 in the order of the allocation. Nothing here knows a cluster: addresses are placeholders,
``<prefill-0>`` for the one of the node that prefill worker 0 (or its first part) runs on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from matrix.recipes.roles import DEFAULT_GPUS_PER_NODE, ROLE_NAMES, ViewError, node_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.config.source import Map
    from matrix.findings import Finding
    from matrix.recipes.roles import RecipeView, Role

__all__ = ["PUBLIC_PORT", "ROUTER_PORT", "Layout", "Seat", "engine_of", "frontend_of", "gpus_per_node", "layout_of"]

PUBLIC_PORT: Final = 8000
"""What clients talk to."""

ROUTER_PORT: Final = 8180
"""A router's port where nginx holds the public one."""

_HTTP: Final = 6100
_HTTP_STRIDE: Final = 32
_BOOTSTRAP: Final = 7200
_KV_EVENTS: Final = 5200
_HANDSHAKE: Final = 5400
_SYSTEM: Final = 7500


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One worker process: part ``rank`` of worker ``index`` of a role, on one node. Ports it does not use are 0.

    ``nodes`` are all nodes of the worker, ``http`` its server's port, ``handshake`` the first of the ports on which
    other workers fetch KV blocks, ``bootstrap`` where decode finds an SGLang prefill worker.
    """

    role: str
    index: int
    rank: int
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]
    system: int
    http: int
    bootstrap: int
    kv_events: int
    handshake: int

    @property
    def name(self) -> str:
        """``prefill-0``; the second part of a worker that spans nodes is ``prefill-0.1``."""
        return f"{self.role}-{self.index}" + (f".{self.rank}" if self.rank else "")

    @property
    def node(self) -> int:
        """The node it runs on."""
        return self.nodes[self.rank]

    @property
    def address(self) -> str:
        """Stands for the address of its node."""
        return f"<{self.name}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All nodes of a job and who sits where.

    ``head`` has the router, ``client`` the benchmark, ``infra`` etcd and NATS. ``workers`` are the nodes that workers
    may use, in order; a dedicated node is none of them.
    """

    nodes: int
    gpus_per_node: int
    workers: tuple[int, ...]
    head: int
    client: int
    infra: int
    seats: tuple[Seat, ...]

    def leaders(self, role: str) -> Iterator[Seat]:
        """The first part of each worker of a role; a router knows these alone."""
        return (seat for seat in self.seats if seat.role == role and seat.rank == 0)


def engine_of(view: RecipeView) -> str:
    """The engine of the workers, which a recipe says once or on every role."""
    return str(view.engine.get("type") or next((role.engine for role in view.roles.values()), ""))


def frontend_of(view: RecipeView) -> str:
    """The frontend; Dynamo's where the recipe does not say."""
    return str(view.frontend.get("type", "dynamo"))


def gpus_per_node(view: RecipeView) -> int:
    """GPUs of a node: what the recipe says, or else the least that its own roles need, and srtctl's default of 4."""
    said = view.resources.get("gpus_per_node")
    if type(said) is int and said > 0:
        return said
    return max([DEFAULT_GPUS_PER_NODE, *(_need(role) for role in view.roles.values() if role.nodes)])


def _need(role: Role) -> int:
    """GPUs of the fullest node of a role, whose workers share nodes or span them."""
    if role.workers >= role.nodes:
        return -(-role.workers // role.nodes) * role.gpus
    return -(-role.gpus // (role.nodes // role.workers))


def layout_of(view: RecipeView, *, blocks: bool = False) -> Layout:
    """Seat every worker: prefill, decode, agg, each in order, packed from the first node on.

    With ``blocks`` a worker that shares its node reserves as many handshake ports as it has GPUs: ATOM adds the rank to
    the port. Source of the rules: srtctl's own allocation.

    Raises:
        ViewError: the workers need more nodes than the recipe reserves.
    """
    total = node_count(view)
    workers, head, client, infra = _reserve(view, total)
    per_node = gpus_per_node(view)
    placed = list(_place(view, workers, per_node))
    neighbours = Counter(node for _, _, nodes, _ in placed for node in nodes)
    http = {node: count(_HTTP, _HTTP_STRIDE) for node in workers}
    bootstrap = {node: count(_BOOTSTRAP) for node in workers}
    handshake = _HANDSHAKE
    seats: list[Seat] = []
    for role, index, nodes, gpus in placed:
        entrance = next(bootstrap[nodes[0]]) if role == "prefill" else 0
        for rank, node in enumerate(nodes):
            seat = Seat(
                role=role,
                index=index,
                rank=rank,
                nodes=nodes,
                gpus=gpus,
                system=_SYSTEM + len(seats),
                http=next(http[node]) if rank == 0 else 0,
                bootstrap=entrance,
                kv_events=_KV_EVENTS + len(seats),
                handshake=handshake,
            )
            handshake += len(gpus) if blocks and neighbours[node] > 1 else 1
            seats.append(seat)
    return Layout(
        nodes=total,
        gpus_per_node=per_node,
        workers=workers,
        head=head,
        client=client,
        infra=infra,
        seats=tuple(seats),
    )


def _reserve(view: RecipeView, total: int) -> tuple[tuple[int, ...], int, int, int]:
    """Nodes for workers, router, client and etcd/NATS. The batch script is on node 0; a client of its own goes last."""
    wanted = {
        "infra": view.infra.get("etcd_nats_dedicated_node") is True
        or any(_dedicated(service) for service in view.services if _is_infra(service)),
        "frontend": _dedicated(view.frontend) or view.frontend.get("dedicated_node") is True,
        "client": _dedicated(view.benchmark) or view.benchmark.get("client_dedicated_node") is True,
    }
    roles = [role for role, asked in wanted.items() if asked]
    nodes = tuple(range(total))
    if not roles:
        return nodes, 0, 0, 0
    if view.benchmark.get("colocate_with_frontend", True) is not False:
        shared = nodes[-1] if wanted["client"] else nodes[0]
        workers = tuple(node for node in nodes if node != shared)
        own = dict.fromkeys(roles, shared)
    else:
        front = [role for role in roles if role != "client"]
        own = {role: node for node, role in enumerate(front)}
        if wanted["client"]:
            own["client"] = nodes[-1]
        workers = tuple(node for node in nodes if node not in own.values())
    head = own.get("frontend", workers[0] if workers else 0)
    return workers, head, own.get("client", head), own.get("infra", head)


def _is_infra(service: Map) -> bool:
    kind = service.get("type", service.get("name"))
    return kind in ("etcd", "nats") and service.get("enabled", True) is not False


def _dedicated(node: object) -> bool:
    placement = node.get("placement") if isinstance(node, dict) else None
    return isinstance(placement, dict) and placement.get("node") == "dedicated"


def _place(
    view: RecipeView, workers: tuple[int, ...], per_node: int
) -> Iterator[tuple[str, int, tuple[int, ...], tuple[int, ...]]]:
    """Role, index, nodes and GPUs of each worker."""
    spread = view.resources.get("spread_workers") is True
    at = offset = 0
    for name in ROLE_NAMES:
        role = view.roles.get(name)
        if role is None:
            continue
        # Decode begins on a node of its own while there is one.
        if name == "decode" and offset and at + 1 < len(workers) and not _together(view):
            at, offset = at + 1, 0
        if name == "decode" and "prefill" in view.roles and view.resources.get("het_jobs") is True:
            at, offset = view.roles["prefill"].nodes, 0
        for index in range(role.workers):
            if role.gpus >= per_node:
                span = -(-role.gpus // per_node)
                first, at = at, at + span
                gpus = tuple(range(per_node))
            else:
                if offset + role.gpus > per_node:
                    at, offset = at + 1, 0
                span, first = 1, at
                gpus = tuple(range(offset, offset + role.gpus))
                offset += role.gpus
                if offset >= per_node or spread:
                    at, offset = at + 1, 0
            if first + span > len(workers):
                raise ViewError(_too_few(view, role, len(workers), per_node))
            yield name, index, workers[first : first + span], gpus


def _together(view: RecipeView) -> bool:
    """vLLM alone can be told to pack decode behind prefill on one node."""
    if engine_of(view) != "vllm" or view.engine.get("allow_prefill_decode_colocation") is not True:
        return False
    needed = sum(role.workers * role.gpus for role in view.roles.values())
    across = view.engine.get("allow_prefill_decode_colocation_across_nodes") is True
    return across or needed <= gpus_per_node(view)


def _too_few(view: RecipeView, role: Role, nodes: int, per_node: int) -> Finding:
    from matrix.findings import Finding

    node, key = role.places["workers"]
    message = (
        f"role {role.name} has {role.workers} workers of {role.gpus} GPUs, and the workers need more than the {nodes} "
        f"nodes of {per_node} GPUs that the recipe reserves."
    )
    fix = f"raise nodes: of {role.name}, or lower workers: or gpus:"
    return Finding(rule="recipe-layout", message=message, fix=fix, span=view.recipe.document.of_key(node, key))
