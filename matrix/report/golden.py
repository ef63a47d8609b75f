"""Golden curves, values and injections for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.recipes.curve import short_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.recipes.acceptance import AcceptanceRecord
    from matrix.recipes.curve import Curve
    from matrix.recipes.golden import GoldenLength

__all__ = ["curve_record", "curve_text", "curves_table", "length_record", "record_text"]


def curves_table(curves: Iterable[Curve]) -> str:
    """One line a curve: what it is for and what it has. Names are last and whole, for they are to be copied."""
    from tabulate import tabulate

    rows = []
    for curve in curves:
        identity = curve.identity
        levels = {level for cells in curve.modes.values() for level in cells}
        rows.append(
            (
                " ".join(identity.model_prefixes) if identity else "(its name)",
                " ".join(identity.methods) if identity else "(its name)",
                _condition(curve),
                " ".join(mode.removeprefix("thinking_") for mode in curve.modes),
                f"{min(levels)}-{max(levels)}" if levels else "none",
                curve.name,
            )
        )
    headers = ("model-prefix", "method", "condition", "thinking", "tokens", "curve")
    return tabulate(rows, headers=headers, tablefmt="plain", disable_numparse=True)


def curve_text(curve: Curve) -> str:
    """One curve with its values, a draft length a line."""
    from tabulate import tabulate

    levels = sorted({level for cells in curve.modes.values() for level in cells})
    rows = [
        (level, *(format(cells[level], "f") if level in cells else "" for cells in curve.modes.values()))
        for level in levels
    ]
    table = tabulate(rows, headers=("draft tokens", *curve.modes), disable_numparse=True, colalign=("right",))
    identity = curve.identity or "found by its name"
    return f"{curve.path}\nmodel     {curve.model}\nidentity  {identity}\n\n{table}"


def curve_record(curve: Curve) -> dict[str, Any]:
    """One curve; values as exact decimal text."""
    identity = curve.identity
    return {
        "name": curve.name,
        "file": str(curve.path),
        "model": curve.model,
        "identity": {
            "model-prefixes": list(identity.model_prefixes),
            "methods": list(identity.methods),
            "draft-model": identity.draft_model.pattern if identity.draft_model else None,
            "draft-sampling": identity.draft_sampling.value if identity.draft_sampling else None,
        }
        if identity
        else None,
        "values": {
            mode: {str(level): short_text(value) for level, value in cells.items()}
            for mode, cells in curve.modes.items()
        },
    }


def length_record(golden: GoldenLength) -> dict[str, Any]:
    """One value and where it stands."""
    return {
        "length": golden.text,
        "curve": golden.curve.name,
        "file": golden.span.file,
        "line": golden.span.line,
        "model": golden.curve.model,
        "thinking": golden.thinking,
        "draft-tokens": golden.tokens,
    }


def record_text(record: AcceptanceRecord) -> str:
    """What was done to a recipe, a change a line."""
    golden = record.golden
    head = f"{record.reason}; no length is given"
    if golden is not None:
        cell = f"{golden.thinking}, {golden.tokens} draft tokens"
        head = f"{record.reason}; {golden.curve.path.name} ({cell}) says {golden.text}; engine {record.engine}"
    return "\n".join([head, *map(str, record.changes)])


def _condition(curve: Curve) -> str:
    identity = curve.identity
    if identity is None:
        return ""
    parts = []
    if identity.draft_model is not None:
        parts.append(f"draft model {identity.draft_model.pattern}")
    if identity.draft_sampling is not None:
        parts.append(f"{identity.draft_sampling} draft")
    return ", ".join(parts)
