"""Schema 2 recipes in schema 1, the dialect of the pinned srtctl, and back.

Schema 1 spreads a role over ``resources``, ``backend.<role>_environment`` and ``backend.<engine>_config``. What it has
no word for is left out and told as a finding, so that nothing is lost in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.config.source import plain
from matrix.recipes.roles import ROLE_NAMES
from matrix.recipes.schema_1 import DYNAMO_SOURCE, PLACEMENTS, ROLE_RESOURCES, RULE, SECTIONS, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.findings import Finding
    from matrix.recipes.recipe import Recipe

__all__ = ["RULE", "from_schema_1", "to_schema_1"]


def to_schema_1(recipe: Recipe) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """The recipe as the pinned srtctl reads it, in builtin types, and a finding for each field that it cannot read.

    An error says that the job would differ from the recipe; a warning, that a field goes by another name there. A
    schema 1 recipe comes back as it is, held against the same fields.
    """
    writer = Writer(recipe)
    document = writer.document()
    return document, tuple(writer.findings)


def from_schema_1(data: Mapping[str, Any]) -> dict[str, Any]:
    """A schema 1 document in schema 2; every field of schema 1 has a place there.

    >>> from_schema_1({"name": "x", "resources": {"agg_nodes": 1, "agg_workers": 2}, "backend": {"type": "vllm"}})
    {'schema': 2, 'name': 'x', 'engine': 'vllm', 'roles': {'agg': {'nodes': 1, 'workers': 2}}}
    """
    out: dict[str, Any] = {"schema": 2}
    resources = _mapping(data.get("resources"))
    for key, value in plain(dict(data)).items():
        match key:
            case "backend" | "schema":
                pass
            case "resources":
                if rest := {name: member for name, member in value.items() if name not in ROLE_RESOURCES}:
                    out[key] = rest
            case "infra":
                if services := _services(value):
                    out["services"] = services
            case "frontend" | "benchmark":
                out[key] = _fold_placement(key, value)
            case "dynamo":
                out[key] = _fold_source(value)
            case _:
                out[key] = value
    backend = plain(dict(_mapping(data.get("backend"))))
    engine = backend.pop("type", "sglang")
    roles = {name: role for name in ROLE_NAMES if (role := _fold_role(name, engine, resources, backend))}
    backend.pop(f"{engine}_config", None)
    if backend.pop("set_cuda_visible_devices", False):
        backend["set_visible_devices"] = True
    out["engine"] = {"type": engine, **backend} if backend else engine
    out["roles"] = roles
    return out


def _fold_role(name: str, engine: str, resources: Mapping[str, Any], backend: dict[str, Any]) -> dict[str, Any]:
    """One role out of what schema 1 says of it; settings of the role are taken out of ``backend``."""
    section = SECTIONS[name]
    role: dict[str, Any] = {}
    for key, source in (("nodes", f"{name}_nodes"), ("workers", f"{name}_workers"), ("gpus", f"gpus_per_{name}")):
        if source in resources:
            role[key] = resources[source]
    if name == "decode" and role.get("nodes") == 0:
        role["nodes"] = "colocate"
    environment = backend.pop(f"{section}_environment", None)
    if environment is not None:
        role["env"] = environment
    config = _mapping(backend.get(f"{engine}_config"))
    if section in config:
        role["args"] = config[section]
    events = backend.get("kv_events_config")
    if isinstance(events, dict) and section in events:
        role["kv_events"] = events.pop(section)
        if not events:
            del backend["kv_events_config"]
    return role


def _services(infra: Mapping[str, Any]) -> list[dict[str, Any]]:
    placement = {"placement": {"node": "dedicated"}} if infra.get("etcd_nats_dedicated_node") is True else {}
    payload = infra.get("nats_max_payload_mb")
    options = {"options": {"max_payload_mb": payload}} if payload is not None else {}
    etcd = [{"name": "etcd", "type": "etcd", **placement}] if placement else []
    nats = [{"name": "nats", "type": "nats", **placement, **options}] if placement or options else []
    return [*etcd, *nats]


def _fold_placement(key: str, section: Mapping[str, Any]) -> dict[str, Any]:
    where, dedicated, _ = PLACEMENTS[key]
    out = {name: value for name, value in section.items() if name not in (where, dedicated)}
    if section.get(dedicated) is True:
        out["placement"] = {"node": "dedicated"}
    elif where in section:
        out["placement"] = {"node": section[where]}
    return out


def _fold_source(section: Mapping[str, Any]) -> dict[str, Any]:
    source = {new: section[old] for new, old in DYNAMO_SOURCE.items() if section.get(old) is not None}
    out = {key: value for key, value in section.items() if key not in DYNAMO_SOURCE.values()}
    return {**out, "source": source} if source else out


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
