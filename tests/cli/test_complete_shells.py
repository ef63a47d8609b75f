"""Tab in real shells on a terminal: the documented line is read, keys are typed, the line they give is looked at."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.cli.support import HEAD, RUNNERS, environment, repository
from tests.cli.test_complete import SHELLS, path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["path"]

CLUSTERS: Final = RUNNERS.replace("clusters:", "  cluster:mi300x-a: [mi300x-a_00]\nclusters:").replace(
    "  mi355x-a: {", "  mi300x-a: {gpus-per-node: 8, available-cpu-dram-mib: 1471356}\n  mi355x-a: {"
)
MASTER: Final = "".join(
    f"{key}:\n  {{{HEAD}, runner: '{runner}', multinode: false, scenarios: {{fixed-seq-len: [\n"
    "    {isl: 8192, osl: 1024, search-space: [{tp: 8, conc-list: [4, 16]}]}]}}\n"
    for key, runner in {"alpha": "cluster:mi355x-a", "beta": "cluster:mi300x-a", "gamma": "mi355x"}.items()
)
START: Final = {
    "bash": (["bash", "--norc", "-i"], 'bind -x \'"\\C-g": printf "%s" "$READLINE_LINE" >"$OUT"\''),
    "zsh": (["zsh", "-f", "-i"], "told() { print -rn -- $BUFFER >$OUT }; zle -N told; bindkey '^G' told"),
    "fish": (["fish", "--no-config", "-i"], "bind \\cg 'commandline >$OUT'"),
}
LINES: Final = {
    "expand --runner-type cluster:mi3": "expand --runner-type cluster:mi3",
    "expand --runner-type cluster:mi35": "expand --runner-type cluster:mi355x-a",
    "expand --runner-type cluster:mi300": "expand --runner-type cluster:mi300x-a",
    "expand --runner-type cluster:": "expand --runner-type cluster:mi3",
    "expand --runner-type clus": "expand --runner-type cluster:mi3",
    "expand --runner-type=cluster:mi35": "expand --runner-type=cluster:mi355x-a",
    "expand --runner-type=mi": "expand --runner-type=mi355x",
    "expand --framework=": "expand --framework=sglang",
    "expand --no-evals --runner-type cluster:mi35": "expand --no-evals --runner-type cluster:mi355x-a",
    "expand --ids alpha--8k1k--tp8--c4,be": "expand --ids alpha--8k1k--tp8--c4,beta--8k1k--tp8--c",
    "expand --runner-type cluster:mi355x-a --framew": "expand --runner-type cluster:mi355x-a --framework",
    "expand --runner-type cluster:mi355x-a --framework s": "expand --runner-type cluster:mi355x-a --framework sglang",
    "why-not gam": "why-not gamma--8k1k--tp8--c",
}
QUOTED: Final = {'expand --runner-type "cluster:mi35': 'expand --runner-type "cluster:mi355x-a"'}


@pytest.fixture
def typed(tmp_path: Path, path: str) -> Iterator[Callable[[str, str], str]]:
    """What stands on the line of a shell after some keys, in a repository with labels of clusters."""
    folder = repository(tmp_path / "r", MASTER, CLUSTERS)
    running: list[subprocess.Popen[bytes]] = []

    def press(shell: str, keys: str) -> str:
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} here")
        command, told = START[shell]
        setup = "autoload -Uz compinit; compinit -D -u\n" if shell == "zsh" else ""
        out = tmp_path / "line"
        master, slave = pty.openpty()
        settings = {"TERM": "xterm", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c"), "OUT": str(out)}
        child = subprocess.Popen(
            ["setsid", "--ctty", *command], cwd=folder, env=environment(PATH=path, PS1="$ ", **settings),
            stdin=slave, stdout=slave, stderr=slave,
        )  # fmt: skip
        running.append(child)
        os.close(slave)
        os.set_blocking(master, False)
        ready = tmp_path / "ready"
        os.write(master, f"{setup}{SHELLS[shell].replace(chr(92), '')}\n{told}\ntouch {ready}\n".encode())
        wait(ready.exists, master)
        os.write(master, f"matrix {keys}\t\x07".encode())
        wait(lambda: out.exists() and bool(out.read_text(encoding="utf-8")), master)
        os.close(master)
        return out.read_text(encoding="utf-8").rstrip("\n")

    yield press
    for child in running:
        child.kill()
        child.wait()


def wait(done: Callable[[], bool], terminal: int) -> None:
    """Until something is so; what the shell writes meanwhile is read, or it would wait for a reader."""
    shown = b""
    end = time.monotonic() + 30
    while not done():
        try:
            shown += os.read(terminal, 65536)
        except BlockingIOError:
            time.sleep(0.02)
        assert time.monotonic() < end, shown


@pytest.mark.parametrize("keys", LINES)
@pytest.mark.parametrize("shell", START)
def test_tab_completes_the_line(shell: str, keys: str, typed: Callable[[str, str], str]) -> None:
    assert typed(shell, keys).rstrip(" ") == f"matrix {LINES[keys]}"


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_tab_completes_a_quoted_word(shell: str, typed: Callable[[str, str], str]) -> None:
    for keys, line in QUOTED.items():
        assert typed(shell, keys).rstrip(" ") == f"matrix {line}"
