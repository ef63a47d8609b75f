"""What the points of one deployment share as text, cut where a point's own values go."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Final

from matrix.points.row import row_text

if TYPE_CHECKING:
    from matrix.points.point import Deployment, Evaluation, Stack

__all__ = ["Texts", "evaluation_texts"]

_canonical: Final = JSONEncoder(check_circular=False, sort_keys=True, separators=(",", ":")).encode
_RUN_EVAL: Final = '"run-eval":false,'
_FRAMEWORK: Final = '"framework":'
"""Behind the eval fields in canonical JSON."""


class Texts:
    """What a deployment's throughput points share, or its accuracy runs. Never changed once made.

    ``head``, ``middle``, ``end``: InferenceX's fields of a row up to the concurrency, up to the second value that is a
    point's own (the concurrency in an agentic exp-name, else run-eval), and the rest. ``before_id``, ``before_name``,
    ``before_digest``: what joins ours. ``digest``: what the digest covers, cut at the concurrency, and for accuracy
    runs where their fields go. ``canonical``: the canonical row without conc and exp-name; ``fingerprint`` covers it.
    """

    __slots__ = (
        "before_digest", "before_id", "before_name", "canonical", "digest", "end", "fingerprint", "head", "middle"
    )  # fmt: skip

    def __init__(self, d: Deployment, *, eval_only: bool) -> None:
        self.head, self.middle, self.end, *canonical = row_text(d, power=not eval_only)
        first, most, last = canonical
        self.canonical = f"{{{first}{most}{'' if d.agentic else _RUN_EVAL}{last}}}"
        self.fingerprint = sha256(self.canonical.encode()).hexdigest()
        recipe = "" if d.reference is None else f', "recipe": {quoted(d.reference)}'
        if not eval_only:
            recipe += f', "recipe-fingerprint": "{self.fingerprint}"'
        self.before_id = f', "id": "{d.stem}'
        self.before_name = f'{d.node_end}", "name": {quoted(d.title)[:-1]} c'
        self.before_digest = f'", "config-key": "{d.config.key}"{recipe}, "digest": "'
        self.digest = _digest_texts(d, canonical, eval_only=eval_only)


def _digest_texts(d: Deployment, canonical: list[str], *, eval_only: bool) -> tuple[str, ...]:
    recipe = d.eval_recipe if eval_only else d.recipe
    golden = "null" if eval_only or d.golden is None else quoted(d.golden)
    resolved = "null"
    if recipe is not None:
        resolved = _canonical(recipe.data)
        _, _, _, *canonical = row_text(d, power=not eval_only, named=False)
    first, most, last = canonical
    head = f'{{"golden":{golden},{_stack_text(d.stack)},"recipe":{resolved},"row":{{{first}"conc":'
    if not eval_only:
        return head, f",{most}{last}}}}}"
    before, framework, behind = most.partition(_FRAMEWORK)
    return head, f",{before}", f"{framework}{behind}{last}}}}}"


@lru_cache(maxsize=16)
def _stack_text(stack: Stack) -> str:
    return f'"patches":{_canonical(stack.patches)},"pin":{_canonical(stack.pin)}'


@lru_cache(maxsize=4096)
def evaluation_texts(evaluation: Evaluation | None, eval_only: bool) -> tuple[str, str]:
    """The eval fields behind other fields of a row, and before other fields of a canonical one."""
    fields = {}
    if evaluation is not None:
        fields = {"eval-framework": quoted(evaluation.framework), "eval-suite": quoted(evaluation.suite)}
        if evaluation.conc is not None:
            fields["eval-conc"] = str(evaluation.conc)
        if evaluation.all_concs is not None:
            fields["eval-all-concs"] = "true" if evaluation.all_concs else "false"
    if eval_only:
        fields["eval-only"] = "true"
    shown = "".join([f', "{name}": {text}' for name, text in fields.items()])
    return shown, "".join([f'"{name}":{text},' for name, text in sorted(fields.items())])
