"""Commands in blocks that people read and can copy into a shell; what is no command is a comment."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.recipes.commands import Commands, Process

__all__ = ["render_text"]

_INDENT: Final = "  "


def render_text(commands: Commands) -> str:
    """The whole job: header, nodes, mounts, then workers, routers and benchmark. Ends with a line break."""
    blocks = ["\n".join(_header(commands))]
    blocks += ["\n".join(_block(process)) for process in commands.processes]
    return "\n\n".join(blocks) + "\n"


def gpu_range(gpus: Sequence[int]) -> str:
    """GPUs of a node as people say them.

    >>> gpu_range((0, 1, 2, 3)), gpu_range((5,)), gpu_range((0, 2))
    ('GPUs 0-3', 'GPU 5', 'GPUs 0,2')
    """
    if len(gpus) == 1:
        return f"GPU {gpus[0]}"
    whole = tuple(range(gpus[0], gpus[-1] + 1)) == tuple(gpus)
    return f"GPUs {gpus[0]}-{gpus[-1]}" if whole else f"GPUs {','.join(map(str, gpus))}"


def lines_of(argv: Sequence[str]) -> list[str]:
    """A command in lines that the shell joins: the program first, then a flag with its values a line.

    >>> lines_of(["python3", "-m", "server", "--host", "0.0.0.0", "-tp", "8", "--kv-cache", "a b"])
    ['python3 -m server', '--host 0.0.0.0', '-tp 8', "--kv-cache 'a b'"]
    """
    lines: list[list[str]] = [[]]
    for word in argv:
        begins = word.startswith("--") or (len(lines) > 1 and word[:1] == "-" and word[1:2].isalpha())
        if begins and lines[0]:
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return [" ".join(line) for line in lines]


def _header(commands: Commands) -> Iterator[str]:
    yield f"# {commands.name}: {commands.engine} behind {commands.frontend}"
    yield f"# workers load {commands.model}, clients ask for {commands.served}"
    yield f"# batch job: {shlex.join(commands.sbatch)}"
    nodes = "1 node" if len(commands.nodes) == 1 else f"{len(commands.nodes)} nodes"
    yield f"# {nodes} of {commands.gpus_per_node} GPUs:"
    gpus = {process.name: process.gpus for process in commands.processes}
    for number, names in enumerate(commands.nodes):
        hosted = [f"{name} on {gpu_range(gpus[name])}" if gpus[name] else name for name in names]
        yield f"#   <node-{number}>  {', '.join(hosted) or 'etcd and NATS'}"
    yield "# mounts, beside those of the cluster and of srtctl's own folder:"
    for mount in commands.mounts:
        yield f"#   {mount.source} -> {mount.target}  ({mount.origin})"
    yield "# <...> stands for what only the cluster knows: <node-0> for a name, <prefill-0> for the address of the node"
    yield f"# of that worker, <head> for the one of <node-{commands.head}>."


def _block(process: Process) -> Iterator[str]:
    place = [f"<node-{process.node}>"]
    if process.gpus:
        place.append(gpu_range(process.gpus))
    if process.port:
        place.append(f"port {process.port}")
    yield f"# {process.name}: {', '.join(place)}"
    options = f" {shlex.join(process.srun)}" if process.srun else ""
    yield f"# srun --container-image={process.container}{options}"
    lines = [f"{variable.name}={shlex.quote(variable.value)}" for variable in process.env]
    if not process.argv:
        yield f"# no command: {process.why}"
        yield from (f"#   {line}" for line in lines)
        return
    command = lines_of(process.argv)
    if lines:
        command = ["env", *lines, command[0], *(_INDENT + line for line in command[1:])]
    yield " \\\n".join([command[0], *(_INDENT + line for line in command[1:])])
