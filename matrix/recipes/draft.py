"""`Draft`: what a role of a recipe says about its speculative decoding, read the way its engine reads it.

Half a setting is a fault, not a default: every engine has a draft length of its own for a recipe that gives none, and
that is a length nobody compares at.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import Map
from matrix.findings import Finding
from matrix.recipes.curve import DraftSampling
from matrix.recipes.golden import GoldenError

if TYPE_CHECKING:
    from matrix.findings import Span
    from matrix.recipes.recipe import Recipe
    from matrix.recipes.roles import Role

__all__ = ["FRAMEWORKS", "Draft", "Engine", "argument_keys", "engine_of", "json_argument", "read_draft"]


class Engine(StrEnum):
    """The engines that can be told how many tokens to accept."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    ATOM = "atom"
    TILERT = "tilert"


FRAMEWORKS: Final = {
    "vllm": Engine.VLLM, "vllm-disagg": Engine.VLLM, "dynamo-vllm": Engine.VLLM,
    "sglang": Engine.SGLANG, "sglang-disagg": Engine.SGLANG, "mori-sglang": Engine.SGLANG,
    "dynamo-sglang": Engine.SGLANG,
    "trt": Engine.TRTLLM, "dynamo-trt": Engine.TRTLLM,
    "atom": Engine.ATOM, "atom-disagg": Engine.ATOM,
    "tilert": Engine.TILERT,
}  # fmt: skip
"""The ``framework`` of a master config, and the engine behind it."""


class Draft(NamedTuple):
    """The speculation of one role. ``span`` is where the recipe says its length.

    ``scheduled``: ATOM's DSpark scheduler cuts the verified length at run time, which no forced length survives.
    """

    role: str
    engine: Engine
    method: str
    tokens: int
    model: str | None
    sampling: str | None
    scheduled: Span | None
    span: Span


def engine_of(role: Role, framework: str) -> Engine | None:
    """A role's engine: what the recipe says, else what the framework means; None where that is not one of `Engine`."""
    if role.engine:
        return Engine(role.engine) if role.engine in tuple(Engine) else None
    return FRAMEWORKS.get(framework)


def argument_keys(args: Map, *names: str) -> list[str]:
    """The arguments with one of the names, in either spelling: engines take ``-`` and ``_`` for the same."""
    return [key for key in args if isinstance(key, str) and key.replace("_", "-") in names]


