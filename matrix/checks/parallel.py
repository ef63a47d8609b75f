"""How a role's arguments spread one worker over GPUs, read the way its engine reads them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.recipes.layout import engine_of

if TYPE_CHECKING:
    from matrix.findings import Span
    from matrix.recipes.roles import RecipeView, Role

__all__ = ["Parallel", "Value", "argument", "parallel_of"]

_A2A: Final = frozenset({"deepep", "mori", "mooncake", "flashinfer", "nixl", "ascend_fuseep"})
"""Exchanges with which SGLang makes ep-size equal tp-size, whatever ep-size says."""


_FEW: Final = 4
"""Several checks ask the same of the roles of one recipe, one after the other."""


class Value(NamedTuple):
    """What a role says of one thing: ``key`` is the argument that says it, None where it is the engine's default."""

    value: Any
    key: str | None
    span: Span


class Parallel(NamedTuple):
    """Sizes of one worker. ``tp`` as a row counts it: attention ranks of whatever kind.

    ``experts`` is 1 without expert parallelism, ``attention`` the number of data-parallel attention ranks. None: the
    engine has no such size, or not in its arguments.
    """

    tp: Value | None
    pp: Value | None
    dcp: Value | None
    experts: Value
    attention: Value


def argument(view: RecipeView, role: Role, *names: str, default: Any = None) -> Value:
    """An argument by any of its names, in either spelling; the variant's line where none is there.

    A number written as text is a number: the command line is the same.
    """
    known = _spelled(role)
    for name in names:
        if name in known:
            key = known[name]
            value = role.args[key]
            number = int(value) if isinstance(value, str) and value.isdecimal() else value
            return Value(number, key, view.recipe.document.of_key(role.args, key))
    return Value(default, None, view.recipe.home())


@lru_cache(maxsize=_FEW)
def _spelled(role: Role) -> dict[str, str]:
    """The arguments of a role as they are spelled, by their name with hyphens; of two spellings the first."""
    found: dict[str, str] = {}
    for key in role.args:
        if isinstance(key, str):
            found.setdefault(key.replace("_", "-"), key)
    return found


@lru_cache(maxsize=_FEW)
def parallel_of(view: RecipeView, role: Role) -> Parallel | None:
    """The sizes of a role's workers; None for an engine whose arguments are not known here."""
    match role.engine or engine_of(view):
        case "sglang":
            return _sglang(view, role)
        case "vllm":
            return _vllm(view, role)
        case "atom":
            return _atom(view, role)
        case "trtllm":
            return _trtllm(view, role)
        case _:
            return None


def _sglang(view: RecipeView, role: Role) -> Parallel:
    tp = argument(view, role, "tp-size", "tensor-parallel-size", "tp", default=1)
    experts = argument(view, role, "ep-size", "expert-parallel-size", "ep", default=1)
    exchange = argument(view, role, "moe-a2a-backend")
    if isinstance(exchange.value, str) and exchange.value in _A2A:
        experts = experts._replace(value=tp.value) if experts.key else exchange._replace(value=tp.value)
    attention = argument(view, role, "enable-dp-attention", default=False)
    ranks = argument(view, role, "dp-size", "data-parallel-size", "dp", default=1)
    # The flag without a size, or a size without the flag, is no attention parallelism.
    if attention.value is True:
        attention = ranks if ranks.key else attention._replace(value=ranks.value)
    else:
        attention = attention._replace(value=1)
    pp = argument(view, role, "pp-size", "pipeline-parallel-size", default=1)
    return Parallel(tp, pp, None, experts, attention)


def _vllm(view: RecipeView, role: Role) -> Parallel:
    """A row counts the GPUs of a data-parallel vLLM worker as tp, since each of them is an attention rank."""
    tp = argument(view, role, "tensor-parallel-size", "tp", default=1)
    dp = argument(view, role, "data-parallel-size", "dp", default=1)
    both = tp
    if type(tp.value) is int and type(dp.value) is int:
        both = (tp if tp.key else dp)._replace(value=tp.value * dp.value)
    experts = argument(view, role, "enable-expert-parallel", default=False)
    experts = experts._replace(value=both.value if experts.value is True else 1)
    pp = argument(view, role, "pipeline-parallel-size", "pp", default=1)
    dcp = argument(view, role, "decode-context-parallel-size", "dcp", default=1)
    return Parallel(both, pp, dcp, experts, dp)


def _atom(view: RecipeView, role: Role) -> Parallel:
    """srtctl itself says ``-tp``, the GPUs of the worker; the other sizes are flags."""
    experts = argument(view, role, "enable-expert-parallel", default=False)
    experts = experts._replace(value=role.gpus if experts.value is True else 1)
    attention = argument(view, role, "enable-dp-attention", default=False)
    attention = attention._replace(value=role.gpus if attention.value is True else 1)
    return Parallel(None, None, None, experts, attention)


def _trtllm(view: RecipeView, role: Role) -> Parallel:
    tp = argument(view, role, "tensor-parallel-size", default=None)
    attention = argument(view, role, "enable-attention-dp", default=False)
    attention = attention._replace(value=(tp.value or role.gpus) if attention.value is True else 1)
    experts = argument(view, role, "moe-expert-parallel-size", default=1)
    pp = argument(view, role, "pipeline-parallel-size", default=1)
    return Parallel(tp if tp.key else None, pp, None, experts, attention)
