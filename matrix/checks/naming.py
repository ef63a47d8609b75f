"""Names: the model that is served and asked for, and the settings of a row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from matrix.checks.case import Case, absent
from matrix.checks.rule import Fault, rule
from matrix.config.model import Aggregated, Disaggregated, SingleNode
from matrix.config.source import Map
from matrix.recipes.atom import canonical_flag
from matrix.recipes.engines import model_argument, served_model_name
from matrix.recipes.layout import engine_of
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.config.model import Worker
    from matrix.recipes.roles import Role

__all__ = ["row_setting", "row_setting_twice", "served_name"]

_SETTING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^\r\n\x00]*\Z")
_ASKS: Final = re.compile(r"\$\{?MODEL\b(?!_)")


@rule("served-name", RecipeView)
def served_name(view: RecipeView) -> Iterator[Fault]:
    """The model that the client asks for is the one that every server serves.

    ATOM serves its `--model` word for word: `ORG/NAME` for `hf:ORG/NAME`, `/model` for a mounted folder, unless
    `served-model-name` says otherwise, in every role. SGLang and vLLM are told the last part of the path. The client
    asks for `benchmark.env.MODEL`.

    Why: a server that does not know the name answers each request with 503 or 404, and the run looks like a network
    fault (seen in run 33720270808).
    Fix: write one name in `served-model-name` and `benchmark.env.MODEL`.
    """
    served = served_model_name(view)
    own = {role.name: _own_name(view, role) for role in view.roles.values()} if engine_of(view) == "atom" else {}
    if len(set(own.values())) > 1:
        message = f"{' and '.join(f'{role} serves {name}' for role, name in own.items())}; a client asks for one."
        yield Fault(message, "write one served-model-name in each role", recipe=view.recipe.home())
        return
    env = view.benchmark.get("env")
    env = env if isinstance(env, Map) else Map()
    if "MODEL" in env:
        if str(env["MODEL"]) != served:
            message = f"the client asks for the model {env['MODEL']}, and the server serves {served}."
            place = view.recipe.span(env, "MODEL")
            yield Fault(message, "write one name in served-model-name and benchmark.env.MODEL", recipe=place)
    elif _ASKS.search(str(view.benchmark.get("command", ""))):
        message = "the command asks for ${MODEL}, and benchmark.env does not set it."
        yield Fault(message, f"write MODEL: {served} below benchmark.env", recipe=absent(view, "benchmark", "env"))


@rule("row-setting", Case)
def row_setting(case: Case) -> Iterator[Fault]:
    """Each of the additional-settings is NAME=value on one line.

    Why: they are exported to the launcher as they are, and one that is none stops the job there.
    Fix: write NAME=value, without spaces before or in the name.
    """
    for worker in _workers(case):
        for index, setting in enumerate(worker.settings):
            if not _SETTING.match(setting):
                span = case.config.document.of_value(worker.node["additional-settings"], index)
                yield Fault(f"the setting {setting!r} is not NAME=value.", "write NAME=value", span)


@rule("row-setting-twice", Case)
def row_setting_twice(case: Case) -> Iterator[Fault]:
    """No role says one setting twice with two values. For CONFIG_FILE see recipe-conflict.

    Why: the later one wins without a word.
    Fix: keep one of them.
    """
    for worker in _workers(case):
        first: dict[str, str] = {}
        for index, setting in enumerate(worker.settings):
            name, _, value = setting.partition("=")
            if first.setdefault(name, value) != value and name != "CONFIG_FILE":
                span = case.config.document.of_value(worker.node["additional-settings"], index)
                yield Fault(f"{name} is {first[name]} and {value} in one role.", "keep one of them", span)


def _own_name(view: RecipeView, role: Role) -> str:
    """What a server of ATOM makes of its own arguments."""
    named = (value for key, value in role.args.items() if canonical_flag(key) == "served-model-name" and value)
    return str(next(named, model_argument(view)))


def _workers(case: Case) -> tuple[Worker, ...]:
    match case.entry.topology:
        case SingleNode(worker) | Aggregated(worker):
            return (worker,)
        case Disaggregated(prefill, decode):
            return (prefill, decode)
