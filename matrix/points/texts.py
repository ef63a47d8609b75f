"""What the points of one deployment share as text, cut where a point's own values go."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from matrix.lean import quoted, sha256
from matrix.points.row import row_text

if TYPE_CHECKING:
    from matrix.points.point import Deployment, Evaluation, Stack
    from matrix.recipes.recipe import Recipe

__all__ = ["Texts", "evaluation_texts"]

_RUN_EVAL: Final = '"run-eval":false,'


class Texts:
    """What a deployment's throughput points share, or its accuracy runs. Never changed once made.

    ``head``, ``middle``, ``end``: InferenceX's fields of a row up to the concurrency, up to the second value that is a
    point's own (the concurrency in an agentic exp-name, else run-eval), and the rest. ``before_id``, ``before_name``,
    ``before_digest``: what joins ours. ``canonical``: the canonical row without conc and exp-name, of which
    ``fingerprint`` is the hash. ``shared``: the hash of all that a digest covers up to what is a point's own.
    """

    __slots__ = (
        "before_digest", "before_id", "before_name", "canonical", "end", "fingerprint", "head", "middle", "shared"
    )  # fmt: skip

    def __init__(self, d: Deployment, *, eval_only: bool) -> None:
        self.head, self.middle, self.end, *canonical = row_text(d, power=not eval_only)
        self.canonical = _row(d, canonical)
        self.fingerprint = sha256(self.canonical.encode()).hexdigest()
        recipe = "" if d.reference is None else f', "recipe": {quoted(d.reference)}'
        if not eval_only:
            recipe += f', "recipe-fingerprint": "{self.fingerprint}"'
        self.before_id = f', "id": "{d.stem}'
        self.before_name = f'{d.node_end}", "name": {d.frame.named} {d.topology} c'
        self.before_digest = f'", "config-key": "{d.config.key}"{recipe}, "digest": "'
        self.shared = self._shared(d, eval_only=eval_only)

    def _shared(self, d: Deployment, *, eval_only: bool) -> Any:
        recipe = d.eval_recipe if eval_only else d.recipe
        golden = "null" if eval_only or d.golden is None else quoted(d.golden)
        resolved, row = "null", self.fingerprint
        if recipe is not None:
            resolved = _resolved(recipe)
            _, _, _, *canonical = row_text(d, power=not eval_only, named=False)
            row = sha256(_row(d, canonical).encode()).hexdigest()
        text = f'{{"golden":{golden},{_stack_text(d.stack)},"recipe":{resolved},"row":"{row}","run":'
        return sha256(text.encode())

    def digest(self, conc: str, evaluation: str) -> str:
        """The digest of a point with these own values, as canonical JSON has them."""
        digest = self.shared.copy()
        digest.update(f'{{"conc":{conc}{evaluation}}}}}'.encode())
        text: str = digest.hexdigest()
        return text


def _row(d: Deployment, canonical: list[str]) -> str:
    first, most, last = canonical
    return f"{{{first}{most}{'' if d.agentic else _RUN_EVAL}{last}}}"


def _canonical(value: Any) -> str:
    from json import dumps

    return dumps(value, check_circular=False, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=512)
def _resolved(recipe: Recipe) -> str:
    """What a digest covers of a recipe, once for the entries and the kinds of run that have the very same one."""
    return _canonical(recipe.data)


@lru_cache(maxsize=16)
def _stack_text(stack: Stack) -> str:
    return f'"patches":{_canonical(stack.patches)},"pin":{_canonical(stack.pin)}'


@lru_cache(maxsize=4096)
def evaluation_texts(evaluation: Evaluation | None, eval_only: bool) -> tuple[str, str]:
    """The eval fields behind other fields of a row, and behind other fields of a canonical one."""
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
    return shown, "".join([f',"{name}":{text}' for name, text in sorted(fields.items())])
