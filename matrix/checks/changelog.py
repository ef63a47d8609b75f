"""What the log promises against what the configs hold: keys that exist, entries that run something, no silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.changelog.keys import named_by, pattern_matches
from matrix.findings import Finding, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matrix.changelog.entries import Entry, Log
    from matrix.config.model import Config

__all__ = ["Waiver", "check_coverage", "check_entries"]

Waiver = tuple[str, str]
"""A pattern of config keys that may change without an entry, and the reason for it."""


def check_entries(
    entries: Sequence[Entry], log: Log, configs: Sequence[Config], before: Sequence[str]
) -> Iterator[Finding]:
    """Keys that name nothing, and entries that run nothing. ``before``: the config keys of the base."""
    keys = [config.key for config in configs]
    for entry in entries:
        for index, pattern in enumerate(entry.config_keys):
            if not any(pattern_matches(pattern, key) for key in keys):
                yield _unknown(entry, index, log, keys, before)
        yield from _without_scenario(entry, log, configs)
    appending = [entry for entry in entries if entry.append_only]
    if appending and len(appending) < len(entries):
        message = f"entry {appending[0].number} is append-only, and others of this change are not."
        fix = "an append-only change runs its new points alone; put the other entries into a change of their own"
        yield Finding(rule="append-only-mixed", message=message, fix=fix, span=log.span(appending[0], "append-only"))


def _unknown(entry: Entry, index: int, log: Log, keys: Sequence[str], before: Sequence[str]) -> Finding:
    assert log.document is not None  # noqa: S101 - it has the entry
    pattern = entry.config_keys[index]
    span = log.document.of_value(entry.node["config-keys"], index)
    removed = [key for key in before if pattern_matches(pattern, key)]
    if removed:
        what = "this diff removes it" if "*" not in pattern else f"this diff removes {', '.join(removed[:3])}"
        fix = "leave the key out: a removed config needs no entry; or keep the config"
    elif "*" in pattern:
        what, fix = "it matches none", did_you_mean(pattern.replace("*", ""), keys)
    else:
        what, fix = "no master config has it", did_you_mean(pattern, keys)
    message = f"entry {entry.number} names the config key {pattern}, and {what}."
    return Finding(rule="changelog-key", message=message, fix=fix, span=span)


def _without_scenario(entry: Entry, log: Log, configs: Sequence[Config]) -> Iterator[Finding]:
    by_key = {config.key: config for config in configs}
    named = [by_key[key] for key in named_by(entry, by_key)]
    kinds = {kind.value for kind in entry.scenario_types}
    held = {scenario.kind.value for config in named for scenario in config.scenarios if scenario.entries}
    if named and not kinds & held:
        what = " or ".join(sorted(kinds))
        message = f"entry {entry.number} runs nothing: none of its configs has {what} points."
        fix = f"write scenario-type: [{', '.join(sorted(held))}]" if held else "name a config that has points"
        yield Finding(rule="changelog-empty", message=message, fix=fix, span=log.span(entry, "scenario-type"))


def check_coverage(
    entries: Sequence[Entry], configs: Sequence[Config], changed: Mapping[str, str], waivers: Sequence[Waiver]
) -> Iterator[Finding]:
    """Changed configs that no new entry names, waived ones aside."""
    covered = {key for entry in entries for key in named_by(entry, changed)}
    appending = any(entry.append_only for entry in entries)
    for config in configs:
        if config.key not in changed or config.key in covered:
            continue
        if not appending and any(pattern_matches(pattern, config.key) for pattern, _ in waivers):
            continue
        what = changed[config.key]
        if appending:
            message = f"{config.key} changed ({what}), and this append-only change does not select it."
            fix = "name it in an append-only entry, or put it into a change of its own"
            rule = "append-only-scope"
        else:
            message = f"{config.key} changed ({what}), and no new entry names it. What changes is swept."
            fix = f"add {config.key} to the config-keys of a new entry"
            rule = "changelog-uncovered"
        yield Finding(rule=rule, message=message, fix=fix, span=config.document.span(config.mark))
