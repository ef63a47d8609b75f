"""Prepare a launch: all that can be known and made before a job exists, and everything that is wrong with it."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matrix import __version__
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, Span
from matrix.recipes.pinned import WITHOUT_ETCD_NATS
from runners import srtctl
from runners.jobenv import base_environment, point_environment, steering_settings
from runners.pin import read_pin, require
from runners.receipt import Receipt, Step, now
from runners.resolved import Resolved, client_scripts, images_of, resolve
from runners.results import Kind, kinds_of, leftovers
from runners.series import load_series, pin_findings
from runners.workspace import (
    JobFolder,
    add_tools,
    checkout_of,
    clone,
    lacking,
    make_job_folder,
    patched_tree,
    sha256_of,
    write_atomic,
    write_yaml,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runners.profile import Profile
    from runners.target import Target

__all__ = ["Prepared", "Wishes", "drift", "host_faults", "prepare", "tag_of"]

_LEAST_FREE: Final = 16 * 2**20
"""Bytes: a clone and the logs of a job that fails at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a launch may be asked for besides its point.

    ``rdma``: mount the host's RDMA libraries. ``allow_drift``: run what is here although something else was planned, or
    the submodule is not the pin. ``off_cluster``: this host is not the cluster's, so its paths are not looked for.
    """

    rdma: bool = False
    allow_drift: bool = False
    off_cluster: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job that can be submitted."""

    target: Target
    profile: Profile
    tag: str
    folder: JobFolder
    resolved: Resolved
    environ: Mapping[str, str]
    srtctl: tuple[str, ...]
    options: Path
    """Where it is remembered what this very srtctl can do."""
    receipt: Receipt
    warnings: tuple[Finding, ...] = ()

    @property
    def id(self) -> str:
        """The point's."""
        return str(self.target.row["id"])


def tag_of(name: str) -> str:
    """A mark for one launch of a point, by which its job can be found; unique, and fit for file names."""
    return f"{name}.{secrets.token_hex(4)}"


def drift(target: Target) -> Finding:
    """That a point is another job than the one that was planned."""
    message = (
        f"{target.row['id']} was planned with the digest {target.claimed}, and this checkout makes "
        f"{target.row['digest']} of it. Its row, recipe, curve, patches or pin differ."
    )
    fix = "launch from the commit that was planned, plan again, or give --allow-drift, which records both"
    span = Span(target.source) if target.source else None
    return Finding(rule="launch-drift", message=message, fix=fix, span=span)


def prepare(
    target: Target,
    profile: Profile,
    repository: Path,
    environ: Mapping[str, str],
    wishes: Wishes,
    *,
    interrupt: int | None = None,
) -> Prepared:
    """Make the folder of a job, with everything in it proven to be what srtctl takes.

    Nothing of it is left when it is refused.

    Args:
        target: The point.
        profile: The cluster.
        repository: The checkout that records pin and patches.
        environ: This process's environment.
        wishes: What is asked for.
        interrupt: A descriptor that becomes readable with a signal.

    Raises:
        RefusedError: with everything that is wrong.
        InterruptedCallError: a signal came.
    """
    tag = tag_of(str(target.row["id"]))
    findings = [drift(target)] if target.drifted and not wishes.allow_drift else []
    warnings = list(target.warnings)
    resolved, found = _resolved(target, tag, profile)
    findings += found
    for name in steering_settings(target.row):
        message = f"additional-settings sets {name}, and sbatch takes that before all that recipe and profile say."
        findings.append(Finding("launch-setting", message, "say it by slurm or sbatch_directives of the recipe"))
    faults = list(host_faults(profile, resolved.document if resolved else {}, target.row))
    (warnings if wishes.off_cluster else findings).extend(
        fault._replace(severity=Severity.WARNING) if wishes.off_cluster else fault for fault in faults
    )
    pin, series = read_pin(repository), load_series(repository / "runners" / "srt-slurm" / "patches")
    try:
        warnings += require(pin, allow_drift=wishes.allow_drift)
    except RefusedError as refused:
        findings += refused.findings
    if not wishes.allow_drift:
        findings += pin_findings(series, pin.commit)
    if findings or resolved is None:
        raise RefusedError(findings)
    warnings += resolved.warnings

    base = base_environment(environ, profile.pass_environment)
    tree, applied = patched_tree(series, pin.folder, pin.base, profile.cache)
    packages = srtctl.install(srtctl.packages(tree), profile.python, profile.cache, base, interrupt=interrupt)
    key = (applied.tree, packages.sha256)
    folder = make_job_folder(profile.jobs, tag)
    try:
        clone(tree, applied, folder.clone)
        add_tools(folder.clone, dict(profile.tools))
        python = srtctl.link(packages, folder.clone)
        write_atomic(folder.recipe, resolved.text)
        cluster = profile.file(root=folder.clone, images=images_of(resolved.document), rdma=wishes.rdma)
        cluster_text = write_yaml(folder.cluster_file, cluster)
        job = {
            **base,
            **point_environment(target.row, tag, environ.get("RUNNER_NAME") or os.uname().nodename),
            "INFMAX_WORKSPACE": str(profile.workspace),
        }
        srtctl.prove(
            folder,
            python,
            cluster,
            key=key,
            cache=profile.cache,
            environ=base,
        )
    except BaseException:
        folder.remove()
        raise
    receipt = Receipt(
        step=Step.PREPARED,
        point={
            "id": target.row["id"],
            "digest": target.row["digest"],
            "planned-digest": target.claimed,
            "golden": target.point.deployment.golden if not target.point.eval_only else None,
            "row": dict(target.row),
        },
        software={
            "pin": pin.commit,
            "base": applied.base,
            "tree": applied.tree,
            "patches": dict(applied.patches),
            "submodule-changes": list(pin.modified),
            "python": packages.version,
            "packages": dict(packages.packages),
        },
        inputs={
            "recipe-sha256": resolved.sha256,
            "recipe-content-sha256": resolved.content_sha256,
            "cluster-file-sha256": sha256(cluster_text.encode()).hexdigest(),
            "profile": profile.cluster,
            "profile-sha256": sha256_of(profile.source),
            "variables": dict(profile.variables),
            "container": {image: profile.container(image) for image in images_of(resolved.document)},
            "rdma-userspace": wishes.rdma,
            "repository-commit": checkout_of(repository).commit,
            "launched-by": environ.get("RUNNER_NAME") or os.uname().nodename,
            "version": __version__,
            **_workspace(profile),
        },
        job={
            "tag": tag,
            "name": resolved.name,
            "folder": str(folder.root),
            "outputs": str(profile.outputs),
            "workspace": str(profile.workspace),
            "agentic-folder": _agentic_folder(resolved.document),
            "id": None,
        },
        times={"prepared": now()},
    )
    return Prepared(
        target=target,
        profile=profile,
        tag=tag,
        folder=folder,
        resolved=resolved,
        environ=job,
        srtctl=(str(python), "-m", "srtctl.cli.submit"),
        options=profile.cache / "options" / "-".join(key),
        receipt=receipt,
        warnings=tuple(warnings),
    )


