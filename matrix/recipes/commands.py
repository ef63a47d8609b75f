"""What a cluster will be told for one recipe: every process with argv, environment, container, node and GPUs.

Pure: from the resolved recipe alone, as the pinned srtctl and our patches would render it. What only a cluster knows
stands as a placeholder: ``<prefill-0>`` and its like are addresses, ``<node-0>`` names, ``<log-dir>`` the job's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, plain
from matrix.recipes.atom import atom_faults
from matrix.recipes.engines import NoCommandError, model_argument, served_model_name, worker_argv
from matrix.recipes.environment import BracesError, Origin, Variable, worker_environment
from matrix.recipes.layout import PUBLIC_PORT, engine_of, frontend_of, layout_of
from matrix.recipes.roles import ViewError, view_of
from matrix.recipes.routers import DIRECT, front_of, router_argv, router_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matrix.findings import Finding
    from matrix.recipes.layout import Layout, Seat
    from matrix.recipes.recipe import Recipe
    from matrix.recipes.roles import RecipeView
    from matrix.recipes.routers import Front

__all__ = ["Commands", "CommandsError", "Mount", "Process", "commands_of"]

_WORKSPACE: Final = "/infmax-workspace"


class CommandsError(Exception):
    """The recipe can be told to no cluster: srtctl would refuse it. ``findings`` hold every reason."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of the job.

    ``argv`` is empty where there is no command to show: then ``why`` says why, and ``env`` holds the recipe's variables
    alone. ``port`` is what it listens on for requests, 0 for none; ``srun`` the options that its srun gets.
    """

    name: str
    node: int
    gpus: tuple[int, ...] = ()
    port: int = 0
    container: str
    srun: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    argv: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder that every container sees; ``source`` is on the host."""

    source: str
    target: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """All that a cluster is told. ``model`` is the worker's argument, ``served`` the name that clients ask for.

    ``nodes`` lists, for each node, what runs on it; ``head`` is the number of the one that ``<head>`` stands for. Not
    in ``mounts``: those of the cluster and of srtctl's own folder. Not in ``sbatch``: what only the cluster knows.
    """

    name: str
    engine: str
    frontend: str
    model: str
    served: str
    gpus_per_node: int
    head: int
    nodes: tuple[tuple[str, ...], ...]
    workers: tuple[Process, ...]
    routers: tuple[Process, ...]
    benchmark: Process
    mounts: tuple[Mount, ...]
    sbatch: tuple[str, ...]

    @property
    def processes(self) -> tuple[Process, ...]:
        """Workers, routers, benchmark."""
        return (*self.workers, *self.routers, self.benchmark)


def commands_of(recipe: Recipe, *, visible_devices: str = "ROCR_VISIBLE_DEVICES") -> Commands:
    """Render a resolved recipe. ``visible_devices`` is the cluster's variable that hides the other GPUs of a node.

    Raises:
        CommandsError: the recipe is one that srtctl refuses, or it cannot be laid out on its nodes.
    """
    try:
        view = view_of(recipe)
        if faults := tuple(atom_faults(view)):
            raise CommandsError(faults)
        layout = layout_of(view, blocks=engine_of(view) == "atom")
    except ViewError as error:
        raise CommandsError([error.finding]) from None
    workers = tuple(_worker(view, layout, seat, visible_devices) for seat in layout.seats)
    front = front_of(view, layout)
    routers = _routers(view, layout, front)
    benchmark = _benchmark(view, layout, front)
    hosted: list[list[str]] = [[] for _ in range(layout.nodes)]
    for process in (*workers, *routers, benchmark):
        hosted[process.node].append(process.name)
    return Commands(
        name=str(recipe.data.get("name", "")),
        engine=engine_of(view),
        frontend=frontend_of(view),
        model=model_argument(view),
        served=served_model_name(view),
        gpus_per_node=layout.gpus_per_node,
        head=layout.head,
        nodes=tuple(map(tuple, hosted)),
        workers=workers,
        routers=routers,
        benchmark=benchmark,
        mounts=_mounts(view),
        sbatch=_sbatch(view, layout),
    )


