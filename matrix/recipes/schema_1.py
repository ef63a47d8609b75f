"""Writing a resolved recipe in schema 1, with a finding for whatever schema 1 cannot say.

The way from a field to its schema 1 name, and what the pinned srtctl does where it has none. `matrix.recipes.dialect`
is the door to this; `matrix.recipes.pinned` lists the fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, plain
from matrix.recipes.pinned import (
    BENCHMARKS,
    ENGINES,
    FIELDS,
    FRONTENDS,
    REQUIRED,
    STRING_MAPS,
    VLLM_CONNECTORS,
    WITHOUT_ETCD_NATS,
)
from matrix.recipes.roles import ROLE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.findings import Finding, Severity, Span
    from matrix.recipes.recipe import Recipe

__all__ = ["DYNAMO_SOURCE", "PLACEMENTS", "ROLE_RESOURCES", "RULE", "SECTIONS", "Writer"]

RULE: Final = "recipe-dialect"
"""The rule that every finding of the translation bears."""

SECTIONS: Final = {"prefill": "prefill", "decode": "decode", "agg": "aggregated"}
"""Role -> its name in ``<engine>_config``, ``<name>_environment`` and ``kv_events_config``."""

ROLE_RESOURCES: Final = frozenset(
    key for name in ROLE_NAMES for key in (f"{name}_nodes", f"{name}_workers", f"gpus_per_{name}")
)
"""What ``resources`` says of roles in schema 1, and the roles themselves in schema 2."""

DYNAMO_SOURCE: Final = {"rev": "hash", "patches": "cargo_patches", "wheel": "wheel", "pypi": "version"}
"""``dynamo.source`` -> ``dynamo``."""

PLACEMENTS: Final = {
    "frontend": ("orchestrator_placement", "dedicated_node", frozenset({"head", "first_decode", "dedicated"})),
    "benchmark": ("client_placement", "client_dedicated_node", frozenset({"head", "last_decode", "dedicated"})),
}
"""Section -> the field for ``placement.node``, the one for ``dedicated``, and the words that can stand there."""

_MOVE_THE_PIN: Final = "leave it out, or move the pin to a version that has it"
_WHY: Final = {
    "backend": "Schema 2 says engine: and roles: instead",
    "frontend.container_image": "There the router runs in model.container",
    "host_setup": "There nothing runs on the hosts before the workers",
    "post_eval": "There evals follow RUN_EVAL and EVAL_ONLY of the launcher alone",
}
"""What there is instead of a field that the pinned srtctl lacks."""


class Writer:
    """One recipe on its way to schema 1, and what could not be said."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.findings: list[Finding] = []

    def document(self) -> dict[str, Any]:
        """The recipe in schema 1, in builtin types; fills ``findings``."""
        data = self.recipe.data
        schema = data.get("schema", 2 if "roles" in data else 1)
        out = self._translated(data) if schema == 2 else self._known("", data, skip=("schema",))
        for path in REQUIRED:
            section, _, field = path.rpartition(".")
            if field not in (out.get(section) or {} if section else out):
                self._tell(self.recipe.home(), f"there is no {path}, and the pinned srtctl requires it.", "say it")
        return out

    def _translated(self, data: Map) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in data.items():
            if value is None or key in ("schema", "engine", "roles", "services"):
                continue
            if key == "backend" or key not in FIELDS[""]:
                self._unknown(data, key, key)
            elif key in FIELDS or key in STRING_MAPS:
                out[key] = self._section(key, self._map(data, key, key))
            else:
                out[key] = plain(value)
        resources = out.setdefault("resources", {})
        if "gpus_per_node" not in resources:
            message = "there is no resources.gpus_per_node. The pinned srtctl takes 4 then, whatever the cluster has."
            self._tell(self.recipe.home(), message, "say how many GPUs a node has")
        out["backend"] = self._backend(data, resources)
        if infra := self._infra(data, str(out.get("frontend", {}).get("type", "dynamo"))):
            out["infra"] = {**out.get("infra", {}), **infra}
        return out

    # -- sections ---------------------------------------------------------------------------------------------------

    def _section(self, key: str, node: Map) -> dict[str, Any]:
        match key:
            case "frontend":
                return self._frontend(node)
            case "benchmark":
                self._one_of(node, "type", "benchmark.type", BENCHMARKS)
                return self._placed(key, node)
            case "dynamo":
                return self._dynamo(node)
            case "resources":
                return self._known(key, node, refused=ROLE_RESOURCES)
            case _:
                return self._known(key, node)

    def _frontend(self, node: Map) -> dict[str, Any]:
        self._one_of(node, "type", "frontend.type", FRONTENDS)
        args = self._map(node, "args", "frontend.args")
        for name, value in args.items():
            if isinstance(value, Seq) and node.get("type") != "atomesh":
                message = f"frontend.args.{name} is a list, and this router would get it as one word in brackets."
                self._tell(self._key(args, name), message, "write the one word that the router reads")
        return self._placed("frontend", node)

    def _placed(self, key: str, node: Map) -> dict[str, Any]:
        """A section whose ``placement`` schema 1 says in two fields of its own."""
        out = self._known(key, node, skip=("placement",))
        placement = node.get("placement")
        if placement is None:
            return out
        where, dedicated, words = PLACEMENTS[key]
        members = placement if isinstance(placement, Map) else Map()
        for name in members:
            if name != "node":
                self._unknown(members, name, f"{key}.placement.{name}")
        word = members.get("node")
        if not isinstance(word, str) or word not in words:
            message = f"{key}.placement.node is {word}, which the pinned srtctl does not know."
            self._tell(self._key(node, "placement"), message, f"write one of {', '.join(sorted(words))}")
        elif word == "dedicated":
            out[dedicated] = True
        else:
            out[where] = word
        return out

    def _dynamo(self, node: Map) -> dict[str, Any]:
        out = self._known("dynamo", node, skip=("source",))
        source = self._map(node, "source", "dynamo.source")
        for name, value in source.items():
            if name in DYNAMO_SOURCE:
                out[DYNAMO_SOURCE[name]] = plain(value)
            else:
                self._unknown(source, name, f"dynamo.source.{name}")
        return out

    def _known(
        self, path: str, node: Map, *, skip: Iterable[str] = (), refused: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The members of a section that the pin reads."""
        out: dict[str, Any] = {}
        for key, value in node.items():
            inner = f"{path}.{key}" if path else key
            if key in skip:
                continue
            if key in refused or (path in FIELDS and key not in FIELDS[path]):
                self._unknown(node, key, inner)
            elif inner in FIELDS or inner in STRING_MAPS:
                if value is not None:
                    out[key] = self._known(inner, self._map(node, key, inner))
            else:
                out[key] = plain(value)
        if path in STRING_MAPS:
            self._strings(path, node)
        return out

    # -- services ---------------------------------------------------------------------------------------------------

    def _infra(self, data: Map, frontend: str) -> dict[str, Any]:
        """``infra``, as far as it can say what the services are."""
        found = data.get("services")
        out: dict[str, Any] = {}
        dedicated: set[bool] = set()
        services = found if isinstance(found, Seq) else ()
        if (services is not found and found is not None) or not all(isinstance(service, Map) for service in services):
            self._tell(self._key(data, "services"), "services is no list of mappings.", "write - name: ... below it")
            return out
        for service in services:
            if service.get("enabled", True) is False:
                continue
            kind = service.get("type", service.get("name"))
            if kind in ("etcd", "nats") and frontend not in WITHOUT_ETCD_NATS:
                dedicated.add(self._infra_service(service, kind, out))
                continue
            why = "It starts etcd and NATS alone beside workers and router"
            if kind in ("etcd", "nats"):
                why = f"Beside the frontend {frontend} it starts neither etcd nor NATS"
            self._unknown(service, next(iter(service), ""), f"service {kind}", why)
        if len(dedicated) > 1:
            message = "etcd and nats are placed differently, and schema 1 places them together."
            self._tell(self._key(data, "services"), message, "give both placement.node: dedicated, or neither")
        elif True in dedicated:
            out["etcd_nats_dedicated_node"] = True
        return out

    def _infra_service(self, service: Map, kind: str, out: dict[str, Any]) -> bool:
        """Whether etcd or NATS has a node of its own; ``out`` gets the one option that schema 1 knows."""
        for key, value in service.items():
            if key in ("name", "type", "enabled"):
                continue
            if key == "placement" and isinstance(value, Map) and plain(value) in _INFRA_PLACEMENTS:
                continue
            if key == "options" and kind == "nats" and isinstance(value, Map):
                for option, setting in value.items():
                    if option == "max_payload_mb":
                        out["nats_max_payload_mb"] = plain(setting)
                    else:
                        self._unknown(value, option, f"services.nats.options.{option}")
            else:
                self._unknown(service, key, f"services.{kind}.{key}")
        placement = service.get("placement")
        return isinstance(placement, Map) and placement.get("node") == "dedicated"

    # -- engine and roles -------------------------------------------------------------------------------------------

    def _backend(self, data: Map, resources: dict[str, Any]) -> dict[str, Any]:
        """``backend`` of schema 1; what it says of nodes, workers and GPUs goes to ``resources``."""
        found = self._map(data, "roles", "roles")
        if not found:
            self._tell(
                self.recipe.home(), "the recipe has no roles.", "write roles: with agg, or with prefill and decode"
            )
        roles = {name: self._map(found, name, f"roles.{name}") for name in found if name in ROLE_NAMES}
        engine, out = self._engine(data, roles)
        config: dict[str, Any] = {}
        events: dict[str, Any] = {}
        for name, role in roles.items():
            section = SECTIONS[name]
            self._shape(name, role, resources)
            if "env" in role:
                env = self._map(role, "env", f"roles.{name}.env")
                self._strings(f"roles.{name}.env", env)
                out[f"{section}_environment"] = plain(env)
            if "args" in role:
                args = self._map(role, "args", f"roles.{name}.args")
                self._connector(args, f"roles.{name}.args.connector", engine)
                config[section] = plain(args)
            if "kv_events" in role:
                if "kv_events_config" in ENGINES.get(engine, ()):
                    events[section] = plain(role["kv_events"])
                else:
                    self._unknown(role, "kv_events", f"roles.{name}.kv_events", f"Its {engine or 'engine'} has no such")
            self._rest(name, role)
        if events:
            out["kv_events_config"] = events
        if config:
            out[f"{engine}_config"] = config
        return out

    def _shape(self, name: str, role: Map, resources: dict[str, Any]) -> None:
        """Nodes, workers and GPUs of a role."""
        for key, target in (("nodes", f"{name}_nodes"), ("workers", f"{name}_workers"), ("gpus", f"gpus_per_{name}")):
            if key in role:
                resources[target] = 0 if role[key] == "colocate" else plain(role[key])
        # Schema 1 takes no worker where schema 2 takes one.
        resources.setdefault(f"{name}_workers", 1)
        if role.get("nodes") == "colocate" and "gpus" not in role:
            message = f"roles.{name} shares the nodes of prefill and does not say its gpus:."
            self._tell(self._key(role, "nodes"), message, "say how many GPUs each of its workers has")

    def _rest(self, name: str, role: Map) -> None:
        """The fields of a role that schema 1 has no word for; harmless where they say what holds there anyway."""
        model = self.recipe.data.get("model")
        for key, value in role.items():
            if key in _ROLE_FIELDS or (key == "critical" and value is True):
                continue
            if key == "container":
                if not isinstance(model, Map) or value != model.get("container"):
                    why = "There every worker and the router run in model.container"
                    fix = "give the role the image of model.container, or leave it out"
                    self._unknown(role, key, f"roles.{name}.container", why, fix)
            else:
                self._unknown(role, key, f"roles.{name}.{key}")

    def _engine(self, data: Map, roles: dict[str, Map]) -> tuple[str, dict[str, Any]]:
        """The one engine of all roles with its settings, under their schema 1 names."""
        homes = [node for node in (data, *roles.values()) if node.get("engine") is not None]
        if not homes:
            fix = f"write engine: with one of {', '.join(sorted(ENGINES))}"
            self._tell(self.recipe.home(), "the recipe names no engine.", fix)
            return "", {}
        value = homes[0]["engine"]
        for other in homes[1:]:
            if plain(other["engine"]) != plain(value):
                message = "the roles have different engines, and schema 1 has one for all."
                self._tell(self._key(other, "engine"), message, "give every role the same engine, or split the recipe")
        settings = value if isinstance(value, Map) else Map()
        name = settings.get("type") if isinstance(value, Map) else value
        if not isinstance(name, str) or name not in ENGINES:
            where = self._key(settings, "type") if "type" in settings else self._key(homes[0], "engine")
            fix = f"known: {', '.join(sorted(ENGINES))}"
            self._tell(where, f"the pinned srtctl has no engine {name}.", fix)
            return (name, {"type": name}) if isinstance(name, str) else ("", {})
        out: dict[str, Any] = {"type": name}
        for key, setting in settings.items():
            if key == "set_visible_devices" and "set_cuda_visible_devices" in ENGINES[name]:
                self._visible_devices(settings, setting, out)
            elif key in ENGINES[name]:
                out[key] = plain(setting)
            elif key != "type":
                self._unknown(settings, key, f"engine.{key}")
        self._connector(settings, "engine.connector", name)
        return name, out

    def _visible_devices(self, settings: Map, value: Any, out: dict[str, Any]) -> None:
        if value is not True:
            return
        from matrix.findings import Severity

        out["set_cuda_visible_devices"] = True
        message = (
            "the pinned srtctl has no engine.set_visible_devices. Its set_cuda_visible_devices stands in, which sets "
            "the variable that the cluster file names in visible_devices_env, or CUDA_VISIBLE_DEVICES if it names none."
        )
        fix = "see that the cluster's profile names the variable of its GPUs"
        self._tell(self._key(settings, "set_visible_devices"), message, fix, Severity.WARNING)

    def _connector(self, node: Map, path: str, engine: str) -> None:
        """vLLM's connector: a word the pin knows, or the JSON itself; any other word would be passed on as JSON."""
        word = node.get("connector")
        if engine != "vllm" or word is None:
            return
        if isinstance(word, str) and (word.lower() in VLLM_CONNECTORS or word.lstrip().startswith("{")):
            return
        fix = f"known: {', '.join(sorted(VLLM_CONNECTORS))}; or write the JSON of --kv-transfer-config"
        self._tell(self._key(node, "connector"), f"{path} is {word}, which the pinned srtctl does not know.", fix)

    def _map(self, node: Map, key: str, path: str) -> Map:
        """A mapping below a key; an empty one, and a finding, where something else is."""
        value = node.get(key)
        if isinstance(value, Map):
            return value
        if value is not None:
            self._tell(self._key(node, key), f"{path} is no mapping.", "write its keys below it")
        empty = Map()
        empty.mark, empty.marks = node.mark, {}
        return empty

    # -- findings ---------------------------------------------------------------------------------------------------

    def _strings(self, path: str, node: Map) -> None:
        for key, value in node.items():
            if not isinstance(value, str):
                written = str(value).lower() if isinstance(value, bool) else str(value)
                message = f"{path}.{key} is {written}, and the pinned srtctl takes only strings there."
                self._tell(self.recipe.document.of_value(node, key), message, f'quote it: "{written}"')

    def _one_of(self, node: Map, key: str, path: str, words: frozenset[str]) -> None:
        if key in node and (not isinstance(node[key], str) or node[key] not in words):
            message = f"{path} is {node[key]}, which the pinned srtctl does not know."
            fix = f"known: {', '.join(sorted(words))}; or move the pin to a version that has it"
            self._tell(self.recipe.document.of_value(node, key), message, fix)

    def _unknown(self, node: Map, key: str, path: str, why: str = "", fix: str = _MOVE_THE_PIN) -> None:
        reason = why or _WHY.get(path, "")
        message = f"the pinned srtctl has no {path}.{f' {reason}.' if reason else ''}"
        self._tell(self._key(node, key), message, fix)

    def _key(self, node: Map, key: str) -> Span:
        return self.recipe.document.of_key(node, key)

    def _tell(self, span: Span, message: str, fix: str, severity: Severity | None = None) -> None:
        from matrix.findings import Finding, Severity

        severity = severity or Severity.ERROR
        self.findings.append(Finding(rule=RULE, message=message, fix=fix, span=span, severity=severity))


_ROLE_FIELDS: Final = frozenset({"nodes", "workers", "gpus", "env", "args", "kv_events", "engine"})
_INFRA_PLACEMENTS: Final = ({"node": "head"}, {"node": "dedicated"})
