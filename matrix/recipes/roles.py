"""One view of a resolved recipe over both dialects: roles, frontend, benchmark, services, node count.

Schema 2 says ``engine`` and ``roles``; schema 1 spreads a role over ``resources``, ``backend.<engine>_config`` and
``backend.<role>_environment``. Everything past this module speaks of roles alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matrix.findings import Finding
    from matrix.recipes.recipe import Recipe

    _Places = Mapping[str, tuple[Map, str]]

__all__ = ["ROLE_NAMES", "RecipeView", "Role", "ViewError", "node_count", "view_of"]

ROLE_NAMES: Final = ("prefill", "decode", "agg")

DEFAULT_GPUS_PER_NODE: Final = 4
"""What srtctl assumes where neither the recipe nor the cluster file says it."""


class ViewError(Exception):
    """The resolved recipe cannot be read as one: ``finding`` says where and why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """One kind of worker. ``nodes`` is 0 when it shares another role's nodes (``colocate``).

    ``places`` gives the mapping and key that say a number (``nodes``, ``workers``, ``gpus``), for a finding about it.
    """

    name: str
    nodes: int
    workers: int
    gpus: int
    engine: str
    container: str | None
    args: Map
    env: Map
    places: Mapping[str, tuple[Map, str]]


@dataclass(frozen=True, slots=True, eq=False)
class RecipeView:
    """What a recipe says, whatever its dialect. Mappings that a recipe leaves out are empty."""

    recipe: Recipe
    schema: int
    engine: Map
    model: Map
    resources: Map
    roles: Mapping[str, Role]
    frontend: Map
    benchmark: Map
    environment: Map
    services: tuple[Map, ...]
    infra: Map

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node, as the recipe has it."""
        value = self.resources.get("gpus_per_node")
        return value if type(value) is int else DEFAULT_GPUS_PER_NODE

    @property
    def generating(self) -> Role | None:
        """The role that emits tokens: decode, or agg where nothing is disaggregated."""
        return self.roles.get("decode") or self.roles.get("agg")


def view_of(recipe: Recipe) -> RecipeView:
    """Read a resolved recipe.

    Raises:
        ViewError: the dialect is unclear, a role lacks its nodes, or there is no role.
    """
    data = recipe.data
    schema = data.get("schema", 2 if "roles" in data else 1)
    if schema == 2 and "schema" not in data:
        message = "the recipe has roles: but does not say schema: 2. srtctl reads it as schema 1 and refuses it."
        raise ViewError(_finding(recipe, data, "roles", "recipe-schema", message, "add schema: 2"))
    if schema not in (1, 2):
        message = f"schema {schema!r} is not one of 1 and 2."
        raise ViewError(_finding(recipe, data, "schema", "recipe-schema", message, "write schema: 2"))
    resources = _map(data, "resources")
    engine = _engine(data)
    gpus_per_node = resources.get("gpus_per_node")
    per_node = gpus_per_node if type(gpus_per_node) is int else DEFAULT_GPUS_PER_NODE
    found = _roles_2(recipe, engine, per_node) if schema == 2 else _roles_1(recipe, resources, per_node)
    roles = {role.name: role for role in found}
    if not roles:
        message = "the recipe has no worker role."
        raise ViewError(
            _finding(recipe, data, None, "recipe-roles", message, "add roles: with agg, or with prefill and decode")
        )
    services = data.get("services")
    return RecipeView(
        recipe=recipe,
        schema=schema,
        engine=engine,
        model=_map(data, "model"),
        resources=resources,
        roles=roles,
        frontend=_map(data, "frontend"),
        benchmark=_map(data, "benchmark"),
        environment=_map(data, "environment"),
        services=tuple(service for service in services if isinstance(service, Map))
        if isinstance(services, Seq)
        else (),
        infra=_map(data, "infra"),
    )


def node_count(view: RecipeView) -> int:
    """Nodes that one run of the recipe occupies: roles, service pools and dedicated placements.

    etcd, nats, frontend and benchmark share ONE dedicated node unless ``benchmark.colocate_with_frontend`` is false.

    Raises:
        ViewError: etcd and nats disagree on their placement.
    """
    total: int = sum(role.nodes for role in view.roles.values())
    enabled = [service for service in view.services if service.get("enabled", True) is not False]
    total += sum(service["nodes"] for service in enabled if type(service.get("nodes")) is int)
    infra = {_dedicated(service) for service in enabled if service.get("type", service.get("name")) in ("etcd", "nats")}
    if len(infra) > 1:
        message = "etcd and nats are placed differently, and they share one dedicated node or have none."
        fix = "give both placement.node: dedicated, or neither"
        raise ViewError(_finding(view.recipe, view.recipe.data, "services", "recipe-placement", message, fix))
    dedicated = [
        infra.pop() if infra else view.infra.get("etcd_nats_dedicated_node") is True,
        _dedicated(view.frontend) or view.frontend.get("dedicated_node") is True,
        _dedicated(view.benchmark) or view.benchmark.get("client_dedicated_node") is True,
    ]
    together = view.benchmark.get("colocate_with_frontend", True) is not False
    return total + (min(1, sum(dedicated)) if together else sum(dedicated))


def _dedicated(node: Map) -> bool:
    placement = node.get("placement")
    return isinstance(placement, Map) and placement.get("node") == "dedicated"


def _engine(data: Map) -> Map:
    """The engine's mapping with its ``type``; schema 1 calls it ``backend``."""
    for key in ("engine", "backend"):
        value = data.get(key)
        if isinstance(value, Map):
            return value
        if isinstance(value, str):
            node = _empty(data)
            node["type"] = value
            node.marks["type"] = data.marks[key]
            return node
    return _empty(data)


