"""A real Slurm cluster in one temporary folder: one controller and three nodes with fake GPUs, on the loopback address.

It needs no root, no systemd and no /etc/slurm, comes up in about a second and leaves nothing behind, also when the
process that started it is killed: a reaper of its own notices that and ends what is left.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from runners.job import JobId, job_id_of, state_of

NODES: Final = ("node1", "node2", "node3")
GPUS: Final = 8
PROGRAMS: Final = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "sacct", "scancel", "sinfo")
INSTALL: Final = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

# Debian's defaults start a batch job after 3 s; with these SchedulerParameters it is about 1 s. GPUs have to be files
# that are devices, or the nodes report none; links to /dev/null are. ReturnToService=2 would heal a node that a test
# has set down. EnforcePartLimits refuses at submission what could never start. MessageTimeout is how long a client goes
# on knocking at a controller that is down.
CONF: Final = """\
ClusterName=contract
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=1
SlurmdParameters=config_overrides
SlurmdTimeout=5
SlurmctldTimeout=30
MessageTimeout=5
KillWait=2
UnkillableStepTimeout=60
MinJobAge={min_job_age}
CompleteWait=0
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.log
EnforcePartLimits=ALL
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL Default=NO PriorityTier=10 MaxTime=INFINITE State=UP
"""
NODE: Final = (
    "NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs=16 Boards=1 Sockets=1 CoresPerSocket=16 ThreadsPerCore=1"
    " RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN"
)
MIN_JOB_AGE: Final = 300


class ClusterError(Exception):
    """The cluster does not do what a test rests on. The text holds the ends of the logs."""


def missing() -> list[str]:
    """The programs that a cluster needs and this machine lacks."""
    return [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]


def unavailable() -> str:
    """Why no cluster can be started here; empty when one can. One that does not start is always a failure."""
    if not sys.platform.startswith("linux"):
        return "real Slurm needs Linux"
    lacking = missing()
    return f"real Slurm is not installed (missing {', '.join(lacking)}): {INSTALL}" if lacking else ""


def clean_environment() -> dict[str, str]:
    """Ours, without what a surrounding Slurm job or a habit of the user has put into it."""
    foreign = ("SLURM", "SBATCH", "SQUEUE", "SACCT", "SCANCEL", "SRUN")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | {"PATH": PATH}


def until(condition: Callable[[], bool], timeout: float, what: Callable[[], str]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            msg = f"not within {timeout:g} s: {what()}"
            raise ClusterError(msg)
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; another program may still take one before we do."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


@dataclass(slots=True)
class Cluster:
    """A cluster that is up. Made by `running`."""

    folder: Path
    env: dict[str, str]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    # --- daemons ---------------------------------------------------------------------------------

    def spawn(self, name: str, *argv: str) -> None:
        """Start a daemon in the foreground of a session of its own."""
        program = shutil.which(argv[0], path=PATH) or argv[0]
        with (self.folder / f"{name}.out").open("ab") as output:
            self.daemons[name] = subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.env,
                cwd=self.folder,
                start_new_session=True,
            )

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon and wait for it."""
        daemon = self.daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(15)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def start_controller(self, *, cold: bool = False) -> None:
        """Start slurmctld; a cold start forgets all jobs."""
        self.spawn("slurmctld", "slurmctld", "-D", *(["-c"] if cold else []))

    def kill_controller(self, job: JobId) -> None:
        """Kill slurmctld as a crash would, once it has written down that it knows a job: it saves every few seconds."""
        saved = self.folder / "state" / "job_state"
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        # What has changed since is in the next file.
        self.run("scontrol", "update", f"jobid={job}", f"AdminComment={before}")
        until(lambda: saved.exists() and saved.stat().st_mtime_ns > before, 30, self.logs)
        self.end("slurmctld", signal.SIGKILL)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        self.spawn(f"slurmd-{name}", "slurmd", "-D", "-N", name)

    def start(self) -> None:
        """Bring everything up and wait until jobs can run."""
        files = {kind: f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "pid", "seed", "log")}
        self.spawn("munged", "munged", "-F", f"--socket={self.folder}/munge.sock", *files.values())
        until((self.folder / "munge.sock").exists, 10, self.logs)
        self.start_controller(cold=True)
        for name in NODES:
            self.start_node(name)
        until(self.idle, 30, self.logs)

    def idle(self) -> bool:
        """Whether all nodes wait for jobs. Raises ClusterError when a daemon has ended."""
        for name, daemon in self.daemons.items():
            if daemon.poll() is not None:
                msg = f"{name} ended with {daemon.returncode}\n{self.logs()}"
                raise ClusterError(msg)
        states = self.attempt("sinfo", "-h", "-p", "main", "-o", "%T %D")
        return states.stdout.split() == ["idle", str(len(NODES))]

    def stop(self) -> None:
        """End all daemons, and whatever jobs have left running."""
        for name in reversed(list(self.daemons)):
            self.end(name)
        sweep(self.folder)

    def logs(self) -> str:
        """The ends of all logs."""
        files = sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")])
        return "\n".join(f"--- {file.name}\n" + "\n".join(_lines(file)[-12:]) for file in files)

    # --- programs --------------------------------------------------------------------------------

    def attempt(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program of Slurm, whatever becomes of it."""
        env = {**self.env, **more}
        return subprocess.run(argv, env=env, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def run(self, *argv: str) -> str:
        """The output of a program that has to succeed."""
        done = self.attempt(*argv)
        if done.returncode:
            msg = f"{' '.join(argv)}: {done.returncode} {done.stderr}"
            raise ClusterError(msg)
        return done.stdout

    def submit(self, script: str, *options: str) -> JobId:
        """Submit a bash script; its output goes to `log` unless an option says otherwise."""
        options = ("--no-requeue", f"--output={self.folder}/slurm-%j.out", *options)
        argv = ["sbatch", "--parsable", *options]
        done = subprocess.run(
            argv, env=self.env, cwd=self.folder, input=f"#!/bin/bash\n{script}\n", capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        if done.returncode:
            msg = f"{' '.join(argv)}: {done.returncode} {done.stderr}"
            raise ClusterError(msg)
        return job_id_of(done.stdout)

    def log(self, job: JobId) -> Path:
        """Where `submit` has a job write."""
        return self.folder / f"slurm-{job}.out"

    def state(self, job: JobId) -> str:
        """The state of a job as one word, empty when the controller does not know it."""
        words = self.attempt("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").stdout.split()
        return state_of(words[0]).value if words else ""

    def queue(self) -> list[str]:
        """The ids of the jobs that are in the queue, waiting or running."""
        return self.run("squeue", "-h", "-o", "%A").split()

    def wait(self, job: JobId, states: Collection[str], timeout: float = 30) -> None:
        """Wait until a job is in one of these states."""
        until(lambda: self.state(job) in states, timeout, lambda: f"{job} is {self.state(job)}\n{self.logs()}")

    def set_node(self, name: str, state: str) -> None:
        """Drain a node, take it down or resume it."""
        self.run("scontrol", "update", f"nodename={name}", f"state={state}", "reason=test")

    def set_min_job_age(self, seconds: int) -> None:
        """Change how long the controller remembers a job that has ended."""
        conf = self.folder / "slurm.conf"
        lines = [
            f"MinJobAge={seconds}" if line.startswith("MinJobAge=") else line for line in conf.read_text().splitlines()
        ]
        conf.write_text("\n".join(lines) + "\n")
        self.run("scontrol", "reconfigure")

    def reset(self) -> None:
        """No job, every node idle: as the next test wants it."""
        if "slurmctld" not in self.daemons:
            self.start_controller()
        until(lambda: self.attempt("scontrol", "ping").returncode == 0, 30, self.logs)
        if f"MinJobAge={MIN_JOB_AGE}\n" not in (self.folder / "slurm.conf").read_text():
            self.set_min_job_age(MIN_JOB_AGE)
        if jobs := self.run("squeue", "-h", "-o", "%A").split():
            self.run("scancel", *jobs)
            until(lambda: not self.run("squeue", "-h").strip(), 30, lambda: self.run("squeue"))
        for line in self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").splitlines():
            name, state = line.split()
            if state.startswith(("down", "drain")):
                self.set_node(name, "resume")
        until(self.idle, 30, lambda: self.run("sinfo", "-N", "-l") + self.logs())


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A cluster, up and idle; down and gone when the context is left."""
    # Short, because the path of a socket may have 108 bytes at most.
    folder = Path(tempfile.mkdtemp(prefix="matrix-slurm-", dir="/tmp"))
    reaper = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        # Not ours: that may name another cluster, whose end would be the end of this reaper.
        env=clean_environment() | {"PYTHONPATH": str(Path(__file__).parents[2])},
        start_new_session=True,
    )
    try:
        # A port may be taken between its choice and its use.
        cluster = _started(folder, attempts=3)
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        reaper.communicate()
    if left := alive(folder):
        msg = f"processes are left behind: {left}"
        raise ClusterError(msg)


