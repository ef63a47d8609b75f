"""A Slurm cluster of virtual nodes, each with a network of its own, and the launches that are made on it.

    unshare -n -m -u -p -f --kill-child --mount-proc python lab.py SPEC

Runs as root inside namespaces of its own, so that nothing of it is seen outside and its end takes all of it along. SPEC
is JSON: ``folder``, ``plugin``, and ``launches``, each ``{name, argv, env, cwd}``, which run at the same time. Writes
``report.json`` into the folder: name -> status, output, seconds.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

NODES: Final = tuple(f"node{number}" for number in range(1, 7))
NET: Final = "10.89.0"
GPUS: Final = 8
CONF: Final = """\
ClusterName=lab{stamp}
SlurmctldHost=login({net}.1)
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
PlugStackConfig={folder}/plugstack.conf
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
SlurmdParameters=config_overrides
KillWait=2
MinJobAge=300
FirstJobId={stamp}
AccountingStorageType=accounting_storage/none
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE: Final = (
    "NodeName={name} NodeAddr={net}.{number} CPUs=128 Boards=1 Sockets=1 CoresPerSocket=128 ThreadsPerCore=1"
    " RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN"
)


def sh(*argv: str) -> None:
    """Run a program that has to succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{' '.join(argv)}: {done.stderr.strip()}"
        raise RuntimeError(msg)


def until(what: str, condition: Any, seconds: float = 30) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            msg = f"not within {seconds:g} s: {what}"
            raise RuntimeError(msg)
        time.sleep(0.05)


def program(name: str) -> str:
    """Where a program is; daemons are in sbin."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        msg = f"{name} is not installed"
        raise RuntimeError(msg)
    return found


def network(folder: Path) -> None:
    """Names and a bridge that only this namespace knows."""
    addresses = {"localhost": "127.0.0.1", "login": f"{NET}.1"}
    addresses |= {name: f"{NET}.{11 + number}" for number, name in enumerate(NODES)}
    (folder / "hosts").write_text("".join(f"{address} {name}\n" for name, address in addresses.items()))
    sh("mount", "--bind", str(folder / "hosts"), "/etc/hosts")
    sh("hostname", "login")
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", "br0", "type", "bridge")
    sh("ip", "addr", "add", f"{NET}.1/24", "dev", "br0")
    sh("ip", "link", "set", "br0", "up")


def daemon(folder: Path, name: str, *argv: str) -> "subprocess.Popen[bytes]":
    """Start a daemon in the foreground of its own."""
    with (folder / f"{name}.out").open("wb") as output:
        return subprocess.Popen(argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL)


def start_node(folder: Path, number: int, name: str) -> None:
    """A slurmd in a network of its own, joined to the bridge by a pair of interfaces."""
    ready, go = folder / f"{name}.ready", folder / f"{name}.go"
    script = (
        f"hostname {name}; echo $$ > {ready}.new; mv {ready}.new {ready}; while [ ! -e {go} ]; do sleep 0.02; done;"
        f" ip link set lo up; ip addr add {NET}.{11 + number}/24 dev eth0; ip link set eth0 up;"
        f" ip route add default via {NET}.1; exec {program('slurmd')} -D -N {name}"
    )
    daemon(folder, f"slurmd-{name}", "unshare", "-n", "-u", "-m", "sh", "-c", script)
    until(f"{name} is there", ready.exists)
    pid = ready.read_text().strip()
    sh("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", pid)
    sh("ip", "link", "set", f"veth{number}", "master", "br0", "up")
    go.touch()


def furnish(folder: Path, plugin: str) -> None:
    """Write everything that the daemons read."""
    for name in ("state", "dev", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    for number in range(GPUS):
        (folder / "dev" / f"nvidia{number}").symlink_to("/dev/null")
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/dev/nvidia[0-{GPUS - 1}]\n")
    (folder / "plugstack.conf").write_text(f"required {plugin}\n")
    key = os.open(folder / "munge.key", os.O_WRONLY | os.O_CREAT, 0o400)
    os.write(key, os.urandom(128))
    os.close(key)
    values = {
        "folder": folder,
        "net": NET,
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "stamp": 1000 + int(time.time()) % 1_000_000,
        "nodes": "\n".join(
            NODE.format(name=name, net=NET, number=11 + number, gpus=GPUS) for number, name in enumerate(NODES)
        ),
    }
    (folder / "slurm.conf").write_text(CONF.format(**values))


def idle() -> bool:
    """Whether every node waits for jobs."""
    done = subprocess.run(["sinfo", "-h", "-o", "%T %D"], capture_output=True, text=True, check=False)
    return done.stdout.split() == ["idle", str(len(NODES))]


def start(folder: Path, plugin: str) -> None:
    """Bring the cluster up."""
    network(folder)
    furnish(folder, plugin)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "pid", "seed", "log")]
    daemon(folder, "munged", program("munged"), "-F", "--force", f"--socket={folder}/munge.sock", *files)
    until("munged answers", (folder / "munge.sock").exists)
    daemon(folder, "slurmctld", program("slurmctld"), "-D", "-c")
    for number, name in enumerate(NODES):
        start_node(folder, number, name)
    until("all nodes are idle", idle)


def launch(spec: dict[str, Any]) -> dict[str, Any]:
    """Make one launch and wait for it."""
    begun = time.monotonic()
    env = {**os.environ, **spec["env"]}
    done = subprocess.run(spec["argv"], env=env, cwd=spec["cwd"], capture_output=True, text=True, check=False)
    seconds = round(time.monotonic() - begun, 1)
    return {"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "seconds": seconds}


def main(file: str) -> None:
    """Everything."""
    spec = json.loads(Path(file).read_text())
    folder = Path(spec["folder"])
    folder.mkdir()
    report: dict[str, Any] = {}
    try:
        begun = time.monotonic()
        start(folder, spec["plugin"])
        report["cluster"] = {"seconds": round(time.monotonic() - begun, 1)}
        launches = spec["launches"]
        with ThreadPoolExecutor(len(launches)) as pool:
            for each, end in zip(launches, pool.map(launch, launches), strict=True):
                report[each["name"]] = end
        left = subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout
        report["queue"] = {"left": left}
    except Exception as error:  # noqa: BLE001 - the report is the only way out
        logs = [*folder.glob("*.out"), *folder.glob("*.log")]
        report["error"] = {"said": str(error), "logs": {log.name: log.read_text()[-1500:] for log in logs}}
    (folder / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
