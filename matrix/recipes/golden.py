"""The look-up of golden acceptance lengths: a run's draft -> one curve -> one value.

A look-up is exact. It names one curve, one thinking mode and one draft length, or it is refused: nothing is
interpolated and nothing has a default, because the neighbours of a value say nothing about it.

Which curve is data, the ``identity`` of each file: the match with more conditions wins; two that match equally are
refused, and so is a run that does not say what a condition asks. A file without identity is found by its name, as
InferenceX finds its own (its method names, and its exceptions for DeepSeek-V4, Kimi K3 and MiniMax-M3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.errors import RefusedError
from matrix.findings import Finding, Span
from matrix.recipes.curve import WORD, Curve, DraftSampling, Thinking, read_curve, short_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal
    from pathlib import Path

__all__ = ["DEFAULT_THINKING", "CurveBook", "GoldenError", "GoldenLength", "LookUp"]

DEFAULT_THINKING: Final = Thinking.ON.value
"""How an agentic run asks its model, unless the point says otherwise."""

_DSPARK_OF_DSV4: Final = ("dsv4", "dsv4dspark", "dsv4dsparkprob")
_KIMI_DSPARK: Final = {
    DraftSampling.GREEDY: "kimik3_dspark",
    DraftSampling.PROBABILISTIC: "kimik3_dspark_probabilistic_sample_method_block_rejection_sample_method",
}


class GoldenError(RefusedError):
    """There is no golden length for this run: ``findings`` say why, all of one pass together."""


class LookUp(NamedTuple):
    """What a run says about its draft. ``draft_model`` and ``draft_sampling`` are None where it does not say."""

    model_prefix: str
    method: str
    tokens: int
    draft_model: str | None = None
    draft_sampling: str | None = None
    thinking: str = DEFAULT_THINKING

    def __str__(self) -> str:
        text = f"{self.model_prefix} with {self.method or 'no method'}"
        if self.draft_model is not None:
            text += f", draft model {self.draft_model}"
        return text + (f", {self.draft_sampling} draft" if self.draft_sampling is not None else "")


class GoldenLength(NamedTuple):
    """One cell: the mean tokens of a step of ``tokens`` draft tokens, the guaranteed one included."""

    curve: Curve
    thinking: str
    tokens: int
    value: Decimal

    @property
    def text(self) -> str:
        """The value in the shortest exact decimal text."""
        return short_text(self.value)

    @property
    def span(self) -> Span:
        """Where the value stands."""
        return self.curve.span(self.thinking, self.tokens)


class CurveBook:
    """The curve files of one folder; read once, and only when something is looked up."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder
        self._curves: tuple[Curve, ...] | None = None

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Every ``*.yaml`` of the folder, sorted by name.

        Raises:
            GoldenError: there is no such folder.
        """
        if self._curves is None:
            # Start-up time: most commands look nothing up.
            from pathlib import Path

            folder = Path(self.folder)
            if not folder.is_dir():
                message = "the folder of golden curves does not exist."
                raise GoldenError(
                    [_finding("golden-folder", message, "name the folder with --golden", Span(str(self.folder)))]
                )
            self._curves = tuple(read_curve(path) for path in sorted(folder.glob("*.yaml")) if path.is_file())
        return self._curves

    def look_up(self, request: LookUp, span: Span | None = None) -> GoldenLength:
        """The value for a run; ``span`` is where the run says what it drafts.

        Raises:
            GoldenError: no curve, several, or no value in the one.
        """
        curve = self.find(request, span)
        cells = curve.modes.get(request.thinking, {})
        value = cells.get(request.tokens)
        if value is None:
            if curve.faults:
                raise GoldenError(curve.faults)
            raise GoldenError([_no_value(curve, request, span)])
        return GoldenLength(curve, request.thinking, request.tokens, value)

    def find(self, request: LookUp, span: Span | None = None) -> Curve:
        """The one curve for a run, whether or not it has the draft length.

        Raises:
            GoldenError: no curve, several, a run that does not say enough, or a file that cannot be read.
        """
        request = request._replace(method=request.method.lower())
        for name, word in (("model prefix", request.model_prefix), ("draft method", request.method)):
            if not WORD.match(word):
                message = f"the {name} {word!r} can name no curve."
                raise GoldenError(
                    [_finding("golden-request", message, "use lower-case letters, digits and . _ - alone", span)]
                )
        if type(request.tokens) is not int or request.tokens < 1:
            message = f"{request.tokens!r} is no draft length; it counts tokens."
            raise GoldenError([_finding("golden-request", message, "give a whole number of 1 or more", span)])
        unreadable = [fault for curve in self.curves if not curve.readable for fault in curve.faults]
        if unreadable:
            raise GoldenError(unreadable)
        found = [(curve, verdict) for curve in self.curves if (verdict := _match(curve, request)) is not None]
        lacking = sorted({lack for _, verdict in found for lack in verdict.lacks})
        if lacking:
            wanted = " and ".join(lacking)
            message = f"{request} does not say its {wanted}, which decides between the curves {_names(found)}."
            raise GoldenError([_finding("golden-condition", message, f"give the {wanted}", span)])
        if not found:
            raise GoldenError([self._missing(request, span)])
        most = max(verdict.conditions for _, verdict in found)
        best = [pair for pair in found if pair[1].conditions == most]
        if len(best) > 1:
            message = f"{request} matches {len(best)} curves equally: {_names(best)}."
            raise GoldenError(
                [_finding("golden-ambiguous", message, "make one identity narrower, or remove a file", span)]
            )
        return best[0][0]

    def _missing(self, request: LookUp, span: Span | None) -> Finding:
        prefixes = sorted({prefix for curve in self.curves for prefix in _prefixes(curve)})
        if request.model_prefix in prefixes:
            own = [curve for curve in self.curves if request.model_prefix in _prefixes(curve)]
            fix = f"curves of {request.model_prefix}: {'; '.join(_described(curve) for curve in own)}"
        else:
            from matrix.findings import did_you_mean

            fix = did_you_mean(request.model_prefix, prefixes)
        return _finding("golden-missing", f"there is no golden curve in {self.folder} for {request}.", fix, span)


class _Verdict(NamedTuple):
    conditions: int
    lacks: tuple[str, ...] = ()


def _match(curve: Curve, request: LookUp) -> _Verdict | None:
    """Whether a curve is for a run, as far as the run says."""
    if curve.identity is None:
        return _match_name(curve.name, request)
    identity = curve.identity
    if request.model_prefix not in identity.model_prefixes or request.method not in identity.methods:
        return None
    lacks = []
    if identity.draft_model is not None:
        if not request.draft_model:
            lacks.append("draft model")
        elif not identity.draft_model.search(request.draft_model):
            return None
    if identity.draft_sampling is not None:
        if not request.draft_sampling:
            lacks.append("draft sampling")
        elif request.draft_sampling != identity.draft_sampling:
            return None
    return _Verdict(identity.conditions, tuple(lacks))


def _match_name(name: str, request: LookUp) -> _Verdict | None:
    prefix, method = request.model_prefix, request.method
    if method in ("eagle", "nextn"):
        method = "eagle3" if prefix == "minimaxm3" else "mtp"
    if method == "dspark" and prefix == "kimik3":
        if request.draft_sampling:
            return _Verdict(1) if name == _KIMI_DSPARK.get(request.draft_sampling) else None  # type: ignore[call-overload]
        return _Verdict(1, ("draft sampling",)) if name in _KIMI_DSPARK.values() else None
    if method == "dspark" and prefix in _DSPARK_OF_DSV4:
        wanted = "dsv4-pro-0813-dspark"
    elif (prefix, method) == ("minimaxm3", "eagle3") and "gqa" in (request.draft_model or "").lower():
        wanted = "minimaxm3_eagle3_gqa"
    else:
        wanted = f"{prefix}_{method}"
    return _Verdict(0) if name == wanted else None


def _prefixes(curve: Curve) -> tuple[str, ...]:
    if curve.identity is not None:
        return curve.identity.model_prefixes
    return _DSPARK_OF_DSV4 if curve.name == "dsv4-pro-0813-dspark" else (curve.name.split("_", 1)[0],)


def _described(curve: Curve) -> str:
    return f"{curve.path.name} ({curve.identity or 'by its name'})"


def _names(found: Iterable[tuple[Curve, object]]) -> str:
    return ", ".join(_described(curve) for curve, _ in found)


def _no_value(curve: Curve, request: LookUp, span: Span | None) -> Finding:
    cells = curve.modes.get(request.thinking)
    if cells is None:
        message = f"{curve.path.name} has no values for {request.thinking}."
        return _finding("golden-unmeasured", message, f"it has: {', '.join(curve.modes)}", span or curve.span())
    cell = f"{request.thinking} with {request.tokens} draft tokens"
    message = f"{curve.path.name} has no value for {cell}, and none is interpolated."
    return _finding(
        "golden-unmeasured", message, f"it has: {', '.join(map(str, cells))}", span or curve.span(request.thinking)
    )


def _finding(rule: str, message: str, fix: str, span: Span | None) -> Finding:
    return Finding(rule=rule, message=message, fix=fix, span=span)
