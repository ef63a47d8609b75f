"""What the points of one deployment share as text, cut where a point's own values go."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from matrix.lean import quoted, sha256
from matrix.points.row import row_text

if TYPE_CHECKING:
    from matrix.points.point import Deployment, Stack
    from matrix.recipes.recipe import Recipe

__all__ = ["Texts", "evaluation_texts"]


class Texts:
    """What a deployment's throughput points share, or its accuracy runs.

    ``head``, ``middle``, ``end``: InferenceX's fields of a row up to the concurrency, up to the second value that is a
    point's own (the concurrency in an agentic exp-name, else run-eval), and the rest. ``before_id``, ``before_name``,
    ``before_digest``: what joins ours. ``canonical``: the canonical row without conc and exp-name. ``shared``: the hash
    of all that a digest covers up to what is a point's own.
    """

    __slots__ = ("before_digest", "before_id", "before_name", "canonical", "end", "head", "middle", "shared")

    def __init__(self, d: Deployment, *, eval_only: bool) -> None:
        recipe = d.eval_recipe if eval_only else d.recipe
        golden = "null" if eval_only or d.golden is None else quoted(d.golden)
        self.head, self.middle, self.end, self.canonical = row_text(d, power=not eval_only)
        row = fingerprint = sha256(self.canonical.encode()).hexdigest()
        resolved = "null"
        if recipe is not None:
            resolved = _resolved(recipe)
            row = sha256(row_text(d, power=not eval_only, named=False)[3].encode()).hexdigest()
        named = "" if d.reference is None else f', "recipe": {quoted(d.reference)}'
        if not eval_only:
            named += f', "recipe-fingerprint": "{fingerprint}"'
        self.before_id = f', "id": "{d.stem}'
        self.before_name = f'{d.node_end}", "name": {d.frame.named} {d.topology} c'
        self.before_digest = f'", "config-key": "{d.config.key}"{named}, "digest": "'
        text = f'{{"golden":{golden},{_stack_text(d.stack)},"recipe":{resolved},"row":"{row}","run":'
        self.shared: Any = sha256(text.encode())

    def digest(self, conc: str, evaluation: str) -> str:
        """The digest of a point with these own values, as canonical JSON has them."""
        digest = self.shared.copy()
        digest.update(f'{{"conc":{conc}{evaluation}}}}}'.encode())
        text: str = digest.hexdigest()
        return text


@lru_cache(maxsize=512)
def _resolved(recipe: Recipe) -> str:
    """What a digest covers of a recipe, once for the entries and the kinds of run that have the very same one."""
    from json import dumps

    return dumps(recipe.data, check_circular=False, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=16)
def _stack_text(stack: Stack) -> str:
    patches = ",".join([f"[{quoted(file)},{quoted(digest)}]" for file, digest in stack.patches])
    return f'"patches":[{patches}],"pin":{quoted(stack.pin)}'


@lru_cache(maxsize=4096)
def evaluation_texts(
    framework: str | None, suite: str = "", conc: int | None = None, all_concs: bool | None = None
) -> tuple[str, str, str]:
    """The fields of an `Evaluation` behind others: of a throughput row, of an accuracy run, of one as canonical JSON.

    ``framework`` None: there is no evaluation.
    """
    fields = {}
    if framework is not None:
        fields = {"eval-framework": quoted(framework), "eval-suite": quoted(suite)}
        if conc is not None:
            fields["eval-conc"] = str(conc)
        if all_concs is not None:
            fields["eval-all-concs"] = "true" if all_concs else "false"
    marks = "".join([f', "{name}": {text}' for name, text in fields.items()])
    fields["eval-only"] = "true"
    return marks, f'{marks}, "eval-only": true', "".join([f',"{name}":{text}' for name, text in sorted(fields.items())])