def _roles_2(recipe: Recipe, engine: Map, per_node: int) -> Iterator[Role]:
    roles = _map(recipe.data, "roles")
    for name, node in roles.items():
        if not isinstance(node, Map) or name not in ROLE_NAMES:
            from matrix.findings import did_you_mean

            below = "write nodes:, workers:, gpus:, args: below it"
            fix = below if name in ROLE_NAMES else did_you_mean(name, ROLE_NAMES)
            raise ViewError(_finding(recipe, roles, name, "recipe-roles", f"{name} is not a worker role.", fix))
        nodes: Any = node.get("nodes")
        colocated = name == "decode" and nodes == "colocate"
        if not colocated and (type(nodes) is not int or nodes < 1):
            said = "no nodes" if nodes is None else f"nodes: {nodes}"
            wanted = "a whole number of 1 or more, or colocate" if name == "decode" else "a whole number of 1 or more"
            message = f"role {name} says {said}; it takes {wanted}."
            raise ViewError(_finding(recipe, roles, name, "recipe-nodes", message, "say nodes:, or leave the role out"))
        own = node.get("engine", engine.get("type", ""))
        places = {key: (node, key) for key in ("nodes", "workers", "gpus")}
        yield _role(name, node, 0 if colocated else nodes, own, per_node, places)


def _roles_1(recipe: Recipe, resources: Map, per_node: int) -> Iterator[Role]:
    backend = _map(recipe.data, "backend")
    engine = backend.get("type", "sglang")
    config = _map(backend, f"{engine}_config")
    for name in ROLE_NAMES:
        nodes: Any = resources.get(f"{name}_nodes")
        shared = name == "decode" and nodes == 0 and type(resources.get("decode_workers")) is int
        if type(nodes) is not int or (nodes < 1 and not shared):
            continue
        long = "aggregated" if name == "agg" else name
        node = _empty(backend)
        for key, parent, source in (("args", config, long), ("env", backend, f"{long}_environment")):
            if source in parent:
                node[key] = parent[source]
                node.marks[key] = parent.marks[source]
        keys = {"nodes": f"{name}_nodes", "workers": f"{name}_workers", "gpus": f"gpus_per_{name}"}
        for key, source in keys.items():
            if source in resources:
                node[key] = resources[source]
                node.marks[key] = resources.marks[source]
        places = {key: (resources, source) for key, source in keys.items()}
        yield _role(name, node, nodes, engine, per_node, places)


def _role(name: str, node: Map, nodes: int, engine: Any, per_node: int, places: _Places) -> Role:
    workers = node.get("workers")
    count = workers if type(workers) is int and workers > 0 else 1
    gpus = node.get("gpus")
    return Role(
        name=name,
        nodes=nodes,
        workers=count,
        gpus=gpus if type(gpus) is int and gpus > 0 else max(nodes, 1) * per_node // count,
        engine=engine if isinstance(engine, str) else str(_map_value(engine, "type")),
        container=node.get("container") if isinstance(node.get("container"), str) else None,
        args=_map(node, "args"),
        env=_map(node, "env"),
        places=places,
    )


def _map(node: Map, key: str) -> Map:
    value = node.get(key)
    return value if isinstance(value, Map) else _empty(node)


def _map_value(node: Any, key: str) -> Any:
    return node.get(key, "") if isinstance(node, Map) else ""


def _empty(parent: Map) -> Map:
    node = Map()
    node.mark = parent.mark
    node.marks = {}
    return node


def _finding(recipe: Recipe, node: Map, key: str | None, rule: str, message: str, fix: str) -> Finding:
    from matrix.findings import Finding

    span = recipe.document.of_key(node, key) if key is not None else recipe.home()
    return Finding(rule=rule, message=message, fix=fix, span=span)
