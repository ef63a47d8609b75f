"""srtctl: its Python, what it can do, whether it takes our files, and the submission of one job.

Nothing is assumed of its version: options are read off its help, and cluster file and recipe are loaded with its own
classes before anything is submitted, because an invalid cluster file is otherwise ignored with a warning.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matrix.errors import RefusedError
from matrix.findings import Finding, Span
from runners import process
from runners.submission import SubmissionError, read_submission
from runners.workspace import beside, locked, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runners.submission import Submission
    from runners.workspace import JobFolder

__all__ = [
    "Environment",
    "features",
    "install",
    "packages",
    "prove",
    "python_version",
    "submit",
]

_LEAST: Final = (3, 10)
_BUILD_SECONDS: Final = 900.0
_SUBMIT_SECONDS: Final = 300.0
_ASK_SECONDS: Final = 120.0

# What the batch script calls as uv: the packages are there already, and a node of a cluster downloads nothing.
_UV: Final = """#!/bin/sh
# Stands in for uv in the batch script of srtctl: the environment was made before the job was submitted.
case "$1" in
    --version) echo "uv 0 (prepared environment)" ;;
    sync) exit 0 ;;
    run)
        shift
        while [ $# -gt 0 ]; do
            case "$1" in
                --python) shift 2 ;;
                --no-dev|--no-sync|--no-project|--offline|--frozen) shift ;;
                *) break ;;
            esac
        done
        [ "$1" = python ] && shift
        exec "{python}" "$@" ;;
    *) echo "uv: the prepared environment cannot do: $*" >&2; exit 2 ;;
esac
"""

_LISTING: Final = (
    "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
)
_PROOF: Final = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from srtctl.core.schema import ClusterConfig
found, given = {}, json.loads(sys.argv[1])
try:
    taken = ClusterConfig.Schema().dump(ClusterConfig.Schema().load(given))
    found["lost"] = sorted(key for key, value in given.items() if taken.get(key) != value)
except Exception as error:
    found["cluster"] = str(error)
else:
    from srtctl.core.config import load_config
    try:
        load_config(sys.argv[2])
    except Exception as error:
        found["recipe"] = str(error)
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The packages that srtctl needs, as a receipt records them. ``made`` says whether this launch made them."""

    folder: Path
    site: Path
    python: Path
    version: str
    packages: Mapping[str, str]
    made: bool = False

    @property
    def sha256(self) -> str:
        """Of the packages with their versions."""
        return sha256(json.dumps(dict(sorted(self.packages.items()))).encode()).hexdigest()


def python_version(python: Path) -> str:
    """``major.minor.micro`` of the profile's Python.

    Raises:
        RefusedError: it is not there, does not start, or is too old.
    """
    try:
        done = process.run(
            [str(python), "-I", "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"],
            timeout=_ASK_SECONDS,
        )
    except process.CallError as error:
        raise _refused(python, "launch-python", f"the profile's Python {error.said}.", _PYTHON_FIX) from None
    version = done.stdout.strip()
    if done.status or not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise _refused(python, "launch-python", f"this does not answer as a Python: {_last(done)}.", _PYTHON_FIX)
    if tuple(map(int, version.split(".")[:2])) < _LEAST:
        wanted = ".".join(map(str, _LEAST))
        raise _refused(python, "launch-python", f"this is Python {version}, and srtctl needs {wanted}.", _PYTHON_FIX)
    return version


_DOCTOR: Final = "python -m runners doctor says what is missing"
_PYTHON_FIX: Final = "name one by python: in the profile, 3.10 or newer, at the same path on all nodes"


