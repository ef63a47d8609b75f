"""The command of a worker, by engine, as the pinned srtctl and our patches render it.

ATOM by its own rules (`matrix.recipes.atom`); SGLang and vLLM behind their own servers or Dynamo. A profiler's wrapper
is not rendered.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import plain
from matrix.recipes.atom import EXTRA_CONNECTORS, canonical_flag, connector_of
from matrix.recipes.environment import masks_gpus, request_plane
from matrix.recipes.layout import PUBLIC_PORT, engine_of, frontend_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.recipes.layout import Seat
    from matrix.recipes.roles import RecipeView, Role

__all__ = [
    "NoCommandError",
    "model_argument",
    "served_model_name",
    "worker_argv",
]

_SERVED: Final = "served-model-name"
_NCCL_PORT: Final = 17500
_DIST_INIT_PORT: Final = 8300
_SYSTEM_PORT: Final = 7500
_VLLM_OWNED: Final = frozenset({"headless", "host", "port", "master-addr", "nnodes", "node-rank"})
_VLLM_CONNECTORS: Final[Mapping[str, Mapping[str, str]]] = {
    "nixl": {"kv_connector": "NixlConnector", "kv_role": "kv_both"},
    "lmcache": {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"},
    "kvbm": {
        "kv_connector": "DynamoConnector",
        "kv_connector_module_path": "kvbm.vllm_integration.connector",
        "kv_role": "kv_both",
    },
}


class NoCommandError(Exception):
    """There is no command to show; the text says why."""


def model_argument(view: RecipeView) -> str:
    """What a worker is given as its model: the name on the hub, or where the model's folder is inside the container."""
    path = str(view.model.get("path", ""))
    if path.startswith("hf:"):
        return path.removeprefix("hf:")
    stage = view.model.get("stage_dir")
    if isinstance(stage, str) and stage and engine_of(view) == "atom":
        return f"{stage.rstrip('/')}/{path.rstrip('/').rsplit('/', 1)[-1]}"
    return "/model"


def served_model_name(view: RecipeView) -> str:
    """The name that a client has to ask for: the role argument, or what the engine makes of the model.

    ATOM serves its ``--model`` word for word; SGLang and vLLM are told the last part of the path.
    """
    for name in ("prefill", "agg", "decode"):
        role = view.roles.get(name)
        for key, value in role.args.items() if role is not None else ():
            if canonical_flag(key) == _SERVED and value:
                return str(value)
    if engine_of(view) == "atom":
        return model_argument(view)
    return str(view.model.get("path", "")).removeprefix("hf:").rstrip("/").rsplit("/", 1)[-1]


def worker_argv(view: RecipeView, seat: Seat) -> tuple[str, ...]:
    """The command of one worker process.

    Raises:
        NoCommandError: the engine, or the engine with this frontend, is none that the pinned srtctl can start.
    """
    role = view.roles[seat.role]
    frontend = frontend_of(view)
    match engine_of(view):
        case "atom" if frontend == "atomesh":
            return _atom(view, role, seat)
        case "sglang" if frontend in ("sglang", "dynamo"):
            return _sglang(view, role, seat, dynamo=frontend == "dynamo")
        case "vllm" if frontend == "vllm":
            return _vllm_serve(view, role, seat)
        case "vllm" if frontend == "dynamo":
            return _vllm_dynamo(view, role, seat)
    why = f"the pinned srtctl does not start the engine {engine_of(view)} behind the frontend {frontend}"
    raise NoCommandError(why)


# -- engines ------------------------------------------------------------------------------------------------------


def _atom(view: RecipeView, role: Role, seat: Seat) -> tuple[str, ...]:
    connector = connector_of(view, role, seat)
    args = {key: value for key, value in role.args.items() if canonical_flag(key) != EXTRA_CONNECTORS}
    return (
        *("python3", "-m", "atom.entrypoints.openai_server"),
        *("--model", model_argument(view)),
        *("--host", "0.0.0.0"),  # noqa: S104
        *("--server-port", str(seat.http)),
        *("-tp", str(len(seat.gpus))),
        *(("--kv-transfer-config", connector) if connector is not None else ()),
        *_flags(args, verbatim=True),
    )