def json_argument(value: Any) -> dict[str, Any] | None:
    """The object that an argument holds as a mapping or as JSON text; None where it holds neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def read_draft(recipe: Recipe, role: Role, engine: Engine, spec_decoding: str) -> Draft | None:
    """The speculation of a role, None where it does none; ``spec_decoding`` is the row's.

    Raises:
        GoldenError: with everything that is unclear about it.
    """
    reader = _Reader(recipe, role)
    match engine:
        case Engine.VLLM:
            found = reader.vllm()
        case Engine.SGLANG:
            found = reader.sglang(spec_decoding)
        case Engine.TRTLLM:
            found = reader.trtllm()
        case Engine.ATOM:
            found = reader.atom()
        case Engine.TILERT:
            found = reader.tilert()
    if reader.faults:
        raise GoldenError(reader.faults)
    if found is None:
        return None
    return Draft(
        role=role.name,
        engine=engine,
        method=found.method.lower(),
        tokens=found.tokens,
        model=found.model,
        sampling=found.sampling,
        scheduled=reader.scheduled() if engine is Engine.ATOM and found.method.lower() == "dspark" else None,
        span=found.span,
    )


class _Found(NamedTuple):
    method: str
    tokens: int
    model: str | None
    sampling: str | None
    span: Span


class _Reader:
    """Reads one role and collects what is unclear."""

    def __init__(self, recipe: Recipe, role: Role) -> None:
        self.recipe = recipe
        self.role = role
        self.faults: list[Finding] = []

    # -- engines ----------------------------------------------------------------------------------------------------

    def vllm(self) -> _Found | None:
        key = self.key("speculative-config")
        if key is None:
            return None
        spec = self.json(key)
        if spec is None:
            return None
        sampling = self.text(key, spec.get("draft_sample_method"), "draft_sample_method")
        return self.found(key, spec, "method", "num_speculative_tokens", "model", sampling)

    def sglang(self, spec_decoding: str) -> _Found | None:
        """SGLang's own switch is the algorithm; without it the row says the method, where the row names one."""
        algorithm = self.key("speculative-algorithm", "speculative-algo")
        steps, block = self.key("speculative-num-steps"), self.key("speculative-dspark-block-size")
        if algorithm is not None:
            method = self.role.args[algorithm]
        elif steps is None and block is None:
            return None
        else:
            method = self.implied(steps, block, spec_decoding)
        if not isinstance(method, str) or not method:
            if algorithm is not None:
                self.fault(
                    "golden-method",
                    algorithm,
                    f"says {algorithm}: {method}, and a name is wanted",
                    "name the algorithm",
                )
            return None
        name = "speculative-dspark-block-size" if method.lower() == "dspark" else "speculative-num-steps"
        key = block if method.lower() == "dspark" else steps
        model_key = self.key("speculative-draft-model-path")
        model = self.text(model_key, self.role.args.get(model_key), "the draft model") if model_key else None
        tokens = self.tokens(key or algorithm or block, name, self.role.args.get(key) if key else None)
        return _Found(method, tokens, model, None, self.span(key or algorithm)) if tokens else None

    def implied(self, steps: str | None, block: str | None, spec_decoding: str) -> str | None:
        method = {"draft_model": "dspark" if steps is None else "", "none": "", "": ""}.get(
            spec_decoding, spec_decoding
        )
        if method and (method == "dspark") == (steps is None) and not (steps and block):
            return method
        message = (
            f"drafts ({steps or block}) and names no algorithm, and the row's spec-decoding"
            f" {spec_decoding or 'none'} does not tell which"
        )
        self.fault("golden-method", steps or block, message, "add speculative-algorithm")
        return None

    def trtllm(self) -> _Found | None:
        key = self.key("speculative-config")
        if key is None:
            return None
        spec = self.json(key)
        return self.found(key, spec, "decoding_type", "max_draft_len", "speculative_model", None) if spec else None

    def atom(self) -> _Found | None:
        key, length = self.key("method"), self.key("num-speculative-tokens")
        if key is None:
            if length is not None:
                self.fault(
                    "golden-method",
                    length,
                    f"says {length} and no method, so ATOM does not draft",
                    "add method, or drop it",
                )
            return None
        args = self.role.args
        model = self.key("draft-model")
        spec = {"method": args[key], "model": args.get(model), "num-speculative-tokens": args.get(length)}
        dspark = isinstance(args[key], str) and args[key].lower() == "dspark"
        # ATOM verifies DSpark by rejection sampling over blocks, which is the probabilistic draft.
        sampling = DraftSampling.PROBABILISTIC.value if dspark else None
        return self.found(length or key, spec, "method", "num-speculative-tokens", "model", sampling)

    def tilert(self) -> _Found | None:
        key, length = self.key("with-mtp"), self.key("num-mtp")
        if key is None or self.role.args[key] is False:
            return None
        if self.role.args[key] is not True:
            said = f"says {key}: {self.role.args[key]!r}, and true or false is wanted"
            self.fault("golden-method", key, said, "write with-mtp: true")
            return None
        tokens = self.tokens(length or key, "num-mtp", self.role.args.get(length) if length else None)
        return _Found("mtp", tokens, None, None, self.span(length or key)) if tokens else None

    def scheduled(self) -> Span | None:
        for key in argument_keys(self.role.args, "dspark-config"):
            spec = json_argument(self.role.args[key])
            if spec is not None and spec.get("confidence_schedule"):
                return self.span(key)
        return None

    # -- their parts ------------------------------------------------------------------------------------------------

    def found(
        self, key: str, spec: dict[str, Any], method: str, length: str, model: str, sampling: str | None
    ) -> _Found | None:
        name = spec.get(method)
        if not isinstance(name, str) or not name:
            said = f"drafts and says no {method}" if name is None else f"says {method}: {name!r}, and a name is wanted"
            self.fault("golden-method", key, said, f"write {method}")
        draft_model = self.text(key, spec.get(model), model)
        tokens = self.tokens(key, length, spec.get(length))
        return _Found(name, tokens, draft_model, sampling, self.span(key)) if isinstance(name, str) and tokens else None

    def tokens(self, key: str | None, name: str, value: Any) -> int:
        """A draft length, 0 when it is none."""
        if type(value) is int and value >= 1:
            return value
        if value is None:
            message = (
                f"drafts and does not say how many tokens ({name}); an engine's default is not a length to compare at"
            )
        else:
            kind = {bool: "a boolean", str: "text"}.get(type(value), "not a whole number of 1 or more")
            message = f"says {name}: {json.dumps(value, default=str)}, which is {kind}; a draft length counts tokens"
        self.fault("golden-draft-length", key, message, f"write {name}: with a whole number of 1 or more, unquoted")
        return 0

    def text(self, key: str | None, value: Any, name: str) -> str | None:
        if value is None or isinstance(value, str):
            return value or None
        self.fault("golden-method", key, f"says {name}: {value!r}, and a name is wanted", "write a name")
        return None

    def json(self, key: str) -> dict[str, Any] | None:
        spec = json_argument(self.role.args[key])
        if spec is None:
            self.fault("golden-draft-json", key, f"holds no JSON object in {key}", 'write \'{"method": "mtp", ...}\'')
        return spec

    def key(self, *names: str) -> str | None:
        """The argument with one of the names; several have to say the same."""
        keys = argument_keys(self.role.args, *names)
        said = {json.dumps(value, default=str).lower() for value in map(self.role.args.get, keys)}
        if len(said) > 1:
            message = f"says {' and '.join(f'{key}: {self.role.args[key]}' for key in keys)}, which are one setting"
            self.fault("golden-two-spellings", keys[-1], message, "keep one")
        return keys[0] if keys else None

    def span(self, key: str | None) -> Span:
        args = self.role.args
        return self.recipe.document.of_key(args, key) if key in args else self.recipe.home()

    def fault(self, rule: str, key: str | None, message: str, fix: str) -> None:
        self.faults.append(
            Finding(rule=rule, message=f"role {self.role.name} {message}.", fix=fix, span=self.span(key))
        )
