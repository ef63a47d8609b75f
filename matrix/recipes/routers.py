"""The router in front of the workers: where it runs, its argv and its environment.

AToMesh, SGLang's router and Dynamo's frontend, as the pinned srtctl and our patches start them. One router holds the
public port itself, unless there are several nodes and ``enable_multiple_frontends`` asks for nginx in front of many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, plain
from matrix.recipes.engines import NoCommandError
from matrix.recipes.environment import Origin, Variable, system_environment
from matrix.recipes.layout import PUBLIC_PORT, ROUTER_PORT, engine_of, frontend_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matrix.recipes.layout import Layout
    from matrix.recipes.roles import RecipeView

__all__ = ["DIRECT", "Front", "front_of", "router_argv", "router_environment"]

DIRECT: Final = frozenset({"vllm"})
"""Frontends without a process: the one worker answers clients itself."""

_MORE_ROUTERS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Where routers run and on which port; ``nginx`` is the node of the balancer in front of them, if there is one."""

    nodes: tuple[int, ...]
    port: int
    nginx: int | None = None


def front_of(view: RecipeView, layout: Layout) -> Front:
    """One router on the head node, or nginx there and a router on each further node."""
    if len(layout.workers) == 1 or view.frontend.get("enable_multiple_frontends", True) is False:
        return Front(nodes=(_home(view, layout),), port=PUBLIC_PORT)
    others = tuple(node for node in layout.workers if node != layout.head)
    more = view.frontend.get("num_additional_frontends", _MORE_ROUTERS)
    many = more + 1 if type(more) is int and more >= 0 else 1
    return Front(nodes=others[:many], port=ROUTER_PORT, nginx=layout.head)


def router_argv(view: RecipeView, layout: Layout, port: int) -> tuple[str, ...]:
    """The command of every router of the job.

    Raises:
        NoCommandError: the pinned srtctl starts no such frontend.
    """
    kind = frontend_of(view)
    args = view.frontend.get("args")
    own = args if isinstance(args, Map) else Map()
    listen = ("--host", "0.0.0.0", "--port", str(port))  # noqa: S104
    match kind:
        case "atomesh":
            backend = ("--backend", "atom")
            return ("atomesh", "launch", *_atom_workers(layout), *listen, *backend, *_atomesh_flags(own))
        case "sglang":
            module = ("python", "-m", "sglang_router.launch_router")
            return (*module, *_sglang_workers(view, layout), *listen, *_plain_flags(own))
        case "dynamo":
            return ("python3", "-m", "dynamo.frontend", f"--http-port={port}", *_plain_flags(own))
        case _:
            msg = f"the pinned srtctl has no frontend {kind}"
            raise NoCommandError(msg)


def router_environment(view: RecipeView, layout: Layout) -> tuple[Variable, ...]:
    """The variables of a router. Those of the recipe's ``environment`` reach Dynamo's alone."""
    found: dict[str, Variable] = {}
    if frontend_of(view) == "dynamo":
        for name, value in system_environment(view, layout).items():
            found[name] = Variable(name, value, Origin.SRTCTL)
        for name, value in view.environment.items():
            found[name] = Variable(name, str(value), Origin.ENVIRONMENT)
    env = view.frontend.get("env")
    for name, value in env.items() if isinstance(env, Map) else ():
        found[name] = Variable(name, str(value), Origin.OWN)
    return tuple(found.values())


def _home(view: RecipeView, layout: Layout) -> int:
    placement = view.frontend.get("placement")
    where = placement.get("node") if isinstance(placement, Map) else view.frontend.get("orchestrator_placement")
    if where != "first_decode":
        return layout.head
    return next((seat.node for seat in layout.leaders("decode")), layout.head)


def _atom_workers(layout: Layout) -> Iterator[str]:
    """No port follows a prefill URL: an ATOM worker publishes its own handshake address."""
    aggregated = [f"http://{seat.address}:{seat.http}" for seat in layout.leaders("agg")]
    if aggregated:
        yield from ("--worker-urls", *aggregated)
        return
    yield "--pd-disaggregation"
    for role in ("prefill", "decode"):
        for seat in layout.leaders(role):
            yield from (f"--{role}", f"http://{seat.address}:{seat.http}")


def _sglang_workers(view: RecipeView, layout: Layout) -> Iterator[str]:
    def url(role: str, address: str, port: int) -> str:
        args = view.roles[role].args
        grpc = engine_of(view) == "sglang" and args.get("grpc-mode") is True
        return f"{'grpc' if grpc else 'http'}://{address}:{port}"

    if "agg" in view.roles:
        yield from ("--worker-urls", *(url("agg", seat.address, seat.http) for seat in layout.leaders("agg")))
        return
    yield "--pd-disaggregation"
    for seat in layout.leaders("prefill"):
        yield from ("--prefill", url("prefill", seat.address, seat.http), str(seat.bootstrap))
    for seat in layout.leaders("decode"):
        yield from ("--decode", url("decode", seat.address, seat.http))


def _atomesh_flags(args: Mapping[str, Any]) -> Iterator[str]:
    """In the recipe's order, spelled with hyphens, a list as a flag a member: not as worker flags are written."""
    for key, value in args.items():
        for member in value if isinstance(value, list) else [value]:
            if member is None or member is False:
                continue
            yield f"--{key.replace('_', '-')}"
            if member is not True:
                yield str(plain(member))


def _plain_flags(args: Mapping[str, Any]) -> Iterator[str]:
    for key, value in args.items():
        if value is None or value is False:
            continue
        yield f"--{key}"
        if value is not True:
            yield str(plain(value))