def _started(folder: Path, attempts: int) -> Cluster:
    env = clean_environment() | {"SLURM_CONF": str(folder / "slurm.conf")}
    while True:
        attempts -= 1
        cluster = Cluster(folder, env)
        try:
            _furnish(folder)
            cluster.start()
        except BaseException as error:
            cluster.stop()
            if not attempts or not isinstance(error, ClusterError):
                raise
        else:
            return cluster


def _furnish(folder: Path) -> None:
    """Write everything that the daemons read."""
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    folder.chmod(0o755)
    for name in ("state", "dev", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    for number in range(GPUS):
        (folder / "dev" / f"nvidia{number}").symlink_to("/dev/null")
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/dev/nvidia[0-{GPUS - 1}]\n")
    key = os.open(folder / "munge.key", os.O_WRONLY | os.O_CREAT, 0o400)
    os.write(key, os.urandom(128))
    os.close(key)
    port, *ports = free_ports(1 + len(NODES))
    values: Mapping[str, object] = {
        "host": socket.gethostname().partition(".")[0],
        "controller_port": port,
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "folder": folder,
        "min_job_age": MIN_JOB_AGE,
        "nodes": "\n".join(
            NODE.format(name=name, port=port, gpus=GPUS) for name, port in zip(NODES, ports, strict=True)
        ),
    }
    (folder / "slurm.conf").write_text(CONF.format_map(values))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []


# --- leftovers -----------------------------------------------------------------------------------


def alive(folder: Path) -> list[int]:
    """The processes of a cluster: daemons, job steps and jobs all carry the path of its configuration."""
    mark = f"SLURM_CONF={folder}/slurm.conf".encode()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # What has ended and waits for its parent has no environment any more.
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def sweep(folder: Path) -> None:
    """End every process of a cluster, by its id; TERM alone is not enough for the steps of jobs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 3
        while (left := alive(folder)) and time.monotonic() < deadline:
            for each in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, number)
            time.sleep(0.05)


def reap(folder: Path, owner: IO[bytes]) -> None:
    """Wait until the owner has let go of its end of a pipe, whatever ended it, then clear up behind it."""
    owner.read()
    sweep(folder)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    reap(Path(sys.argv[1]), sys.stdin.buffer)
