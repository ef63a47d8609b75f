"""What no linter finds in a workflow: unguarded matrices, expressions that are too long, labels nobody registered.

Each of them makes a run that looks well and does nothing: a matrix without members fails its job before it exists, a
file with an endless expression has no jobs at all, and a label that is misspelt in a condition never starts anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, UnclearError, load
from matrix.findings import Finding
from matrix.plan.limits import MAX_EXPRESSION, MAX_WORKFLOW_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.config.source import Document
    from matrix.findings import Span
    from matrix.plan.labels import Registry

__all__ = ["lint"]

_SOURCE: Final = re.compile(r"fromjson\(\s*((?:needs|inputs)\.[\w.-]+)", re.IGNORECASE)
_LABEL: Final = r"(?:label\.name|labels\.\*\.name)"
_COMPARED: Final = re.compile(
    rf"{_LABEL}\s*[!=]=\s*'((?:[^']|'')*)'|contains\([^()']*labels\.\*\.name\s*,\s*'((?:[^']|'')*)'\)", re.IGNORECASE
)
"""A label that is compared with a text, or a text that is looked for among all labels. Part of a name is neither."""

_LISTED: Final = re.compile(rf"contains\(\s*fromjson\(\s*'(\[[^']*\])'\s*\)\s*,\s*[\w.]*{_LABEL}", re.IGNORECASE)


def lint(path: str, registry: Registry) -> Iterator[Finding]:
    """The findings in one workflow file. Values that only this project finds unclear are let pass: it may be foreign.

    Raises:
        RefusedError: it is no YAML.
    """
    try:
        document = load(path, what="workflow")
    except UnclearError as unclear:
        if unclear.document is None:
            raise
        document = unclear.document
    if len(document.data) > MAX_WORKFLOW_FILE:
        message = f"this file has {len(document.data):,} bytes. GitHub starts none above {MAX_WORKFLOW_FILE:,}."
        yield Finding(rule="workflow-size", message=message, fix="split it", span=document.span())
    if not isinstance(document.root, Map):
        return
    yield from _long_expressions(document)
    yield from _unguarded(document)
    yield from _strange_labels(document, registry)


def _long_expressions(document: Document) -> Iterator[Finding]:
    for text, span, key in _texts(document, document.root):
        # GitHub makes one format() of any text with an expression in it; an if: is an expression throughout.
        if ("${{" in text or key == "if") and len(text) > MAX_EXPRESSION:
            message = f"this text holds an expression and has {len(text):,} characters, above {MAX_EXPRESSION:,}."
            fix = "pass the values by env, and keep the text free of expressions"
            yield Finding(rule="workflow-expression", message=message, fix=fix, span=span)


def _unguarded(document: Document) -> Iterator[Finding]:
    """Matrices out of an output or input without a condition on a boolean from the same place."""
    jobs = document.root.get("jobs")
    for name, job in jobs.items() if isinstance(jobs, Map) else ():
        strategy = job.get("strategy") if isinstance(job, Map) else None
        if not isinstance(strategy, Map) or "matrix" not in strategy:
            continue
        condition = str(job.get("if", ""))
        told = {source for text, _, _ in _texts(document, strategy, "matrix") for source in _SOURCE.findall(text)}
        for source in sorted(told):
            home = source.rpartition(".")[0]
            if not _guards(condition, home, source):
                message = f"the matrix of {name} is made of {source}, which may be empty, and then the job fails."
                fix = f"add to its if: {home}.has-jobs == 'true', or a flag of another name beside it"
                yield Finding(
                    rule="workflow-matrix", message=message, fix=fix, span=document.of_key(strategy, "matrix")
                )


def _guards(condition: str, home: str, source: str) -> bool:
    """Whether every way through the condition asks for a flag. Text compared with the list itself is no guard."""
    flag = re.compile(rf"{re.escape(home)}\.([\w-]+)\s*==\s*'true'", re.IGNORECASE)
    own = source.rpartition(".")[2]
    if home == "inputs":
        flag = re.compile(r"inputs\.([\w-]+)\b(?:\s*==\s*(?:true|'true'))?", re.IGNORECASE)
    parts = _top_level(condition)
    return any(match[1] != own for part in parts if (match := flag.fullmatch(part)) is not None)


def _top_level(condition: str) -> list[str]:
    """The members of a conjunction; nothing where an ``||`` stands at its top.

    >>> _top_level("a == 'b' && (c || d)")
    ["a == 'b'", '(c || d)']
    >>> _top_level("a && b || c")
    []
    """
    text = condition.strip()
    if text.startswith("${{") and text.endswith("}}"):
        text = text[3:-2]
    parts, depth, quoted, start = [], 0, False, 0
    for index, letter in enumerate(text):
        if letter == "'":
            quoted = not quoted
        if quoted:
            continue
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith("||", index):
            return []
        if depth == 0 and text.startswith("&&", index):
            parts.append(text[start:index].strip())
            start = index + 2
    return [*parts, text[start:].strip()]


def _strange_labels(document: Document, registry: Registry) -> Iterator[Finding]:
    """In a workflow that speaks of a sweep's labels: names that are none, and lists that lack one."""
    compared, lists = [], []
    for text, span, _ in _texts(document, document.root):
        compared += [(one or other, span) for one, other in _COMPARED.findall(text)]
        lists += [(listed, span) for listed in _LISTED.findall(text)]
    names = [(name, span) for listed, span in lists for name in re.findall(r'"([^"]*)"', listed)]
    if not any(registry.find(name) or registry.near(name) for name, _ in (*compared, *names)):
        return
    for name, span in (*compared, *names):
        if registry.find(name) is None:
            message = f"the label {name} is compared with here, and {registry.name} has none of that name."
            fix = registry.near(name) or "add it to the registry, or remove it here"
            yield Finding(rule="workflow-label", message=message, fix=fix, span=span)
    for listed, span in lists:
        held = {name.lower() for name in re.findall(r'"([^"]*)"', listed)}
        missing = [name for name in registry.ours if name.lower() not in held]
        if missing:
            message = f"this list of labels lacks {', '.join(missing)}, which {registry.name} has."
            yield Finding(rule="workflow-label", message=message, fix="matrix workflows write", span=span)


def _texts(document: Document, node: Any, only: str | None = None) -> Iterator[tuple[str, Span, str]]:
    """Every text below a node with its place and key; below one key of it where ``only`` names it."""
    if isinstance(node, Map):
        for key, value in node.items():
            if only is None or key == only:
                if isinstance(value, str):
                    yield value, document.of_value(node, key), key
                else:
                    yield from _texts(document, value)
    elif isinstance(node, Seq):
        for index, value in enumerate(node):
            if isinstance(value, str):
                yield value, document.of_value(node, index), ""
            else:
                yield from _texts(document, value)
