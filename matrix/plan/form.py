"""``plan.json`` held to its schema, before what stands in it is shown to people."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from matrix.errors import RefusedError
from matrix.findings import Finding, Span
from matrix.plan.event import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["hold_to_form"]

_OF_JOBS: Final = frozenset({"points", "buckets", "gpus", "minutes", "left-out"})


def hold_to_form(record: Mapping[str, Any], path: str) -> None:
    """Refuse a plan with a part that is not as its schema says. A part may be missing: plans are read that are older.

    What there is of every job is `matrix.plan.sweep.read_plan`'s matter: a schema takes seconds for 65,536 of them.

    Raises:
        RefusedError: with every such part.
    """
    from jsonschema import Draft202012Validator

    schema = json.loads((files("matrix") / "schemas" / "plan.json").read_text(encoding="utf-8"))
    del schema["required"]
    parts = {name: value for name, value in record.items() if name not in _OF_JOBS}
    findings = []
    for error in sorted(Draft202012Validator(schema).iter_errors(parts), key=lambda error: list(map(str, error.path))):
        place = ".".join(map(str, error.absolute_path)) or "the plan"
        message = f"{shown(place)} is not as a plan has it: {shown(error.message, 200)}."
        fix = "give the plan.json of this run's planning job"
        findings.append(Finding(rule="plan-form", message=message, fix=fix, span=Span(path)))
    if findings:
        raise RefusedError(findings)
