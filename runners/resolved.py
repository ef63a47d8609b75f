"""The one plain recipe that a job runs: the point's resolved and injected recipe with what a launch adds.

What a launch adds is the same for every recipe, so it is no part of a point's digest: the tag by which the job is found
again, what Slurm may not do (start it a second time), the folder that processes start in, and where the client may
write.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from matrix.errors import RefusedError
from matrix.findings import Finding, errors_of
from matrix.recipes.dialect import to_schema_1
from matrix.recipes.pinned import FIELDS
from matrix.recipes.roles import ROLE_NAMES
from matrix.recipes.schema_1 import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matrix.points.point import Point
    from matrix.recipes.recipe import Recipe

__all__ = ["MARK", "WORKSPACE", "Resolved", "client_scripts", "images_of", "recipe_of", "resolve"]

WORKSPACE: Final = "/infmax-workspace"
"""Where containers see the checkout with the benchmark client."""

MARK: Final = "comment"
"""The directive that carries a job's tag."""

_LOGS: Final = f"{WORKSPACE}/LOGS"
_SCRIPT: Final = re.compile(rf"{WORKSPACE}/([A-Za-z0-9_./-]+)")
_FAKE_DISPATCH: Final = "ep-dispatch-algorithm"
_EVAL_LIBRARY: Final = "benchmarks/benchmark_lib.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A recipe as a file: ``document`` in the pinned srtctl's dialect, ``text`` its YAML, ``warnings`` of the way."""

    document: dict[str, Any]
    text: str
    warnings: tuple[Finding, ...] = ()

    @property
    def sha256(self) -> str:
        """Of the text."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def content_sha256(self) -> str:
        """Of what every launch of the point shares: all but its tag and its own folder."""
        shared = {key: dict(value) if isinstance(value, dict) else value for key, value in self.document.items()}
        shared["sbatch_directives"].pop(MARK)
        mounts = shared.get("container_mounts", {})
        shared["container_mounts"] = {host: inside for host, inside in mounts.items() if inside != _LOGS}
        return sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.document.get("name", ""))


def recipe_of(point: Point) -> Recipe:
    """The recipe of this kind of run: with its golden length for throughput, with none for accuracy.

    Raises:
        RefusedError: there is none.
    """
    recipe = point.deployment.eval_recipe if point.eval_only else point.deployment.recipe
    if recipe is None:
        message = f"the point {point.id} has no recipe."
        raise RefusedError([Finding(rule="launch-recipe", message=message, fix="name one by CONFIG_FILE")])
    return recipe


def resolve(point: Point, *, tag: str, scratch: Path | None = None) -> Resolved:
    """What srtctl is given for a point.

    Args:
        point: The point.
        tag: Marks the job; unique to this launch.
        scratch: The job's own folder for what the client writes below LOGS of its workspace.

    Raises:
        RefusedError: the pinned srtctl could not run the recipe as it is meant.
    """
    from yaml import safe_dump, safe_load

    document, findings = to_schema_1(recipe_of(point))
    if refused := errors_of(findings):
        raise RefusedError(refused)
    if point.eval_only:
        _drop_fake_dispatch(document)
    _section(document, "srun_options")["container-workdir"] = WORKSPACE
    _section(document, "sbatch_directives").update({MARK: tag, "no-requeue": "", "open-mode": "append"})
    if "stream_output" in FIELDS["benchmark"]:
        _section(document, "benchmark")["stream_output"] = True
    if scratch is not None:
        _section(document, "container_mounts")[str(scratch)] = _LOGS
    text = safe_dump(document, sort_keys=False, allow_unicode=True, width=2**20)
    if safe_load(text) != document:
        msg = "the recipe does not survive being written as YAML"
        raise AssertionError(msg)
    return Resolved(document=document, text=text, warnings=tuple(findings))


def images_of(document: dict[str, Any]) -> tuple[str, ...]:
    """Every image that a recipe names, in the pinned srtctl's dialect."""

    def walk(node: Any) -> Iterator[str]:
        for key, value in node.items() if isinstance(node, dict) else ():
            if key in {"container", "container_image", "nginx_container"} and isinstance(value, str):
                yield value
            yield from walk(value)

    sections = ("model", "frontend", "benchmark", "observability", "telemetry")
    return tuple(dict.fromkeys(image for name in sections for image in walk({name: document.get(name)})))


def client_scripts(document: dict[str, Any], *, evaluates: bool, eval_only: bool) -> tuple[str, ...]:
    """The files of the workspace that a job starts, relative to it."""
    command = str((document.get("benchmark") or {}).get("command", ""))
    scripts = [] if eval_only else _SCRIPT.findall(command)
    return tuple(dict.fromkeys([*scripts, *([_EVAL_LIBRARY] if evaluates else [])]))


def _section(document: dict[str, Any], name: str) -> dict[str, Any]:
    # Roles may share a mapping by an anchor, and a change to one of them is meant for that one alone.
    document[name] = dict(document.get(name) or {})
    section: dict[str, Any] = document[name]
    return section


def _drop_fake_dispatch(document: dict[str, Any]) -> None:
    """An evaluation needs tokens that go to their real experts."""
    backend = document.get("backend") or {}
    for key, config in list(backend.items()):
        if not key.endswith("_config") or not isinstance(config, dict):
            continue
        for section in (SECTIONS[name] for name in ROLE_NAMES):
            arguments = config.get(section)
            if isinstance(arguments, dict):
                config[section] = {
                    name: value
                    for name, value in arguments.items()
                    if not (name.replace("_", "-") == _FAKE_DISPATCH and value == "fake")
                }
