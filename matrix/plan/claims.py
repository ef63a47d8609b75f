"""Which entry runs what: every scenario of a config is run once, by the first entry that claims it.

Throughput and accuracy runs are claimed apart. Entries with all-evals go first; they claim accuracy runs alone.
Source of the rules: InferenceX's planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matrix.changelog.keys import named_by
from matrix.config.model import ScenarioKind
from matrix.points.evals import EvalMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.changelog.entries import Entry
    from matrix.config.model import Config

__all__ = ["Claim", "Options", "claims"]


class Options(NamedTuple):
    """What a label or a command line asks of a whole plan."""

    trim: bool = False
    all_evals: bool = False
    evals_only: bool = False


class Claim(NamedTuple):
    """Configs that an entry expands together, and of them which scenarios; ``evals`` NONE is throughput.

    ``reason`` says why a claim that is not ``granted`` runs nothing.
    """

    entry: Entry
    configs: tuple[Config, ...]
    kinds: tuple[ScenarioKind, ...]
    evals: EvalMode
    granted: bool = True
    reason: str = ""


def claims(entries: Sequence[Entry], configs: Sequence[Config], options: Options) -> Iterator[Claim]:
    """Every claim, in the order in which they are served; first an entry's throughput, then its accuracy runs."""
    by_key = {config.key: config for config in configs}
    throughput: dict[tuple[str, ScenarioKind], Entry] = {}
    accuracy: dict[tuple[str, ScenarioKind], Entry] = {}
    for entry in sorted(entries, key=lambda entry: not entry.all_evals):
        named = [by_key[key] for key in named_by(entry, by_key)]
        kinds = tuple(kind for kind in ScenarioKind if kind.value in entry.scenario_types)
        if entry.all_evals or entry.evals_only or options.evals_only:
            said = "all-evals" if entry.all_evals else "evals-only"
            whose = "" if entry.all_evals or entry.evals_only else " of the whole plan"
            reason = f"{said}{whose}: accuracy runs alone"
            yield Claim(entry, tuple(named), kinds, EvalMode.NONE, granted=False, reason=reason)
        else:
            yield from _share(entry, named, kinds, EvalMode.NONE, throughput)
        if entry.append_only or entry.no_evals:
            said = "append-only" if entry.append_only else "no-evals"
            yield Claim(entry, tuple(named), kinds, EvalMode.MARK, granted=False, reason=f"{said}: no accuracy runs")
        else:
            mode = EvalMode.ALL if entry.all_evals or options.all_evals else EvalMode.MARK
            yield from _share(entry, named, kinds, mode, accuracy)


def _share(
    entry: Entry,
    named: Sequence[Config],
    kinds: Sequence[ScenarioKind],
    mode: EvalMode,
    taken: dict[tuple[str, ScenarioKind], Entry],
) -> Iterator[Claim]:
    groups: dict[tuple[ScenarioKind, ...], list[Config]] = {}
    for config in named:
        free = tuple(kind for kind in kinds if (config.key, kind) not in taken)
        groups.setdefault(free, []).append(config)
        for kind in kinds:
            if kind not in free:
                earlier = taken[config.key, kind]
                reason = f"entry {earlier.number} runs it already"
                yield Claim(entry, (config,), (kind,), mode, granted=False, reason=reason)
        taken.update(((config.key, kind), entry) for kind in free)
    for free, members in groups.items():
        if free:
            yield Claim(entry, tuple(members), free, mode)
