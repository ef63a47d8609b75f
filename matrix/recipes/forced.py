"""Forced acceptance in a recipe: where each engine is told a length, how to find it, set it and take it out.

vLLM     speculative-config: rejection_sample_method synthetic, synthetic_acceptance_length
SGLang   SGLANG_SIMULATE_ACC_LEN, _METHOD match-expected, _TOKEN_MODE real-draft-token
TRT-LLM  TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS, which leaves out the guaranteed token: the length less one
ATOM     argument spec-decode-acceptance-length (or -rate, which excludes it)
TileRT   TILERT_SIMULATE_ACC_LEN, _METHOD match-expected
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import Map, WrittenFloat
from matrix.recipes.curve import short_text
from matrix.recipes.draft import Engine, argument_keys, json_argument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from matrix.config.source import Mark
    from matrix.findings import Span
    from matrix.recipes.roles import RecipeView, Role

    _Marks = tuple[Mark, Mark] | None

__all__ = ["Change", "Leftover", "force", "given_text", "is_variable", "leftovers"]

_SGLANG: Final = "SGLANG_SIMULATE_ACC_"
_TILERT: Final = "TILERT_SIMULATE_ACC_"
_TRTLLM: Final = "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"
_ATOM: Final = "spec-decode-acceptance"
_ATOM_LENGTH: Final = f"{_ATOM}-length"
_SYNTHETIC: Final = "synthetic_acceptance"
_METHOD: Final = "rejection_sample_method"
_SPEC_CONFIG: Final = "speculative-config"
_BESIDE: Final = (
    "num-speculative-tokens",
    "speculative-num-steps",
    "speculative-dspark-block-size",
    _SPEC_CONFIG,
    "num-mtp",
)
"""The draft length, beside which a forced one belongs: findings about it point to that line."""


class Change(NamedTuple):
    """One value of the recipe that was set, replaced or removed; None is no value."""

    path: tuple[str, ...]
    before: Any
    after: Any

    def __str__(self) -> str:
        where = ".".join(self.path)
        if self.after is None:
            return f"{where}: {self.before} removed"
        return f"{where}: {self.after}" + (f" in place of {self.before}" if self.before is not None else "")


class Leftover(NamedTuple):
    """An acceptance setting that a recipe has of its own: where, what it says, and in which role (None: in all)."""

    path: tuple[str, ...]
    value: Any
    role: str | None
    span: Span

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.value}"


def leftovers(view: RecipeView) -> Iterator[Leftover]:
    """Every acceptance setting that the recipe has of its own, of any engine."""
    of_key = view.recipe.document.of_key
    for key, value in view.environment.items():
        if is_variable(key):
            yield Leftover(("environment", key), value, None, of_key(view.environment, key))
    for role in view.roles.values():
        args, env = _paths(view, role)
        for key, value in role.env.items():
            if is_variable(key):
                yield Leftover((*env, key), value, role.name, of_key(role.env, key))
        for key, value in role.args.items():
            if _is_argument(key):
                yield Leftover((*args, key), value, role.name, of_key(role.args, key))
        for key in argument_keys(role.args, _SPEC_CONFIG):
            for name, value in (json_argument(role.args[key]) or {}).items():
                if name.startswith(_SYNTHETIC) or (name == _METHOD and value == "synthetic"):
                    yield Leftover((*args, key, name), value, role.name, of_key(role.args, key))


def force(view: RecipeView, lengths: dict[str, tuple[Engine, Decimal]]) -> tuple[Map, tuple[Change, ...]]:
    """The recipe's data with exactly these lengths forced, by role, and every other acceptance setting taken out.

    An environment or argument mapping that has nothing else in it goes with its last setting. What a change does not
    touch stays shared with the original, which is not changed.
    """
    tree = _Tree(view.recipe.data)
    # srtctl applies the recipe-wide environment after a role's, so that a value there would win.
    tree.variables(("environment",), view.environment, {}, None)
    for role in view.roles.values():
        args, env = _paths(view, role)
        engine, length = lengths.get(role.name, (None, None))
        wanted = _variables(engine, length) if engine is not None and length is not None else {}
        beside = next(iter(argument_keys(role.args, *_BESIDE)), None)
        marks = role.args.marks.get(beside)
        tree.variables(env, role.env, wanted, marks)
        tree.arguments(args, role.args, length if engine is Engine.ATOM else None, marks)
        tree.spec_config(args, role, length if engine is Engine.VLLM else None)
    return tree.data, tuple(tree.changes)


def given_text(engine: Engine, length: Decimal) -> str:
    """The number that an engine is given for a length.

    >>> from decimal import Decimal
    >>> given_text(Engine.TRTLLM, Decimal("2.78")), given_text(Engine.ATOM, Decimal("3.00"))
    ('1.78', '3')
    """
    return short_text(length - 1 if engine is Engine.TRTLLM else length)


def _variables(engine: Engine, length: Decimal) -> dict[str, str]:
    text = given_text(engine, length)
    match engine:
        case Engine.SGLANG:
            return {
                f"{_SGLANG}LEN": text,
                f"{_SGLANG}METHOD": "match-expected",
                f"{_SGLANG}TOKEN_MODE": "real-draft-token",
            }
        case Engine.TRTLLM:
            return {_TRTLLM: text}
        case Engine.TILERT:
            return {f"{_TILERT}LEN": text, f"{_TILERT}METHOD": "match-expected"}
        case Engine.VLLM | Engine.ATOM:
            return {}


def is_variable(name: Any) -> bool:
    """Whether an environment variable forces an acceptance in some engine."""
    return isinstance(name, str) and (name.startswith((_SGLANG, _TILERT)) or name == _TRTLLM)


def _is_argument(name: Any) -> bool:
    return isinstance(name, str) and name.replace("_", "-").startswith(_ATOM)


def _number(length: Decimal) -> int | WrittenFloat:
    text = short_text(length)
    return WrittenFloat(text) if "." in text else int(text)


def _paths(view: RecipeView, role: Role) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where a role's arguments and its environment stand, in the recipe's dialect."""
    if view.schema == 2:
        return ("roles", role.name, "args"), ("roles", role.name, "env")
    long = "aggregated" if role.name == "agg" else role.name
    return ("backend", f"{role.engine}_config", long), ("backend", f"{long}_environment")


