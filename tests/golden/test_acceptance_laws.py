"""Laws of injection, over recipes of every engine."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.source import loads, plain
from matrix.recipes.acceptance import inject
from matrix.recipes.draft import Engine
from matrix.recipes.forced import leftovers
from matrix.recipes.golden import CurveBook
from matrix.recipes.recipe import Recipe, parse_reference
from matrix.recipes.roles import view_of
from tests.golden.engines import CURVE, DRAFTS, FRAMEWORK, GIVEN, assert_marked, request_for

ENVIRONMENTS = st.dictionaries(st.sampled_from(["KEEP", "PORT"]), st.sampled_from(["1", "x"]), min_size=1)
FORCED = st.sampled_from(sorted({name for given in GIVEN.values() for name in given.get("env", {})}))


@st.composite
def recipes(draw: st.DrawFn, *, forced: bool) -> tuple[Recipe, str]:
    """A resolved recipe of any engine, and its framework; ``forced``: it may force acceptance of its own."""
    engine = draw(st.sampled_from(list(Engine)))
    names = draw(st.sampled_from([("agg",), ("prefill", "decode")]))
    roles: dict[str, Any] = {}
    for name in names:
        args: dict[str, Any] = {"tp-size": 8}
        if name != "prefill" or draw(st.booleans()):
            args |= loads(f"{{{DRAFTS[engine]}}}".encode(), "x").root
        role: dict[str, Any] = {"nodes": 1, "args": args}
        if draw(st.booleans()):
            role["env"] = draw(ENVIRONMENTS)
        if forced and draw(st.booleans()):
            role.setdefault("env", {})[draw(FORCED)] = "9"
        if forced and draw(st.booleans()):
            args["spec-decode-acceptance-length"] = 9
        roles[name] = role
    data: dict[str, Any] = {"schema": 2, "engine": engine.value, "roles": roles}
    if draw(st.booleans()):
        data["environment"] = draw(ENVIRONMENTS)
    if forced and draw(st.booleans()):
        data.setdefault("environment", {})[draw(FORCED)] = "9"
    document = loads(json.dumps(plain(data)).encode(), "r.yaml")
    return Recipe(parse_reference("r.yaml"), document.root, document, Path("r.yaml")), FRAMEWORK[engine]


@pytest.fixture(scope="module")
def law_book(tmp_path_factory: pytest.TempPathFactory) -> CurveBook:
    folder = tmp_path_factory.mktemp("golden")
    (folder / "m.yaml").write_text(CURVE, encoding="utf-8")
    return CurveBook(folder)


@given(sample=recipes(forced=True), idle=st.booleans())
def test_injecting_twice_is_injecting_once(law_book: CurveBook, sample: tuple[Recipe, str], idle: bool) -> None:
    recipe, framework = sample
    request = request_for(framework, eval_only=idle)
    once, first = inject(recipe, request, law_book)
    twice, second = inject(once, request, law_book)
    assert twice is once
    assert second.changes == ()
    assert (second.reason, second.length) == (first.reason, first.length)
    assert_marked(once.data)


@given(sample=recipes(forced=False))
def test_taking_out_what_was_injected_gives_the_original(law_book: CurveBook, sample: tuple[Recipe, str]) -> None:
    recipe, framework = sample
    injected, record = inject(recipe, request_for(framework), law_book)
    # TileRT forces decode alone, so an aggregated run of it is given nothing.
    assert bool(record.changes) is ("decode" in recipe.data["roles"] or framework != "tilert")
    removed, _ = inject(injected, request_for(framework, eval_only=True), law_book)
    wanted = plain(recipe.data)
    if framework == "vllm-disagg":
        # What verified really before is not known any more; block is what the curves were measured beside.
        for role in wanted["roles"].values():
            if "speculative-config" in role["args"]:
                spec = json.loads(role["args"]["speculative-config"]) | {"rejection_sample_method": "block"}
                role["args"]["speculative-config"] = json.dumps(spec)
    assert plain(removed.data) == wanted


@given(sample=recipes(forced=True))
def test_an_accuracy_run_keeps_no_leftover_and_changes_nothing_else(
    law_book: CurveBook, sample: tuple[Recipe, str]
) -> None:
    recipe, framework = sample
    real, record = inject(recipe, request_for(framework, eval_only=True), law_book)
    assert list(leftovers(view_of(real))) == []
    assert len(record.changes) == len(list(leftovers(view_of(recipe))))
