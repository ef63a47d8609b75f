"""`Profile`: what a launch knows of one cluster, and the cluster file that the pinned srtctl gets of it.

A cluster file with one key that the pin does not know is dropped whole, with a warning; so only what `Profile.file`
writes reaches it, and a launch proves it with the pin's own class (`runners.srtctl`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, load, plain
from matrix.errors import RefusedError, UsageError
from matrix.findings import Finding, Span, did_you_mean, in_order
from runners.figures import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jsonschema import ValidationError

    from matrix.config.source import Document

__all__ = ["FOLDER", "Profile", "find_profile", "known_profiles", "load_profile", "profile_folders", "squash_name"]

FOLDER: Final = Path(__file__).parent / "clusters"
_SCHEMA: Final = Path(__file__).parent / "schemas" / "cluster.json"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$")
_IN_A_FILE_NAME: Final = str.maketrans(dict.fromkeys("/:@#", "_"))

_IN_NO_PATH: Final = re.compile(r"""[\s,:%'"\\$`\x00-\x1f\x7f]""")
_IN_NO_WORD: Final = re.compile(r"""[\s'"\\$`#;&|<>\x00-\x1f\x7f]""")
_KINDS: Final = {
    "array": "a list", "boolean": "true or false", "integer": "a whole number", "null": "null", "object": "a mapping",
    "string": "text",
}  # fmt: skip
_PATHS: Final = ("outputs", "jobs", "images", "workspace", "python")

# Keys of later cluster files. One of them and the pin would ignore all the others.
_NOT_AT_THE_PIN: Final = MappingProxyType({
    "accelerator_vendor": "visible-devices says all that a launch needs of the vendor",
    "default_gpu_exporter": "the pin starts no GPU exporter unless a recipe asks for telemetry",
    "default_host_setup": "the pin runs nothing on the hosts; let the site's prolog do it",
    "gpu_sbatch_directive": "say directives.gpus-per-node",
    "preflight": "the pin always looks; keep paths where the login node sees them",
    "runtime_config_transport": "keep outputs and jobs on a file system that login and compute nodes share",
})  # fmt: skip


def squash_name(image: str) -> str:
    """The file of an image that was imported beforehand.

    >>> squash_name("rocm/atom-dev:nightly_202609221542")
    'rocm_atom-dev_nightly_202609221542.sqsh'
    """
    return f"{image.translate(_IN_A_FILE_NAME)}.sqsh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One cluster, its variables filled in. Paths are absolute; ``source`` is the profile file."""

    source: Path
    cluster: str
    labels: tuple[str, ...]
    runners: tuple[str, ...] = ()
    partition: str
    account: str
    time_limit: str
    gpus_per_node: int
    visible_devices: str
    network_interface: str | None = None
    directives: Mapping[str, bool] = field(default_factory=dict)
    sbatch: Mapping[str, str] = field(default_factory=dict)
    nginx_raise_ulimit: bool | None = None
    outputs: Path
    jobs: Path
    cache: Path
    images: Path | None = None
    workspace: Path
    python: Path
    tools: Mapping[str, Path] = field(default_factory=dict)
    models: Mapping[str, Path] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    rdma_mounts: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """The environment variables that it names, with the values that were filled in."""

    def serves(self, runner: str) -> bool:
        """Whether a row's runner, a label or the name of one runner, is of this cluster."""
        return runner in self.labels or any(fnmatchcase(runner, pattern) for pattern in self.runners)

    def container(self, image: str) -> str:
        """What a job is told for an image: its squash file where there is one, else the image."""
        file = self.images / squash_name(image) if self.images is not None else None
        return str(file) if file is not None and file.is_file() else image

    def file(self, *, root: Path, images: tuple[str, ...] = (), rdma: bool = False) -> dict[str, Any]:
        """The cluster file of one job, in the pinned srtctl's words.

        Args:
            root: The job's clone of srt-slurm.
            images: Images of the recipe; those with a squash file become aliases of it.
            rdma: Whether the host's RDMA libraries are mounted.
        """
        found = {image: self.container(image) for image in images}
        directives = {
            f"use_{name.replace('-', '_')}_{'directive' if name == 'gpus-per-node' else 'sbatch_directive'}": value
            for name, value in self.directives.items()
        }
        return {
            "cluster": self.cluster,
            "default_account": self.account,
            "default_partition": self.partition,
            "default_time_limit": self.time_limit,
            "gpus_per_node": self.gpus_per_node,
            "network_interface": self.network_interface,
            "visible_devices_env": self.visible_devices,
            **directives,
            "default_sbatch_directives": dict(self.sbatch),
            "nginx_raise_ulimit": self.nginx_raise_ulimit,
            "srtctl_root": str(root),
            "output_dir": str(self.outputs),
            "model_paths": {name: str(path) for name, path in self.models.items()},
            "containers": {image: file for image, file in found.items() if file != image},
            "default_mounts": {**self.mounts, **(self.rdma_mounts if rdma else {})},
        }


def known_profiles(*folders: Path) -> tuple[str, ...]:
    """The names of the profiles in some folders, those of the package when none is given."""
    return tuple(sorted(_files(folders or (FOLDER,))))


def profile_folders(own: str | None) -> tuple[Path, ...]:
    """Where profiles are looked for: a repository's own folder, then the package.

    Raises:
        RefusedError: the own one is no folder.
    """
    if own is None:
        return (FOLDER,)
    if not Path(own).is_dir():
        message = "[tool.matrix] clusters names this folder of cluster profiles, and it is not there."
        fix = "make it, or take the key away"
        raise RefusedError([Finding(rule="profile-folder", message=message, fix=fix, span=Span(own))])
    return (Path(own), FOLDER)


def _files(folders: Sequence[Path]) -> dict[str, Path]:
    """The file of each name; what an earlier folder has hides what a later one has."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return found


def find_profile(
    name: str | None,
    runner: str,
    environ: Mapping[str, str],
    *,
    folders: Sequence[Path] = (FOLDER,),
    instead: Mapping[str, str] = MappingProxyType({}),
) -> Profile:
    """The profile with a name or at a path; without one, that of the cluster which a row's runner belongs to.

    ``instead`` has values that take the place of the profile's own, which are then not filled in.

    Raises:
        UsageError: there is none.
        RefusedError: it is broken, or a variable that it names is not set.
    """
    files = _files(folders)
    if name is not None:
        path = Path(name) if "/" in name or name.endswith(".yaml") else files.get(name)
        if path is None or not path.is_file():
            msg = f"there is no cluster profile {name}: {did_you_mean(name, sorted(files))}"
            raise UsageError(msg)
        return load_profile(path, environ, instead)
    for path in files.values():
        root = load(path, what="cluster profile").root
        labels, patterns = (root.get(key) if isinstance(root, Map) else () for key in ("labels", "runners"))
        if runner in (labels or ()) or any(fnmatchcase(runner, str(pattern)) for pattern in patterns or ()):
            return load_profile(path, environ, instead)
    where = "" if len(folders) > 1 else ", or add one to configs/clusters"
    msg = f"no cluster profile serves the runner {runner}. Name one with --cluster: {', '.join(sorted(files))}{where}"
    raise UsageError(msg)


def load_profile(path: Path, environ: Mapping[str, str], instead: Mapping[str, str] = MappingProxyType({})) -> Profile:
    """Read a profile and fill its variables in.

    Raises:
        RefusedError: with everything that is wrong: keys, values, variables that are not set.
    """
    document = load(path, what="cluster profile")
    findings = list(_schema_faults(document))
    if not findings:
        document.root.update({key: value for key, value in instead.items() if value})
    filler = _Filler(document, environ)
    filled = filler.fill(document.root)
    findings += filler.findings
    if not findings:
        findings += _unfit(document, filled)
    if findings:
        raise RefusedError(in_order(findings))
    return _profile(path, filled, filler.used, environ)


def _profile(path: Path, root: dict[str, Any], used: Mapping[str, str], environ: Mapping[str, str]) -> Profile:
    values = {key.replace("-", "_"): value for key, value in root.items()}
    for name in _PATHS:
        if name in values:
            values[name] = Path(values[name])
    for name in ("tools", "models"):
        values[name] = {key: Path(value) for key, value in values.get(name, {}).items()}
    for name in ("labels", "runners", "pass_environment"):
        values[name] = tuple(values.get(name, ()))
    own = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "/tmp")) / ".cache")  # noqa: S108 - a last resort
    values["cache"] = Path(values["cache"]) if "cache" in values else Path(own) / "matrix-runner"
    return Profile(source=path, variables=tuple(sorted(used.items())), **values)


def _unfit(document: Document, root: dict[str, Any]) -> Iterator[Finding]:
    """What a variable has made of a value, that would mean something else in a batch script or in a list of mounts."""
    for key in (*_PATHS, "cache"):
        if key in root and not root[key].startswith("/"):
            message = f"{key} is {shown(root[key])}, which is no absolute path."
            span = document.of_value(document.root, key)
            yield Finding(rule="profile-path", message=message, fix="give the whole path", span=span)
    paths: list[tuple[str, str]] = [(key, root[key]) for key in (*_PATHS, "cache") if key in root]
    # What a container sees may end in a flag, such as :ro.
    paths += [(key, path) for key in ("mounts", "rdma-mounts") for path in root.get(key, {})]
    paths += [(key, path) for key in ("models", "tools") for path in root.get(key, {}).values()]
    words = [(key, root[key]) for key in ("partition", "account")]
    for names, found, why in (
        (paths, _IN_NO_PATH, "Slurm splits its directives and lists of mounts there"),
        (words, _IN_NO_WORD, "the batch script would say something else"),
    ):
        for key, value in names:
            if match := found.search(value):
                message = f"{key} has {shown(value)}, and {why}: {match[0]!r}."
                span = document.of_value(document.root, key)
                yield Finding(rule="profile-value", message=message, fix="give one without it", span=span)


class _Filler:
    """Puts the values of variables into texts, and notes what cannot be filled in."""

    def __init__(self, document: Document, environ: Mapping[str, str]) -> None:
        self.document = document
        self.environ = environ
        self.findings: list[Finding] = []
        self.used: dict[str, str] = {}
        self.missing: set[str] = set()

    def fill(self, node: Any, holder: Map | Seq | None = None, key: Any = None) -> Any:
        if isinstance(node, Map):
            # A mount has a path of the host as its key.
            return {self.text(name, node, name): self.fill(value, node, name) for name, value in node.items()}
        if isinstance(node, Seq):
            return [self.fill(value, node, index) for index, value in enumerate(node)]
        return self.text(node, holder, key) if isinstance(node, str) else plain(node)

    def text(self, text: Any, holder: Map | Seq | None, key: Any) -> Any:
        if not isinstance(text, str) or "$" not in text or holder is None:
            return text

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name is None:
                self.tell(holder, key, f"{text!r} has a $ that begins no variable.", "write a variable as ${NAME}")
            elif not self.environ.get(name):
                if name in self.missing:
                    return match[0]
                self.missing.add(name)
                message = f"the variable {name} is not set. The profile needs it."
                self.tell(holder, key, message, f"export {name}=...")
            else:
                self.used[name] = self.environ[name]
                return self.environ[name]
            return match[0]

        return _VARIABLE.sub(value, text)

    def tell(self, holder: Map | Seq, key: Any, message: str, fix: str) -> None:
        span = self.document.of_value(holder, key)
        self.findings.append(Finding(rule="profile-variable", message=message, fix=fix, span=span))


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return schema


def _schema_faults(document: Document) -> Iterator[Finding]:
    from jsonschema import Draft202012Validator

    known = _schema()["properties"]
    for error in Draft202012Validator(_schema()).iter_errors(plain(document.root)):
        node: Any = document.root
        span, path = document.span(), list(error.absolute_path)
        for key in path:
            span, node = document.of_value(node, key), node[key]
        where = ".".join(map(str, path)) or "the profile"
        if error.validator == "additionalProperties" and isinstance(node, Map):
            allowed = error.schema["properties"]
            for key in node:
                if key not in allowed:
                    yield _unknown_key(document, node, str(key), known if not path else allowed)
        elif error.validator == "required":
            missing = [key for key in error.validator_value if key not in node]
            message = f"{where} lacks {', '.join(missing)}."
            yield Finding(rule="profile-missing", message=message, fix="say it", span=span)
        else:
            fix = str(error.schema.get("description", "see the schema, runners/schemas/cluster.json"))
            yield Finding(rule="profile-value", message=f"{where} {_unlike(error)}.", fix=fix, span=span)


def _unlike(error: ValidationError) -> str:
    """How a value differs from what the schema wants, for people."""
    value, limit = shown(error.instance), error.validator_value
    match error.validator:
        case "type":
            kinds = limit if isinstance(limit, list) else [str(limit)]
            return f"is {value}, and it has to be {' or '.join(_KINDS[kind] for kind in kinds)}"
        case "pattern":
            return f"has {value}, which does not look like one"
        case "minimum" | "maximum":
            return f"is {value}, and the {error.validator} is {limit}"
        case _:
            return f"is wrong: {error.message[:200]}"


def _unknown_key(document: Document, node: Map, key: str, allowed: Mapping[str, Any]) -> Finding:
    why = _NOT_AT_THE_PIN.get(key.replace("-", "_"))
    if why is not None:
        message = f"the pinned srtctl knows no {key}, and one unknown key makes it drop the whole cluster file."
        return Finding(rule="profile-pin", message=message, fix=why, span=document.of_key(node, key))
    message = f"a profile has no {key}."
    return Finding(rule="profile-key", message=message, fix=did_you_mean(key, allowed), span=document.of_key(node, key))
