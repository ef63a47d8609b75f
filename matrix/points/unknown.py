"""What a request names that is not there: a misspelt name must not look like a search that found nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.config.fleet import CLUSTER_PREFIX
from matrix.findings import Finding, Severity, did_you_mean
from matrix.points.row import scenario_name
from matrix.points.select import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matrix.config.fleet import Fleet
    from matrix.config.model import Config
    from matrix.points.point import Point
    from matrix.points.request import Filters

__all__ = ["unknown_exp_names", "unknown_ids", "unknown_words"]

_NOUNS: Final = {
    "--model-prefix": "model-prefix",
    "--precision": "precision",
    "--framework": "framework",
    "--seq-lens": "fixed-seq-len block",
}


def unknown_words(configs: Sequence[Config], filters: Filters, fleet: Fleet) -> Iterator[Finding]:
    """Words of the options that no config answers to; a key or a runner label that exists nowhere is an error."""
    for pattern in filters.config_keys:
        if not any(matches(pattern, config.key) for config in configs):
            what = "the pattern matches no config key" if "*" in pattern or "?" in pattern else "no config has this key"
            fix = did_you_mean(pattern.strip("*?"), [config.key for config in configs])
            yield Finding(rule="config-key-unknown", message=f"--config-keys {pattern}: {what}.", fix=fix)
    yield from _unused_labels(configs, filters.runner_type, fleet)
    table: tuple[tuple[str, tuple[str, ...], Callable[[Config], Iterable[str]]], ...] = (
        ("--model-prefix", filters.model_prefix, lambda config: (config.model_prefix,)),
        ("--precision", filters.precision, lambda config: (config.precision,)),
        ("--framework", filters.framework, lambda config: (config.framework,)),
        ("--seq-lens", filters.seq_lens, _sequences),
    )
    for option, words, values in table:
        known = {value for config in configs for value in values(config)} if words else set()
        for word in words:
            if word not in known:
                message = f"{option} {word}: no config has such a {_NOUNS[option]}, so the word selects nothing."
                fix = did_you_mean(word, known)
                yield Finding(rule="filter-word-unknown", message=message, fix=fix, severity=Severity.WARNING)


def _unused_labels(configs: Sequence[Config], labels: Sequence[str], fleet: Fleet) -> Iterator[Finding]:
    named = {config.runner for config in configs} if labels else set()
    for label in labels:
        if label in fleet.labels and label not in named:
            message = f"--runner-type {label}: no config runs on it, so the word selects nothing."
            fix = did_you_mean(label, named)
            yield Finding(rule="filter-word-unknown", message=message, fix=fix, severity=Severity.WARNING)
        elif label not in named:
            message = f"--runner-type {label}: {fleet.document.name} has no such label, and no config names it."
            whole = f"{CLUSTER_PREFIX}{label}"
            fix = f"did you mean {whole}?" if whole in fleet.labels else did_you_mean(label, {*fleet.labels, *named})
            yield Finding(rule="runner-unknown", message=message, fix=fix)


def _sequences(config: Config) -> Iterator[str]:
    return (scenario_name(scenario) for scenario in config.scenarios if scenario.isl)


def unknown_exp_names(points: Iterable[Point], names: Iterable[str]) -> Iterator[Finding]:
    """Wanted exp-names that no selected point has."""
    missing = set(names)
    if not missing:
        return
    for point in points:
        missing.discard(point.exp_name)
    for name in sorted(missing):
        message = f"--exp-names {name}: none of the selected points has this exp-name."
        yield Finding(rule="exp-name-unknown", message=message, fix="see exp-name in expand --format jsonl")


def unknown_ids(points: Iterable[Point], wanted: Iterable[str]) -> Iterator[Finding]:
    """Wanted ids, not patterns, that no selected point has."""
    missing = [name for name in wanted if "*" not in name and "?" not in name]
    if not missing:
        return
    names = {point.id for point in points}
    for name in missing:
        if name not in names:
            config = name.split("--")[0]
            fix = did_you_mean(name, {other for other in names if other.split("--")[0] == config} or names)
            if name.split("--eval")[0] in names:
                fix = "add --evals-only: without it an accuracy run is a mark on its throughput point"
            yield Finding(rule="point-unknown", message=f"--ids {name}: no selected point has this id.", fix=fix)
