"""The first stage of the pipeline: files -> typed values, or one refusal with all that is wrong with all of them."""

from __future__ import annotations

from os.path import realpath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from matrix.config.accept import configs_of
from matrix.config.fleet import fleet_of
from matrix.config.model import MAX_CONCURRENCY, MAX_TOKENS, Unacceptable
from matrix.config.source import Map, UnclearError, load
from matrix.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from matrix.config.fleet import Fleet
    from matrix.config.model import Config
    from matrix.config.source import Document
    from matrix.findings import Finding

__all__ = ["load_evals", "load_fleet", "load_inputs", "load_masters"]

T = TypeVar("T")


def load_inputs(
    masters: Iterable[str | Path], runners: str | Path, evals: str | Path | None = None
) -> tuple[tuple[Config, ...], Fleet, Document | None]:
    """Everything that an expansion reads besides recipes, so that one refusal tells what is wrong with any of it.

    Raises:
        RefusedError: with all findings of all files.
    """
    findings: list[Finding] = []
    configs = _kept(findings, lambda: load_masters(masters))
    fleet = _kept(findings, lambda: load_fleet(runners))
    policy = _kept(findings, lambda: load_evals(evals)) if evals is not None else None
    if configs is None or fleet is None or findings:
        raise RefusedError(findings)
    return configs, fleet, policy


def load_masters(paths: Iterable[str | Path]) -> tuple[Config, ...]:
    """The configs of all master files, in the order of the files and of their keys.

    Raises:
        RefusedError: with all findings of all files: what is wrong in each, and keys that two of them have.
    """
    findings: list[Finding] = []
    configs: list[Config] = []
    documents: list[Document] = []
    seen: dict[str, str | Path] = {}
    for path in paths:
        first = seen.setdefault(realpath(path), path)
        if first is not path:
            findings.append(_named_twice(path, first))
            continue
        try:
            document = _read(path, "master config", "master")
            documents.append(document)
            configs += _accepted(document, configs_of, "master")
        except RefusedError as refused:
            findings += refused.findings
    if len(documents) > 1:
        findings += _shared_keys(documents)
    if findings:
        raise RefusedError(findings)
    return tuple(configs)


def load_fleet(path: str | Path) -> Fleet:
    """The fleet of a runners file.

    Raises:
        RefusedError: with all findings of the file.
    """
    return _accepted(_read(path, "runners file", "runners"), fleet_of, "runners")


def load_evals(path: str | Path) -> Document:
    """An eval policy that is as its schema says; `matrix.points.evals` makes values of it.

    Raises:
        RefusedError: with all findings of the file.
    """
    return _accepted(_read(path, "eval policy", "evals"), _evals_of, "evals")


def _read(path: str | Path, what: str, kind: str) -> Document:
    """The parsed file. Where its values are unclear, what else is wrong with it is told in the same refusal."""
    try:
        return load(path, noted=False, what=what)
    except UnclearError as unclear:
        if unclear.document is None:
            raise
        from matrix.config.schema import Kind, explain

        told = {finding.span for finding in unclear.findings}
        more = [finding for finding in explain(unclear.document, Kind(kind)) if finding.span not in told]
        raise RefusedError([*unclear.findings, *more]) from None


def _kept(findings: list[Finding], load_it: Callable[[], T]) -> T | None:
    """What was loaded; or nothing, and its findings are kept."""
    try:
        return load_it()
    except RefusedError as refused:
        findings += refused.findings
        return None


def _accepted(document: Document, construct: Callable[[Document], T], kind: str) -> T:
    try:
        return construct(document)
    except Unacceptable:
        from matrix.config.schema import Kind, explain

        findings = explain(document, Kind(kind))
    if not findings:
        msg = f"{document.name} is refused as a {kind} document, and no rule says why"
        raise AssertionError(msg)
    raise RefusedError(findings)


def _named_twice(path: str | Path, first: str | Path) -> Finding:
    from matrix.findings import Finding, Span

    message = f"this master config is named twice, first as {first}. Each of its keys would clash with itself."
    return Finding(rule="file-named-twice", message=message, fix="name it once", span=Span(str(path)))


def _shared_keys(documents: list[Document]) -> Iterator[Finding]:
    """Keys that stand in two files: taking either config would drop the other in silence."""
    homes: dict[str, Document] = {}
    for document in documents:
        for key in document.root if isinstance(document.root, Map) else ():
            home = homes.setdefault(key, document)
            if home is not document:
                from matrix.findings import Finding, Related

                yield Finding(
                    rule="config-key-in-two-files",
                    message=f"{key} is in {home.name} as well. Only one config can have the key.",
                    fix="rename or remove one of the two",
                    span=document.of_key(document.root, key),
                    related=(Related(home.of_key(home.root, key), "the other one"),),
                )


_EVALS_KEYS: Final = frozenset(("version", "minimum-concurrency", "sequence", "default", "model-suites"))


def _evals_of(document: Document) -> Document:
    """The document itself, when it is an eval policy."""
    root = document.root
    if type(root) is not Map or not root.keys() <= _EVALS_KEYS:
        raise Unacceptable
    sequence, suites = root.get("sequence"), root.get("model-suites", _NO_SUITES)
    if type(sequence) is not Map or sequence.keys() != {"isl", "osl"} or type(suites) is not Map:
        raise Unacceptable
    counts = ((root.get("version"), 1), (root.get("minimum-concurrency"), MAX_CONCURRENCY))
    for count, most in (*counts, *((tokens, MAX_TOKENS) for tokens in sequence.values())):
        if type(count) is not int or not 0 < count <= most:
            raise Unacceptable
    for suite in (root.get("default"), *suites.values()):
        if type(suite) is not Map or suite.keys() != {"framework", "suite"} or not suite["framework"]:
            raise Unacceptable
        if any(type(text) is not str for text in suite.values()):
            raise Unacceptable
    return document


_NO_SUITES: Final[Any] = Map()