def host_faults(profile: Profile, document: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Finding]:
    """What this host lacks for a job: the workspace and its scripts, the model, the outputs folder."""
    if not profile.workspace.is_dir():
        message = "the workspace is not there. It holds the benchmark client that the recipe calls."
        fix = "check out InferenceX there, or name a checkout: --workspace DIR"
        yield _fault("host-workspace", message, fix, profile.workspace)
    else:
        kinds = kinds_of(row)
        scripts = client_scripts(dict(document), evaluates=Kind.EVAL in kinds, eval_only=kinds == (Kind.EVAL,))
        for script in scripts:
            if not (profile.workspace / script).is_file():
                message = f"the workspace has no {script}, and the job starts it."
                yield _fault("host-client", message, "check out a commit that has it", profile.workspace)
        if Kind.EVAL in kinds and (stale := leftovers(profile.workspace)):
            shown = ", ".join(path.name for path in stale[:5])
            message = (
                f"another evaluation has left {shown} in the workspace, or is at work there; this one would take it."
            )
            yield _fault("host-leftovers", message, "wait for it, or move the files away", profile.workspace)
    alias = str((document.get("model") or {}).get("path", ""))
    if alias and not alias.startswith("hf:"):
        path = profile.models.get(alias, Path(alias) if alias.startswith("/") else None)
        if path is None:
            message = f"the profile has no folder for the model {alias}."
            yield _fault("host-model", message, f"add it under models: in {profile.source}", profile.source)
        elif not path.is_dir():
            yield _fault("host-model", f"the folder of the model {alias} is not there.", "copy the model there", path)
    for tool, why in _tools_of(document):
        file = profile.tools.get(tool)
        if file is None or not os.access(file, os.X_OK):
            message = f"{why}, and the profile names no {tool} that can be run; the job would end before it has served."
            yield _fault(
                "host-tool", message, f"put the program there, or name it by tools.{tool}", file or profile.source
            )
    for name, folder in (("outputs", profile.outputs), ("jobs", profile.jobs), ("cache", profile.cache)):
        if why := lacking(folder, _LEAST_FREE):
            message = f"the {name} folder cannot take a job: it {why}, and Slurm would fail the job without a word."
            fix = f"make room, or see {name}: in the profile"
            yield _fault(f"host-{name}", message, fix, folder)


def _tools_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Programs that the pinned srtctl starts for a recipe, and why."""
    frontend = str((document.get("frontend") or {}).get("type", "dynamo"))
    if document and frontend not in WITHOUT_ETCD_NATS:
        for tool in ("nats-server", "etcd"):
            yield tool, f"the pinned srtctl starts it for the frontend {frontend}"
    if ((document.get("observability") or {}).get("tachometer") or {}).get("enabled"):
        yield "tachometer-scraper", "the recipe asks for Tachometer"


def _resolved(target: Target, tag: str, profile: Profile) -> tuple[Resolved | None, list[Finding]]:
    try:
        return resolve(target.point, tag=tag, scratch=JobFolder(root=profile.jobs / tag).scratch), []
    except RefusedError as refused:
        return None, list(refused.findings)


def _workspace(profile: Profile) -> dict[str, Any]:
    checkout = checkout_of(profile.workspace)
    return {"workspace-commit": checkout.commit, "workspace-changes": list(checkout.modified)}


def _agentic_folder(document: Mapping[str, Any]) -> str:
    environment = (document.get("benchmark") or {}).get("env") or {}
    return str(environment.get("AGENTIC_OUTPUT_DIR", "/infmax-workspace"))


def _fault(rule: str, message: str, fix: str, place: Path) -> Finding:
    return Finding(rule=rule, message=message, fix=fix, span=Span(str(place)))