def _worker(view: RecipeView, layout: Layout, seat: Seat, visible_devices: str) -> Process:
    role = view.roles[seat.role]
    try:
        env = worker_environment(view, layout, seat, visible_devices)
    except BracesError as error:
        raise CommandsError([_braces(view, role.env, error)]) from None
    argv: tuple[str, ...] = ()
    why = ""
    try:
        argv = worker_argv(view, seat)
    except NoCommandError as error:
        why = str(error)
        env = tuple(variable for variable in env if variable.origin is not Origin.SRTCTL)
    return Process(
        name=seat.name,
        node=seat.node,
        gpus=seat.gpus,
        port=PUBLIC_PORT if frontend_of(view) in DIRECT and seat.rank == 0 else seat.http,
        container=role.container or _container(view),
        srun=_options(view.recipe.data.get("srun_options")),
        env=env,
        argv=argv,
        why=why,
    )


def _routers(view: RecipeView, layout: Layout, front: Front) -> tuple[Process, ...]:
    kind = frontend_of(view)
    if kind in DIRECT:
        return ()
    argv: tuple[str, ...] = ()
    why = ""
    try:
        argv = router_argv(view, layout, front.port)
    except NoCommandError as error:
        why = str(error)
    image = view.frontend.get("container_image")
    routers = [
        Process(
            name=f"router-{index}",
            node=node,
            port=front.port,
            container=image if isinstance(image, str) else _container(view),
            # Of the routers, AToMesh alone is started with the recipe's srun_options.
            srun=_options(view.recipe.data.get("srun_options")) if kind == "atomesh" else (),
            env=router_environment(view, layout),
            argv=argv,
            why=why,
        )
        for index, node in enumerate(front.nodes)
    ]
    if front.nginx is None:
        return tuple(routers)
    raised = "ulimit -n 1048576 && " if view.frontend.get("nginx_raise_ulimit") is True else ""
    balancer = Process(
        name="nginx",
        node=front.nginx,
        port=PUBLIC_PORT,
        container=str(view.frontend.get("nginx_container", "nginx:1.27.4")),
        srun=("--container-remap-root",),
        argv=("bash", "-c", f"{raised}nginx -c /logs/nginx.conf -g 'daemon off;'"),
    )
    return (balancer, *routers)


# -- benchmark ----------------------------------------------------------------------------------------------------


def _benchmark(view: RecipeView, layout: Layout, front: Front) -> Process:
    kind = view.benchmark.get("type", "manual")
    node = layout.client
    placement = view.benchmark.get("placement")
    where = placement.get("node") if isinstance(placement, Map) else None
    if "last_decode" in (where, view.benchmark.get("client_placement")):
        node = [layout.head, *(seat.node for seat in layout.leaders("decode"))][-1]
    image = view.benchmark.get("container_image")
    argv: tuple[str, ...] = ()
    why = f"srtctl has a script of its own for benchmarks of type {kind}"
    if kind == "custom" and isinstance(view.benchmark.get("command"), str):
        argv, why = ("bash", "-lc", view.benchmark["command"]), ""
    elif kind == "custom":
        why = "the recipe gives no benchmark.command"
    elif kind == "manual":
        why = "nothing is run: the server waits for requests"
    return Process(
        name="benchmark",
        node=node,
        container=image if isinstance(image, str) and kind == "custom" else _container(view),
        srun=_options(view.recipe.data.get("srun_options")),
        env=_benchmark_environment(view, layout, front),
        argv=argv,
        why=why,
    )