def _sglang(view: RecipeView, role: Role, seat: Seat, *, dynamo: bool) -> tuple[str, ...]:
    args = _without(role.args, "model-path", "served-model-name", "nccl-port")
    argv = ["python3", "-m", "dynamo.sglang" if dynamo else "sglang.launch_server"]
    argv += ["--model-path", model_argument(view), "--served-model-name", served_model_name(view)]
    argv += ["--host", "0.0.0.0", "--port", str(seat.http)]  # noqa: S104
    argv += ["--nccl-port", str(_NCCL_PORT + seat.system - _SYSTEM_PORT)]
    if seat.role != "agg":
        argv += ["--disaggregation-mode", seat.role]
    if seat.bootstrap:
        argv += ["--disaggregation-bootstrap-port", str(seat.bootstrap)]
    if len(seat.nodes) > 1:
        argv += ["--dist-init-addr", f"{_leader(seat)}:{_DIST_INIT_PORT}"]
        argv += ["--nnodes", str(len(seat.nodes)), "--node-rank", str(seat.rank)]
    if dynamo:
        argv += ["--dump-config-to", f"<log-dir>/<node-{seat.node}>_config.json"]
    argv += _kv_events(view, seat, {"publisher": "zmq", "topic": "kv-events"})
    if dynamo:
        argv += ["--request-plane", request_plane(view)]
    return (*argv, *_flags(args))


def _vllm_serve(view: RecipeView, role: Role, seat: Seat) -> tuple[str, ...]:
    if seat.role != "agg":
        msg = "a vLLM server that answers clients itself is an agg role"
        raise NoCommandError(msg)
    args = _without(role.args, "connector", *_VLLM_OWNED)
    args.setdefault(_SERVED, served_model_name(view))
    argv = ["vllm", "serve", model_argument(view)]
    if seat.rank == 0:
        argv += ["--host", "0.0.0.0", "--port", str(PUBLIC_PORT)]  # noqa: S104
    else:
        args = _without(args, "api-server-count")
    argv += _vllm_nodes(seat)
    return (*argv, *_device_ids(view, seat), *_flags(args))


def _vllm_dynamo(view: RecipeView, role: Role, seat: Seat) -> tuple[str, ...]:
    if any(canonical_flag(key) == "data-parallel-size" and value is not None for key, value in role.args.items()):
        msg = "srtctl cuts a data-parallel vLLM worker into processes of its own, which is not followed here"
        raise NoCommandError(msg)
    connector = role.args.get("connector")
    if connector is None:
        connector = view.engine.get("connector", "nixl")
    argv = ["python3", "-m", "dynamo.vllm", "--model", model_argument(view)]
    argv += ["--served-model-name", served_model_name(view)]
    if seat.role != "agg":
        argv += ["--disaggregation-mode", seat.role]
    if connector and connector not in ("null", "none"):
        preset = _VLLM_CONNECTORS.get(str(connector).lower())
        argv += ["--kv-transfer-config", json.dumps(preset) if preset is not None else str(connector)]
    argv += _device_ids(view, seat)
    argv += _vllm_nodes(seat)
    argv += ["--request-plane", request_plane(view)]
    argv += ["--dump-config-to", f"<log-dir>/<node-{seat.node}>_config.json"]
    argv += _kv_events(view, seat, {"publisher": "zmq", "topic": "kv-events", "enable_kv_cache_events": True})
    return (*argv, *_flags({key: value for key, value in role.args.items() if key != "connector"}))


def _vllm_nodes(seat: Seat) -> list[str]:
    if len(seat.nodes) == 1:
        return []
    argv = ["--master-addr", _leader(seat), "--nnodes", str(len(seat.nodes)), "--node-rank", str(seat.rank)]
    return [*argv, "--headless"] if seat.rank else argv


def _device_ids(view: RecipeView, seat: Seat) -> list[str]:
    if masks_gpus(view):
        return []
    return ["--device-ids", ",".join(map(str, seat.gpus))]


def _kv_events(view: RecipeView, seat: Seat, defaults: Mapping[str, Any]) -> list[str]:
    roles = view.recipe.data.get("roles")
    role = roles.get(seat.role) if isinstance(roles, dict) else None
    config = view.engine.get("kv_events_config")
    if isinstance(role, dict) and "kv_events" in role:
        config = role["kv_events"]
    elif isinstance(config, dict):
        config = config.get("aggregated" if seat.role == "agg" else seat.role)
    elif seat.role == "agg":
        config = None
    if config is not True and not isinstance(config, dict):
        return []
    own = plain(config) if isinstance(config, dict) else {}
    return ["--kv-events-config", json.dumps({**defaults, **own, "endpoint": f"tcp://*:{seat.kv_events}"})]


# -- flags --------------------------------------------------------------------------------------------------------


def _flags(args: Mapping[str, Any], *, verbatim: bool = False) -> list[str]:
    """Flags sorted by key: true is the bare flag, false and null are nothing, a list is one flag with its members."""
    found: list[str] = []
    for key, value in sorted(args.items()):
        if value is None or value is False:
            continue
        found.append(f"--{key}" if verbatim else f"--{key.replace('_', '-')}")
        if isinstance(value, list):
            found.extend(map(str, plain(value)))
        elif value is not True:
            found.append(str(plain(value)))
    return found


def _without(args: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in args.items() if key.replace("_", "-") not in names}


def _leader(seat: Seat) -> str:
    return f"<{seat.role}-{seat.index}>"
