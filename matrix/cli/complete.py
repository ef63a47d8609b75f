"""What a shell offers at Tab: ids, keys, labels and the words of options.

A shell asks at every Tab, so the words are kept below the user's cache folder, a file for each kind. Its head names
every file that they were made of, with size and time of change; when one of these differs they are made again. Paths
are strings here: pathlib would cost every Tab 4 ms.
"""

# ruff: noqa: PTH100, PTH103, PTH111, PTH116, PTH117, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from os.path import abspath, expanduser, isabs, join
from typing import TYPE_CHECKING, Final

from matrix import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import click

    from matrix.config.settings import Settings

    Offer = Callable[[click.Context, click.Parameter, str], list[str]]

__all__ = ["offer", "offer_ids_of_plan", "offer_many"]

_FOLDER: Final = "matrix-runner/words"


def offer(*kinds: str) -> Offer:
    """Complete one word of some kinds: ``id``, ``config-key``, ``label`` and so on; see `_made`."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return [word for kind in kinds for word in _known(kind, ctx) if word.startswith(incomplete)]

    return complete


def offer_many(kind: str) -> Offer:
    """Complete the last of several words with commas between them."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [f"{before}{comma}{word}" for word in _known(kind, ctx) if word.startswith(last) and word not in given]

    return complete


def offer_ids_of_plan(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete an id of the plan that the command line names."""
    from matrix.errors import MatrixError
    from matrix.plan.sweep import read_plan

    try:
        return [name for name in read_plan(str(ctx.params.get("path"))).rows if name.startswith(incomplete)]
    except MatrixError:
        return []


def _known(kind: str, ctx: click.Context) -> Sequence[str]:
    """The words of a kind. A shell at its prompt has no use for a message: where nothing can be read there are none."""
    from matrix.config.settings import find_settings
    from matrix.errors import MatrixError

    try:
        given = ctx.params
        settings = find_settings(".").override(masters=given.get("masters") or (), runners=given.get("runners"))
        stamp = _stamp(settings)
    except (MatrixError, OSError):
        return ()
    path = _place(settings, kind)
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError):
        text = ""
    if text.startswith(stamp):
        return text[len(stamp) :].split("\n")
    try:
        made = _made(settings)
    except MatrixError:
        return ()
    for name, words in made.items():
        _keep(_place(settings, name), stamp + "\n".join(words))
    return made.get(kind, ())


def _inputs(settings: Settings) -> list[str]:
    files = (*settings.masters, settings.runners, settings.evals, settings.labels)
    return [abspath(path) for path in files if path is not None]


def _stamp(settings: Settings) -> str:
    """What the words are made of. Recipes are no part of it: an id says what the master says."""
    lines = [f"matrix {__version__}"]
    for path in _inputs(settings):
        state = os.stat(path)
        lines.append(f"{state.st_size} {state.st_mtime_ns} {path}")
    return "\n".join([*lines, "", ""])


def _place(settings: Settings, kind: str) -> str:
    """The file of a kind of words. Where two search spaces share one, the stamp tells them apart."""
    from zlib import crc32

    name = crc32("\0".join(_inputs(settings)).encode("utf-8", "surrogateescape"))
    return join(_cache(), _FOLDER, f"{name:08x}-{kind}")


def _cache() -> str:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return named if isabs(named) else expanduser("~/.cache")


def _keep(path: str, text: str) -> None:
    from matrix.cli.files import replace
    from matrix.errors import RefusedError

    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace(path, text)
    except (OSError, RefusedError, UnicodeEncodeError):
        return  # a full or read-only disk: the words are made again at the next Tab


def _made(settings: Settings) -> dict[str, list[str]]:
    """The words of every kind, each once, in the order of the search space."""
    from matrix.config.loading import load_inputs
    from matrix.plan.labels import load_labels
    from matrix.points.evals import EvalPolicy, only_evals, policy_of
    from matrix.points.expand import Facts
    from matrix.points.pipeline import expand
    from matrix.points.request import Request
    from matrix.points.row import scenario_name

    configs, fleet, evals = load_inputs(settings.masters, settings.runners or "", settings.evals)
    policy = policy_of(evals) if evals is not None else EvalPolicy()
    points = list(expand(configs, Facts(fleet), policy, Request()).points)
    lengths = [scenario_name(scenario) for config in configs for scenario in config.scenarios if scenario.isl]
    labels = load_labels(settings.labels).ours if settings.labels is not None else ()
    words = {
        "id": [point.id for point in (*points, *only_evals(points))],
        "config-key": [config.key for config in configs],
        "model-prefix": [config.model_prefix for config in configs],
        "precision": [config.precision for config in configs],
        "framework": [config.framework for config in configs],
        "runner-type": [config.runner for config in configs],
        "seq-lens": lengths,
        "exp-name": [point.exp_name for point in points],
        "label": labels,
    }
    return {kind: list(dict.fromkeys(found)) for kind, found in words.items()}