class _Tree:
    """A recipe that is changed by copying the way to each change."""

    def __init__(self, data: Map) -> None:
        self.data = data
        self.changes: list[Change] = []

    def variables(self, path: tuple[str, ...], env: Map, wanted: dict[str, str], marks: _Marks) -> None:
        """Make the acceptance variables of an environment exactly ``wanted``."""
        for name in env:
            if is_variable(name) and name not in wanted:
                self.drop((*path, name), env[name])
        for name, value in wanted.items():
            self.put((*path, name), env.get(name), value, marks)

    def arguments(self, path: tuple[str, ...], args: Map, length: Decimal | None, marks: _Marks) -> None:
        """Make ATOM's acceptance arguments exactly the length, or none."""
        for name in args:
            if _is_argument(name) and (length is None or name != _ATOM_LENGTH):
                self.drop((*path, name), args[name])
        if length is not None:
            self.put((*path, _ATOM_LENGTH), args.get(_ATOM_LENGTH), _number(length), marks)

    def spec_config(self, path: tuple[str, ...], role: Role, length: Decimal | None) -> None:
        """Make vLLM's speculative-config force the length, or verify really."""
        for name in argument_keys(role.args, _SPEC_CONFIG):
            before = role.args[name]
            spec = json_argument(before)
            if spec is None:
                continue
            after = {key: value for key, value in spec.items() if not key.startswith(_SYNTHETIC)}
            if length is not None:
                after |= {_METHOD: "synthetic", f"{_SYNTHETIC}_length": _number(length)}
            elif after.get(_METHOD) == "synthetic":
                after[_METHOD] = "block"
            if after != spec:
                self.put((*path, name), before, _rendered(after, before), role.args.marks.get(name))

    def put(self, path: tuple[str, ...], before: Any, value: Any, marks: _Marks) -> None:
        if type(before) is type(value) and before == value:
            return
        self.changes.append(Change(path, before, value))
        self.data = _put(self.data, path, value, marks)

    def drop(self, path: tuple[str, ...], before: Any) -> None:
        self.changes.append(Change(path, before, None))
        self.data = _put(self.data, path, None, None)


def _put(node: Map, path: tuple[str, ...], value: Any, marks: _Marks) -> Map:
    """A copy of the way down to a member, with the member set, or without it when the value is None."""
    copy = _map_like(node, node)
    copy.marks = dict(node.marks)
    key = path[0]
    if len(path) > 1:
        child = node.get(key)
        value = _put(child if isinstance(child, Map) else _map_like(node, {}), path[1:], value, marks) or None
    if value is None:
        copy.pop(key, None)
        copy.marks.pop(key, None)
    else:
        copy[key] = value
        copy.marks.setdefault(key, marks or (node.mark, node.mark))
    return copy


def _map_like(node: Map, members: dict[Any, Any]) -> Map:
    copy = Map(members)
    copy.mark = node.mark
    copy.marks = {}
    return copy


def _rendered(spec: dict[str, Any], like: Any) -> Any:
    """A speculative-config in the form of the one whose place it takes: a mapping, or JSON text with its spacing."""
    if isinstance(like, Map):
        node = _map_like(like, spec)
        node.marks = {key: like.marks.get(key, (like.mark, like.mark)) for key in spec}
        return node
    return json.dumps(spec, separators=(", ", ": ") if '": ' in like else (",", ":"), ensure_ascii=False)