def _benchmark_environment(view: RecipeView, layout: Layout, front: Front) -> tuple[Variable, ...]:
    found: dict[str, Variable] = {}
    frontend = frontend_of(view)
    system = {"SRTCTL_FRONTEND_TYPE": frontend}
    direct = next(layout.leaders("agg"), None) if frontend in DIRECT else None
    router = front.nodes[0] if front.nginx is None else front.nginx
    system["SRT_FRONTEND_HOST"] = direct.address if direct is not None else _address(layout, router)
    system["SRT_FRONTEND_PORT"] = str(PUBLIC_PORT)
    if view.benchmark.get("type") == "custom":
        ends: list[str] = []
        for role in ("prefill", "decode", "agg"):
            seats = list(layout.leaders(role))
            if not seats:
                continue
            found_ends = [f"{seat.address}:{_metrics_port(frontend, seat)}" for seat in seats]
            system[f"SRT_{role.upper()}_IPS"] = ",".join(seat.address for seat in seats)
            system[f"SRT_{role.upper()}_ENDPOINTS"] = ",".join(found_ends)
            ends += found_ends
        system["AIPERF_SERVER_METRICS_URLS"] = ",".join(f"http://{end}/metrics" for end in ends)
    for name, value in system.items():
        found[name] = Variable(name, value, Origin.SRTCTL)
    for name, value in view.environment.items():
        found[name] = Variable(name, str(value), Origin.ENVIRONMENT)
    env = view.benchmark.get("env")
    for name, value in env.items() if isinstance(env, Map) and view.benchmark.get("type") == "custom" else ():
        found[name] = Variable(name, str(value), Origin.OWN)
    return tuple(found.values())


def _metrics_port(frontend: str, seat: Seat) -> int:
    if frontend == "dynamo":
        return seat.system
    return PUBLIC_PORT if frontend in DIRECT else seat.http


def _address(layout: Layout, node: int) -> str:
    if node == layout.head:
        return "<head>"
    return next((seat.address for seat in layout.seats if seat.node == node), f"<node-{node}>")


# -- what all of them share -----------------------------------------------------------------------------------------


def _mounts(view: RecipeView) -> tuple[Mount, ...]:
    """From the weakest to the strongest; of two with one target the later one counts."""
    found = [Mount(source="<log-dir>", target="/logs", origin="srtctl")]
    path = str(view.model.get("path", ""))
    if not path.startswith("hf:"):
        found.append(Mount(source=path, target="/model", origin="model.path"))
        if isinstance(stage := view.model.get("stage_dir"), str) and stage:
            parent = stage.rstrip("/").rpartition("/")[0] or "/"
            found.append(Mount(source=parent, target=parent, origin="model.stage_dir"))
    extra = view.recipe.data.get("extra_mount")
    for entry in extra if isinstance(extra, Seq) else ():
        source, _, target = str(entry).partition(":")
        found.append(Mount(source=source, target=target, origin="extra_mount"))
    found.append(Mount(source="$INFMAX_WORKSPACE", target=_WORKSPACE, origin="srtctl, where it is set"))
    own = view.recipe.data.get("container_mounts")
    for source, target in own.items() if isinstance(own, Map) else ():
        found.append(Mount(source=str(source), target=str(target), origin="container_mounts"))
    return tuple(found)


def _sbatch(view: RecipeView, layout: Layout) -> tuple[str, ...]:
    """Options of the batch job that the recipe determines."""
    slurm = view.recipe.data.get("slurm")
    own = slurm if isinstance(slurm, Map) else Map()
    found = [f"--job-name={view.recipe.data.get('name', '')}", f"--nodes={layout.nodes}"]
    found += [f"--{flag}={own[key]}" for key, flag in _SLURM.items() if own.get(key)]
    return (*found, *_options(view.recipe.data.get("sbatch_directives")))


_SLURM: Final[Mapping[str, str]] = {"account": "account", "partition": "partition", "time_limit": "time"}


def _options(node: Any) -> tuple[str, ...]:
    """Flags as Slurm takes them; an empty value is a bare flag."""
    members = node.items() if isinstance(node, Map) else ()
    return tuple(f"--{key}" if value == "" else f"--{key}={plain(value)}" for key, value in members)


def _container(view: RecipeView) -> str:
    return str(view.model.get("container", ""))


def _braces(view: RecipeView, env: Map, error: BracesError) -> Finding:
    from matrix.findings import Finding

    home = view.environment if error.name in view.environment else env
    span = view.recipe.document.of_value(home, error.name)
    return Finding(rule="recipe-braces", message=str(error), fix="write the value without braces", span=span)
