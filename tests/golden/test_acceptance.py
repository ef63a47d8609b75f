"""What a run is given, what is taken out, and that nothing else changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from matrix.config.source import plain
from matrix.recipes.acceptance import AcceptanceRecord, AcceptanceRequest, Reason, framework_of, inject
from matrix.recipes.draft import Engine
from matrix.recipes.forced import leftovers
from matrix.recipes.golden import CurveBook, GoldenError
from matrix.recipes.recipe import Recipe
from matrix.recipes.roles import view_of
from tests.golden.conftest import BookMaker, RecipeMaker
from tests.golden.engines import CURVE, DRAFTS, FRAMEWORK, GIVEN, assert_marked, request_for

LEFTOVERS = """\
      SGLANG_SIMULATE_ACC_LEN: "8"
      SGLANG_SIMULATE_ACC_METHOD: match-expected
      TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS: 7
      TILERT_SIMULATE_ACC_LEN: "9"
"""
IDLE: dict[Reason, dict[str, Any]] = {
    Reason.ACCURACY: {"eval_only": True},
    Reason.NOT_AGENTIC: {"agentic": False},
    Reason.NO_SPECULATION: {"spec_decoding": "none"},
}


def given_to(recipe: Recipe, request: AcceptanceRequest, book: CurveBook) -> tuple[dict[str, Any], AcceptanceRecord]:
    before = recipe.canonical()
    injected, record = inject(recipe, request, book)
    assert recipe.canonical() == before
    return plain(injected.data), record


def two_roles(engine: str, prefill: str, decode: str) -> str:
    return (
        f"schema: 2\nengine: {engine}\nroles:\n  prefill: {{nodes: 1, args: {{{prefill}}}}}\n"
        f"  decode: {{nodes: 1, args: {{{decode}}}}}\n"
    )


@pytest.mark.parametrize("engine", list(Engine))
def test_each_engine_is_given_the_length_in_its_own_way(
    recipe_of: RecipeMaker, book_of: BookMaker, engine: Engine
) -> None:
    recipe = recipe_of(two_roles(engine, DRAFTS[engine], f"{DRAFTS[engine]}, keep: 1"))
    data, record = given_to(recipe, request_for(FRAMEWORK[engine]), book_of(m_mtp=CURVE))
    wanted = plain(recipe.data)["roles"]
    for name, role in wanted.items():
        # A TileRT prefill verifies really.
        for part, values in GIVEN[engine].items() if (name, engine) != ("prefill", "tilert") else ():
            role[part] = role.get(part, {}) | values
    assert data["roles"] == wanted
    assert (record.reason, record.engine, record.length) == (Reason.THROUGHPUT, engine, "2.78")


def test_a_mapping_stays_a_mapping(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    spec = "speculative-config: {method: mtp, num_speculative_tokens: 3, custom: {literal: x=y z}}"
    data, _ = given_to(recipe_of(two_roles("vllm", "", spec)), request_for("vllm"), book_of(m_mtp=CURVE))
    assert data["roles"]["decode"]["args"]["speculative-config"] == {
        "method": "mtp",
        "num_speculative_tokens": 3,
        "custom": {"literal": "x=y z"},
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_length": 2.78,
    }


def test_a_whole_length_is_written_without_a_point(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("atom", "", "method: mtp, num-speculative-tokens: 6"))
    injected, record = inject(recipe, request_for("atom"), book_of(m_mtp=CURVE))
    length = injected.data["roles"]["decode"]["args"]["spec-decode-acceptance-length"]
    assert (length, type(length), record.length) == (3, int, "3")


def test_the_thinking_mode_decides_too(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("atom", "", DRAFTS["atom"]))
    assert given_to(recipe, request_for("atom", thinking="thinking_off"), book_of(m_mtp=CURVE))[1].length == "1.5"
    with pytest.raises(GoldenError, match="golden-unmeasured"):
        inject(recipe, request_for("atom", thinking="thinking_hard"), book_of(m_mtp=CURVE))


def test_decode_decides_whatever_prefill_drafts(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("sglang", "speculative-num-steps: 1", "speculative-num-steps: 2"))
    data, record = given_to(recipe, request_for("sglang"), book_of(m_mtp=CURVE))
    assert record.length == "2.5"
    assert [role["env"]["SGLANG_SIMULATE_ACC_LEN"] for role in data["roles"].values()] == ["2.5", "2.5"]


def test_a_prefill_that_does_not_draft_gets_nothing(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("sglang", "tp: 8", DRAFTS["sglang"]))
    data, _ = given_to(recipe, request_for("sglang"), book_of(m_mtp=CURVE))
    assert data["roles"]["prefill"] == {"nodes": 1, "args": {"tp": 8}}


def test_a_decode_that_does_not_draft_leaves_all_real(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("sglang", DRAFTS["sglang"], "tp: 8"))
    data, record = given_to(recipe, request_for("sglang"), book_of())
    assert record == AcceptanceRecord(reason=Reason.NO_DRAFT)
    assert data == plain(recipe.data)


def test_aggregated_roles_are_given_it(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(
        "schema: 2\nengine: atom\nroles: {agg: {nodes: 1, args: {method: mtp, num-speculative-tokens: 3}}}"
    )
    data, _ = given_to(recipe, request_for("atom"), book_of(m_mtp=CURVE))
    assert data["roles"]["agg"]["args"]["spec-decode-acceptance-length"] == 2.78


def test_a_tilert_prefill_by_vllm_stays_real(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(
        'schema: 2\nroles:\n'
        '  prefill: {nodes: 1, engine: vllm, args: {speculative-config: \'{"method":"mtp","num_speculative_tokens":1,'
        '"rejection_sample_method":"synthetic","synthetic_acceptance_length":99}\'}}\n'
        "  decode: {nodes: 1, engine: {type: tilert}, args: {with-mtp: true, num-mtp: 3}}\n"
    )  # fmt: skip
    data, record = given_to(recipe, request_for("tilert"), book_of(m_mtp=CURVE))
    assert record.length == "2.78"
    assert data["roles"]["decode"]["env"] == GIVEN["tilert"]["env"]
    assert "env" not in data["roles"]["prefill"]
    assert data["roles"]["prefill"]["args"]["speculative-config"] == (
        '{"method":"mtp","num_speculative_tokens":1,"rejection_sample_method":"block"}'
    )


def with_leftovers(engine: str) -> str:
    """A recipe that forces an acceptance in every way and place there is."""
    synthetic = GIVEN["vllm"]["args"]["speculative-config"].replace("2.78", "8")
    drafts = DRAFTS[engine] if engine != "vllm" else f"speculative-config: '{synthetic}'"
    forced = "spec-decode-acceptance-length: 8, spec_decode_acceptance_rate: 0.5"
    return (
        f"schema: 2\nengine: {engine}\nenvironment:\n      KEEP: global\n{LEFTOVERS}"
        f"roles:\n  decode:\n    nodes: 1\n    args: {{{drafts}, {forced}}}\n    env:\n      KEEP: role\n{LEFTOVERS}"
    )


@pytest.mark.parametrize("engine", list(Engine))
@pytest.mark.parametrize("reason", list(IDLE))
def test_a_real_run_loses_every_leftover_and_needs_no_curve(
    recipe_of: RecipeMaker, tmp_path: Path, engine: Engine, reason: Reason
) -> None:
    recipe = recipe_of(with_leftovers(engine))
    assert len(list(leftovers(view_of(recipe)))) == (12 if engine == "vllm" else 10)
    request = request_for(FRAMEWORK[engine], **IDLE[reason])
    data, record = given_to(recipe, request, CurveBook(tmp_path / "none"))
    assert (record.reason, record.length, record.engine) == (reason, None, None)
    assert data["environment"] == {"KEEP": "global"}
    role = data["roles"]["decode"]
    assert role["env"] == {"KEEP": "role"}
    wanted = plain(recipe.data)["roles"]["decode"]["args"]
    del wanted["spec-decode-acceptance-length"], wanted["spec_decode_acceptance_rate"]
    if engine == "vllm":
        wanted["speculative-config"] = (
            '{"method": "mtp", "num_speculative_tokens": 3, "rejection_sample_method": "block"}'
        )
    assert role["args"] == wanted


@pytest.mark.parametrize("engine", list(Engine))
def test_a_throughput_run_loses_every_other_length(recipe_of: RecipeMaker, book_of: BookMaker, engine: Engine) -> None:
    injected, _ = inject(recipe_of(with_leftovers(engine)), request_for(FRAMEWORK[engine]), book_of(m_mtp=CURVE))
    assert injected.data["environment"] == {"KEEP": "global"}
    role = plain(injected.data)["roles"]["decode"]
    assert role["env"] == {"KEEP": "role"} | GIVEN[engine].get("env", {})
    assert role["args"].items() >= GIVEN[engine].get("args", {}).items()
    left = {one.path[-1] for one in leftovers(view_of(injected))}
    names = {name for values in GIVEN[engine].values() for name in values}
    assert left == ({"rejection_sample_method", "synthetic_acceptance_length"} if engine == "vllm" else names)


def test_an_unknown_framework_is_refused_where_a_length_is_wanted(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(with_leftovers("atom"))
    with pytest.raises(GoldenError, match=r"golden-engine: .*framework atom-disag\b.*did you mean atom-disagg"):
        inject(recipe, request_for("atom-disag"), book_of(m_mtp=CURVE))
    data, _ = given_to(recipe, request_for("atom-disag", eval_only=True), book_of(m_mtp=CURVE))
    assert data["environment"] == {"KEEP": "global"}


@pytest.mark.parametrize("engine", ["sglang", "custom"])
def test_the_framework_and_the_recipe_have_to_mean_one_engine(
    recipe_of: RecipeMaker, book_of: BookMaker, engine: str
) -> None:
    recipe = recipe_of(two_roles(engine, DRAFTS["atom"], DRAFTS["atom"]))
    with pytest.raises(
        GoldenError, match=f"golden-engine: the framework atom is atom, and role decode .* runs {engine}"
    ):
        inject(recipe, request_for("atom"), book_of(m_mtp=CURVE))


def test_the_confidence_scheduler_is_refused_beside_a_length(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    draft = "method: dspark, num-speculative-tokens: 3, dspark-config: {confidence_schedule: true}"
    recipe = recipe_of(two_roles("atom", draft, draft))
    with pytest.raises(GoldenError) as caught:
        inject(recipe, request_for("atom"), book_of(m_mtp=CURVE))
    assert [(one.rule, one.span and one.span.line) for one in caught.value.findings] == [
        ("golden-scheduler", 5),
        ("golden-scheduler", 4),
    ]
    inject(recipe, request_for("atom", eval_only=True), book_of(m_mtp=CURVE))


def test_every_fault_of_every_role_comes_together(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("atom", "method: mtp", 'method: mtp, num-speculative-tokens: "3"'))
    with pytest.raises(GoldenError) as caught:
        inject(recipe, request_for("atom"), book_of(m_mtp=CURVE))
    assert [(one.rule, one.span and one.span.line) for one in caught.value.findings] == [
        ("golden-draft-length", 5),
        ("golden-draft-length", 4),
    ]


def test_a_fault_in_arguments_that_the_roles_share_is_one(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    text = two_roles("atom", "method: mtp", "X").replace("args: {method", "args: &a {method").replace("{X}", "*a")
    with pytest.raises(GoldenError) as caught:
        inject(recipe_of(text), request_for("atom"), book_of(m_mtp=CURVE))
    (finding,) = caught.value.findings
    assert "role decode drafts and does not say how many tokens" in finding.message


def test_a_recipe_that_is_none_is_a_refusal_too(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    with pytest.raises(GoldenError, match="recipe-nodes"):
        inject(recipe_of("schema: 2\nengine: atom\nroles: {agg: {}}"), request_for("atom"), book_of(m_mtp=CURVE))


def test_schema_1_is_given_it_where_its_dialect_has_it(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(
        "resources: {prefill_nodes: 1, decode_nodes: 1}\nbackend:\n  type: sglang\n"
        "  decode_environment: {KEEP: 1, SGLANG_SIMULATE_ACC_LEN: 9}\n"
        f"  sglang_config:\n    prefill: {{tp-size: 8}}\n    decode: {{{DRAFTS['sglang']}}}\n"
    )
    data, record = given_to(recipe, request_for("sglang"), book_of(m_mtp=CURVE))
    assert data["backend"]["decode_environment"] == {"KEEP": 1} | GIVEN["sglang"]["env"]
    assert "prefill_environment" not in data["backend"]
    assert record.changes[0].path == ("backend", "decode_environment", "SGLANG_SIMULATE_ACC_LEN")
    accuracy, _ = given_to(recipe, request_for("sglang", eval_only=True), book_of(m_mtp=CURVE))
    assert accuracy["backend"]["decode_environment"] == {"KEEP": 1}


def test_the_record_says_what_was_done(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("atom", "spec-decode-acceptance-rate: 0.5", DRAFTS["atom"]))
    _, record = inject(recipe, request_for("atom"), book_of(m_mtp=CURVE))
    assert list(map(str, record.changes)) == [
        "roles.prefill.args.spec-decode-acceptance-rate: 0.5 removed",
        "roles.decode.args.spec-decode-acceptance-length: 2.78",
    ]
    assert json.loads(json.dumps(record.as_json())) == {
        "reason": "agentic throughput run",
        "engine": "atom",
        "curve": "m_mtp.yaml",
        "thinking": "thinking_on",
        "draft-tokens": 3,
        "length": "2.78",
        "changes": [
            {"path": "roles.prefill.args.spec-decode-acceptance-rate", "before": 0.5, "after": None},
            {"path": "roles.decode.args.spec-decode-acceptance-length", "before": None, "after": 2.78},
        ],
    }


def test_an_injected_value_points_to_the_draft_length(recipe_of: RecipeMaker, book_of: BookMaker) -> None:
    recipe = recipe_of(two_roles("atom", "", DRAFTS["atom"]))
    injected, _ = inject(recipe, request_for("atom"), book_of(m_mtp=CURVE))
    args = injected.data["roles"]["decode"]["args"]
    assert injected.span(args, "spec-decode-acceptance-length") == recipe.span(args, "num-speculative-tokens")
    assert_marked(injected.data)


def test_a_framework_for_a_recipe_alone(recipe_of: RecipeMaker) -> None:
    assert framework_of(recipe_of(two_roles("trtllm", "", ""))) == "trt"
    with pytest.raises(GoldenError, match="golden-engine"):
        framework_of(recipe_of(two_roles("custom", "", "")))
