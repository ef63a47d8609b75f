"""The environment of a worker, as the pinned srtctl and our patches set it.

Not rendered: what a profiler, KVBM and OpenTelemetry add.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from matrix.recipes.layout import engine_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.recipes.layout import Layout, Seat
    from matrix.recipes.roles import RecipeView

__all__ = [
    "BracesError",
    "Origin",
    "Variable",
    "masks_gpus",
    "request_plane",
    "system_environment",
    "worker_environment",
]

_SYSTEM_PORT: Final = 7500
_VLLM_PORT: Final = 20000
_VLLM_PORT_STRIDE: Final = 50
_ETCD_PORT: Final = 2379
_NATS_PORT: Final = 4222
_MASTER_PORT: Final = 8700
_METADATA_PORT: Final = 8701
_DYN_LOG: Final = "info,dynamo_runtime::pipeline::network::ingress::push_handler=warn"


class BracesError(Exception):
    """A variable of a worker has braces that srtctl cannot fill in; it knows ``{node}`` and ``{node_id}``."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the variable {name} has braces that srtctl cannot fill in: {reason}.")
        self.name = name


class Origin(StrEnum):
    """Who says a variable: srtctl, the recipe for this kind of process alone, or the recipe for all of them."""

    SRTCTL = "srtctl"
    OWN = "own"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable of a process."""

    name: str
    value: str
    origin: Origin


def worker_environment(view: RecipeView, layout: Layout, seat: Seat, visible_devices: str) -> tuple[Variable, ...]:
    """The variables of one worker process; of two that say one name, the later one of srtctl, role, environment wins.

    ``visible_devices`` is the cluster's name for the variable that hides the other GPUs of a node.

    Raises:
        BracesError: srtctl would end over the braces of a value.
    """
    role = view.roles[seat.role]
    engine = engine_of(view)
    found: dict[str, Variable] = {}

    def put(origin: Origin, variables: Iterable[tuple[str, str]]) -> None:
        # A later value takes the place of an earlier one, and not its position.
        found.update({name: Variable(name, value, origin) for name, value in variables})

    if engine != "atom":
        put(Origin.SRTCTL, [("HEAD_NODE_IP", "<head>"), *system_environment(view, layout).items()])
        put(Origin.SRTCTL, [("DYN_SYSTEM_PORT", str(seat.system)), ("DYN_LOG", _DYN_LOG)])
    fill = _Braces(node=f"<node-{seat.node}>", node_id=str(layout.workers.index(seat.node)))
    for origin, mapping in ((Origin.OWN, role.env), (Origin.ENVIRONMENT, view.environment)):
        put(origin, [(name, fill.into(name, str(value))) for name, value in mapping.items()])
    if masks_gpus(view) and len(seat.gpus) < layout.gpus_per_node:
        put(Origin.SRTCTL, [(visible_devices, ",".join(map(str, seat.gpus)))])
    if engine == "atom":
        put(Origin.SRTCTL, [("ATOM_HOST_IP", seat.address)])
    if engine == "vllm":
        put(Origin.SRTCTL, _vllm_ports(seat).items())
    put(Origin.SRTCTL, _mooncake_store(view, seat).items())
    return tuple(found.values())


def system_environment(view: RecipeView, layout: Layout) -> dict[str, str]:
    """Where Dynamo's services are, for the processes that are told."""
    dynamo = view.recipe.data.get("dynamo")
    planes = dynamo if isinstance(dynamo, dict) else {}
    found = {
        "ETCD_ENDPOINTS": f"http://<node-{layout.infra}>:{_ETCD_PORT}",
        "NATS_SERVER": f"nats://<node-{layout.infra}>:{_NATS_PORT}",
        "DYN_REQUEST_PLANE": request_plane(view),
        "DYN_SKIP_SGLANG_LOG_FORMATTING": "1",
    }
    if planes.get("event_plane"):
        found["DYN_EVENT_PLANE"] = str(planes["event_plane"])
    return found


class _Braces(dict[str, str]):
    """Fills ``{node}`` and ``{node_id}`` in, and leaves every other name as it stands."""

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"

    def into(self, name: str, text: str) -> str:
        try:
            return text.format_map(self)
        except (ValueError, IndexError, AttributeError, KeyError, TypeError) as error:
            raise BracesError(name, str(error)) from None


def masks_gpus(view: RecipeView) -> bool:
    """Whether a variable hides the other GPUs of a node from a worker; vLLM takes a flag instead, unless it is told."""
    if engine_of(view) != "vllm":
        return True
    return bool(view.engine.get("set_visible_devices") or view.engine.get("set_cuda_visible_devices"))


def request_plane(view: RecipeView) -> str:
    """How Dynamo's processes talk to each other."""
    dynamo = view.recipe.data.get("dynamo")
    return str(dynamo.get("request_plane", "tcp")) if isinstance(dynamo, dict) else "tcp"


def _vllm_ports(seat: Seat) -> dict[str, str]:
    found = {
        "DYN_VLLM_KV_EVENT_PORT": str(seat.kv_events),
        "VLLM_NIXL_SIDE_CHANNEL_PORT": str(seat.handshake),
        "VLLM_NIXL_SIDE_CHANNEL_HOST": seat.address,
    }
    if len(seat.nodes) == 1:  # on several nodes vLLM looks for a free port by itself
        found["VLLM_PORT"] = str(_VLLM_PORT + (seat.system - _SYSTEM_PORT) * _VLLM_PORT_STRIDE)
    return found


def _mooncake_store(view: RecipeView, seat: Seat) -> dict[str, str]:
    store = view.engine.get("mooncake_kv_store")
    if not isinstance(store, dict):
        return {}
    own = store.get("env")
    found = {"MOONCAKE_LOCAL_HOSTNAME": seat.address}
    found.update({name: str(value) for name, value in own.items()} if isinstance(own, dict) else {})
    found["MOONCAKE_MASTER"] = f"<infra>:{_MASTER_PORT}"
    found["MOONCAKE_TE_META_DATA_SERVER"] = f"http://<infra>:{_METADATA_PORT}/metadata"
    if engine_of(view) == "vllm":
        found["MOONCAKE_CONFIG_PATH"] = "/logs/mooncake_store_config.json"
    return found