def packages(tree: Path) -> tuple[str, ...]:
    """What srtctl's own project file asks for."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    return tuple(project["project"]["dependencies"])


def install(
    wanted: Iterable[str], python: Path, cache: Path, environ: Mapping[str, str], *, interrupt: int | None = None
) -> Environment:
    """The packages for a Python, installed when this content is not there yet; with uv where it is, else with venv.

    Raises:
        RefusedError: the Python cannot be used, or the packages cannot be had.
    """
    names, version = tuple(wanted), python_version(python)
    key = sha256(json.dumps([sorted(names), version, str(python)]).encode()).hexdigest()[:24]
    folder = cache / "python" / key
    with locked(cache / "python" / f"{key}.lock"):
        made = not (folder / "packages.json").is_file()
        if made:
            _build(names, python, folder, environ, interrupt)
    record = json.loads((folder / "packages.json").read_text(encoding="utf-8"))
    site = next(iter(sorted(folder.glob("lib/python*/site-packages"))))
    return Environment(folder=folder, site=site, python=python, version=version, packages=record["packages"], made=made)


def _build(
    names: tuple[str, ...], python: Path, folder: Path, environ: Mapping[str, str], interrupt: int | None
) -> None:
    building = beside(folder)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(building, ignore_errors=True)
    uv, inside = shutil.which("uv", path=environ.get("PATH")), str(building / "bin" / "python")
    if uv is not None:
        make = [uv, "venv", "--quiet", "--python", str(python), str(building)]
        fill = [uv, "pip", "install", "--quiet", "--python", inside, *names]
    else:
        make = [str(python), "-m", "venv", *([] if names else ["--without-pip"]), str(building)]
        fill = [inside, "-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check", *names]
    steps = [make, fill] if names else [make]
    try:
        for step in steps:
            done = process.run(step, timeout=_BUILD_SECONDS, env=dict(environ), interrupt=interrupt)
            if done.status:
                fix = "let this host reach a package index once, or install uv, or apt-get install python3-venv"
                what = " ".join(step[:4])
                raise _refused(folder, "launch-packages", f"{what} ... failed: {_last(done)}.", fix)
        done = process.run([inside, "-c", _LISTING], timeout=_ASK_SECONDS, env=dict(environ))
        write_atomic(building / "packages.json", json.dumps({"packages": json.loads(done.stdout)}))
        building.replace(folder)
    except process.CallError as error:
        raise _refused(folder, "launch-packages", f"{error}.", "see the profile's python") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def link(environment: Environment, clone: Path) -> Path:
    """Give a clone its Python: a small environment of its own that sees the shared packages and this clone's source.

    A variable would do the same and follow the job into its containers, where those paths mean something else.
    """
    venv = clone / ".venv-compute"
    version = ".".join(environment.version.split(".")[:2])
    site = venv / "lib" / f"python{version}" / "site-packages"
    site.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(environment.python)
    real = environment.python.resolve()
    (venv / "pyvenv.cfg").write_text(
        f"home = {real.parent}\ninclude-system-site-packages = false\nversion = {environment.version}\n",
        encoding="utf-8",
    )
    (site / "srtctl.pth").write_text(f"{clone / 'src'}\n{environment.site}\n", encoding="utf-8")
    python = venv / "bin" / "python"
    stand_in = clone / "bin" / "uv"
    stand_in.parent.mkdir(exist_ok=True)
    stand_in.write_text(_UV.replace("{python}", str(python)), encoding="utf-8")
    stand_in.chmod(0o755)
    return python


def prove(
    folder: JobFolder,
    python: Path,
    cluster: Mapping[str, Any],
    *,
    key: Iterable[str],
    cache: Path,
    environ: Mapping[str, str],
) -> None:
    """Load cluster file and recipe with the classes of the very srtctl that will run them.

    What was proven is remembered by content.

    Args:
        folder: The job's folder, files written.
        python: Of the clone.
        cluster: What the cluster file says.
        key: What the proof rests on besides the two files: the tree, the packages.
        cache: Where proofs are remembered.
        environ: The job's environment.

    Raises:
        RefusedError: it does not take one of them whole.
    """
    texts = [
        file.read_text(encoding="utf-8").replace(str(folder.root), "") for file in (folder.cluster_file, folder.recipe)
    ]
    # The tag is another one each time; it is made of letters that no format minds.
    texts = [text.replace(folder.root.name, "") for text in texts]
    known = cache / "proofs" / sha256(json.dumps([*key, *texts]).encode()).hexdigest()
    if known.is_file():
        return
    env = {**environ, "SRTSLURM_CONFIG": str(folder.cluster_file)}
    done = process.run(
        [str(python), "-c", _PROOF, json.dumps(cluster), str(folder.recipe)],
        timeout=_ASK_SECONDS,
        env=env,
        cwd=folder.clone,
    )
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        message = f"srtctl does not start: {_last(done)}."
        raise _refused(folder.clone, "launch-srtctl", message, _DOCTOR) from None
    findings = []
    if said := found.get("cluster"):
        findings.append(
            _finding("launch-cluster-file", f"srtctl refuses the cluster file: {said}.", folder.cluster_file)
        )
    if lost := found.get("lost"):
        message = f"srtctl does not keep {', '.join(lost)} of the cluster file."
        findings.append(_finding("launch-cluster-file", message, folder.cluster_file))
    if said := found.get("recipe"):
        findings.append(_finding("launch-recipe", f"srtctl refuses the recipe: {said}.", folder.recipe))
    if findings:
        raise RefusedError(findings)
    known.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(known, "")


def features(help_text: str) -> frozenset[str]:
    """The long options in a help text.

    >>> sorted(features("usage: srtctl apply [-h] --file CONFIG [--json]"))
    ['--file', '--json']
    """
    return frozenset(re.findall(r"(?<![\w-])--[a-z][a-z-]*", help_text))


def submit(
    folder: JobFolder,
    srtctl: tuple[str, ...],
    environ: Mapping[str, str],
    *,
    remembered: Path,
    interrupt: int | None = None,
) -> Submission:
    """Let srtctl submit the job.

    Args:
        folder: The job's folder.
        srtctl: How it is started, up to its first argument.
        environ: The whole environment of the job.
        remembered: Where its options are kept; named after its content.
        interrupt: A descriptor that becomes readable with a signal.

    Raises:
        InterruptedCallError: a signal came first. There may be a job: look for its tag.
        RefusedError: this srtctl cannot say which job it submitted, or it refuses the job.
        SubmissionError: it did not say which job it submitted.
    """
    env = {**environ, "SRTSLURM_CONFIG": str(folder.cluster_file)}
    known = _options(folder, srtctl, env, remembered)
    if "--json" not in known:
        message = "this srtctl has no apply --json, so it cannot say which job it submitted."
        raise _refused(folder.clone, "launch-srtctl", message, "pin a version that has it")
    argv = [*srtctl, "apply", "-f", str(folder.recipe), "--json", *(["--yes"] if "--yes" in known else [])]
    try:
        done = process.run(argv, timeout=_SUBMIT_SECONDS, env=env, cwd=folder.clone, interrupt=interrupt)
    except process.CallError as error:
        raise SubmissionError(str(error)) from None
    return read_submission(done.status, done.stdout, done.stderr)


def _options(folder: JobFolder, srtctl: tuple[str, ...], env: Mapping[str, str], remembered: Path) -> frozenset[str]:
    """Of ``apply``, asked for once for each content of srtctl: that takes as long as a submission."""
    if remembered.is_file():
        return frozenset(remembered.read_text(encoding="utf-8").split())
    try:
        done = process.run([*srtctl, "apply", "--help"], timeout=_ASK_SECONDS, env=env, cwd=folder.clone)
    except process.CallError as error:
        raise _refused(folder.clone, "launch-srtctl", f"srtctl does not start: {error}.", _DOCTOR) from None
    known = features(done.stdout)
    with suppress(OSError):  # what cannot be remembered is asked for again
        remembered.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(remembered, "\n".join(sorted(known)))
    return known


def _finding(rule: str, message: str, file: Path) -> Finding:
    fix = "this is a fault between our files and the pin; run the tests of the pinned tree"
    return Finding(rule=rule, message=" ".join(message.split()), fix=fix, span=Span(str(file)))


def _refused(place: Path, rule: str, message: str, fix: str) -> RefusedError:
    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(str(place)))])


def _last(done: process.Done) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1].strip().rstrip(".") if lines else f"ended with status {done.status}"
