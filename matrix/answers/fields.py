"""What differs between two jobs, as paths into what their digests cover."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.points.row import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.answers.side import Side

__all__ = ["ABSENT", "Absent", "Field", "compared", "payload"]


class Absent(Enum):
    """What stands for a value that is not there; null is one that is."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

_OUTSIDE: Final = frozenset(
    ("id", "name", "exp-name", "config-key", "recipe-fingerprint", "digest", "srt-recipe", "run-eval")
)
_MARKS: Final = frozenset(("eval-framework", "eval-suite", "eval-conc", "eval-all-concs"))


class Field(NamedTuple):
    """One difference: ``prefill.tp``, ``recipe.roles.decode.args.max-num-seqs``, ``golden``; `ABSENT` on one side."""

    path: str
    old: Any = ABSENT
    new: Any = ABSENT


def payload(side: Side, name: str, *, rows_only: bool = False) -> dict[str, Any]:
    """What the digest of a point covers, its row's fields at the top; of a plan file, and ``rows_only``, the row's."""
    point = side.points.get(name)
    if point is None or rows_only:
        return _row(side.row(name))
    covered = point.digest_payload()
    stack = {"patches": dict(covered["patches"])}
    stack |= {key: covered[key] for key in ("golden", "pin") if covered[key]}
    row = {key: value for key, value in covered["row"].items() if key != "run-eval"}
    return {**row, **covered["run"], "recipe": covered["recipe"], **stack}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its names and marks. Its recipe is a reference; what that resolves to is not in the row."""
    left_out = _OUTSIDE if row.get("eval-only") else _OUTSIDE | _MARKS
    fields = {key: value for key, value in row.items() if key not in left_out}
    for role in ("prefill", "decode"):
        worker = fields.get(role)
        if isinstance(worker, dict) and isinstance(settings := worker.get("additional-settings"), list):
            kept = [text for text in settings if not str(text).startswith(CONFIG_FILE)]
            fields[role] = {**worker, "additional-settings": kept}
    return fields


def compared(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Field]:
    """The differences of two payloads. Of a recipe that only one side could read, no more than that."""
    if isinstance(old.get("recipe"), dict) != isinstance(new.get("recipe"), dict):
        old, new = ({**_row(one), "recipe": _found(one)} for one in (old, new))
    return differing(old, new)


def _found(payload: dict[str, Any]) -> str:
    if isinstance(payload.get("recipe"), dict):
        return "found"
    settings = [text for role in ("prefill", "decode") for text in payload.get(role, {}).get("additional-settings", ())]
    named = "srt-recipe" in payload or any(str(text).startswith(CONFIG_FILE) for text in settings)
    return "not found" if named else "none named"


def differing(old: Any, new: Any, path: str = "") -> Iterator[Field]:
    """The differences of two JSON values, mappings and equally long lists member by member."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old | new:
            below = f"{path}.{key}" if path else str(key)
            yield from differing(old.get(key, ABSENT), new.get(key, ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differing(one, other, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield Field(path, old, new)
