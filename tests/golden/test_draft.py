"""What a role says about its draft, engine by engine."""

import json

import pytest

from matrix.recipes.draft import FRAMEWORKS, Draft, Engine, read_draft
from matrix.recipes.golden import GoldenError
from matrix.recipes.recipe import Recipe
from matrix.recipes.roles import view_of
from tests.golden.conftest import RecipeMaker

HEAD = "schema: 2\nengine: x\nroles:\n  decode:\n    nodes: 1\n    args: "


def draft_of(recipe: Recipe, engine: str, spec_decoding: str = "mtp") -> Draft | None:
    return read_draft(recipe, view_of(recipe).roles["decode"], Engine(engine), spec_decoding)


def vllm(**spec: object) -> str:
    return f"{{speculative-config: '{json.dumps(spec)}'}}"


@pytest.mark.parametrize(
    ("engine", "args", "said"),
    [
        ("vllm", vllm(method="mtp", num_speculative_tokens=3), ("mtp", 3, None, None)),
        ("vllm", vllm(method="EAGLE3", num_speculative_tokens=2, model="o/d"), ("eagle3", 2, "o/d", None)),
        (
            "vllm",
            vllm(method="dspark", num_speculative_tokens=7, draft_sample_method="greedy"),
            ("dspark", 7, None, "greedy"),
        ),
        ("vllm", "{speculative_config: {method: mtp, num_speculative_tokens: 1}}", ("mtp", 1, None, None)),
        ("sglang", "{speculative-algorithm: EAGLE, speculative-num-steps: 3}", ("eagle", 3, None, None)),
        ("sglang", "{speculative-algo: NEXTN, speculative-num-steps: 2}", ("nextn", 2, None, None)),
        (
            "sglang",
            "{speculative-algo: eagle, speculative-algorithm: EAGLE, speculative-num-steps: 2}",
            ("eagle", 2, None, None),
        ),
        (
            "sglang",
            "{speculative-algorithm: EAGLE3, speculative-num-steps: 2, speculative-draft-model-path: o/d}",
            ("eagle3", 2, "o/d", None),
        ),
        (
            "sglang",
            "{speculative-algorithm: DSpark, speculative-dspark-block-size: 5, speculative-num-steps: 1}",
            ("dspark", 5, None, None),
        ),
        ("trtllm", "{speculative_config: {decoding_type: MTP, max_draft_len: 3}}", ("mtp", 3, None, None)),
        (
            "trtllm",
            "{speculative_config: {decoding_type: Eagle, max_draft_len: 3, speculative_model: o/d}}",
            ("eagle", 3, "o/d", None),
        ),
        ("atom", "{method: mtp, num-speculative-tokens: 3}", ("mtp", 3, None, None)),
        ("atom", "{method: eagle3, num-speculative-tokens: 2, draft-model: o/d}", ("eagle3", 2, "o/d", None)),
        ("atom", "{method: DSpark, num_speculative_tokens: 3}", ("dspark", 3, None, "probabilistic")),
        ("tilert", "{with-mtp: true, num-mtp: 3}", ("mtp", 3, None, None)),
    ],
)
def test_a_draft_is_read_as_its_engine_reads_it(
    recipe_of: RecipeMaker, engine: str, args: str, said: tuple[str, int, str | None, str | None]
) -> None:
    draft = draft_of(recipe_of(HEAD + args), engine)
    assert draft is not None
    assert (draft.method, draft.tokens, draft.model, draft.sampling) == said
    assert draft.span.line == 6


@pytest.mark.parametrize(
    ("engine", "args"),
    [
        ("vllm", "{}"),
        ("sglang", "{speculative-eagle-topk: 1}"),
        ("trtllm", "{}"),
        ("atom", "{draft-model: o/d}"),
        ("tilert", "{num-mtp: 3}"),
        ("tilert", "{with-mtp: false, num-mtp: 3}"),
    ],
)
def test_a_role_without_the_switch_does_not_draft(recipe_of: RecipeMaker, engine: str, args: str) -> None:
    assert draft_of(recipe_of(HEAD + args), engine) is None


@pytest.mark.parametrize(
    ("args", "spec_decoding", "method"),
    [
        ("{speculative-num-steps: 3}", "mtp", "mtp"),
        ("{speculative-dspark-block-size: 3}", "draft_model", "dspark"),
        # What is given does not fit what the row says, or the row names no method: a guess would pick a curve.
        ("{speculative-num-steps: 3}", "draft_model", None),
        ("{speculative-dspark-block-size: 3}", "mtp", None),
        ("{speculative-num-steps: 3, speculative-dspark-block-size: 3}", "mtp", None),
        ("{speculative-num-steps: 3, speculative-dspark-block-size: 3}", "draft_model", None),
    ],
)
def test_without_an_algorithm_the_row_says_the_method(
    recipe_of: RecipeMaker, args: str, spec_decoding: str, method: str | None
) -> None:
    recipe = recipe_of(HEAD + args)
    if method is not None:
        draft = draft_of(recipe, "sglang", spec_decoding)
        assert draft is not None
        assert draft.method == method
        return
    with pytest.raises(GoldenError, match=r"golden-method.*add speculative-algorithm"):
        draft_of(recipe, "sglang", spec_decoding)


LENGTH = {
    "vllm": "{{speculative-config: {{method: mtp, num_speculative_tokens: {}}}}}",
    "sglang": "{{speculative-algorithm: EAGLE, speculative-num-steps: {}}}",
    "trtllm": "{{speculative_config: {{decoding_type: MTP, max_draft_len: {}}}}}",
    "atom": "{{method: mtp, num-speculative-tokens: {}}}",
    "tilert": "{{with-mtp: true, num-mtp: {}}}",
}


@pytest.mark.parametrize("engine", list(Engine))
@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "does not say how many tokens"),
        ('"3"', '"3", which is text'),
        ("true", "true, which is a boolean"),
        ("3.0", "not a whole number"),
        ("0", "not a whole number of 1 or more"),
        ("-1", "not a whole number of 1 or more"),
        ("[3]", "not a whole number"),
    ],
)
def test_a_length_that_counts_nothing_is_refused(recipe_of: RecipeMaker, engine: str, written: str, says: str) -> None:
    with pytest.raises(GoldenError) as caught:
        draft_of(recipe_of(HEAD + LENGTH[engine].format(written)), engine)
    (finding,) = caught.value.findings
    assert finding.rule == "golden-draft-length"
    assert says in finding.message
    assert finding.span is not None
    assert finding.span.line == 6


@pytest.mark.parametrize(
    ("engine", "args", "rule"),
    [
        ("vllm", "{speculative-config: '[]'}", "golden-draft-json"),
        ("vllm", "{speculative-config: '{'}", "golden-draft-json"),
        ("vllm", "{speculative-config: 3}", "golden-draft-json"),
        ("vllm", vllm(num_speculative_tokens=3), "golden-method"),
        ("vllm", vllm(method="", num_speculative_tokens=3), "golden-method"),
        ("vllm", vllm(method=3, num_speculative_tokens=3), "golden-method"),
        ("vllm", vllm(method="mtp", num_speculative_tokens=3, model=7), "golden-method"),
        ("sglang", "{speculative-algorithm: 3, speculative-num-steps: 3}", "golden-method"),
        ("sglang", "{speculative-algorithm: X, speculative-algo: Y, speculative-num-steps: 3}", "golden-two-spellings"),
        ("trtllm", "{speculative_config: {max_draft_len: 3}}", "golden-method"),
        ("atom", "{num-speculative-tokens: 3}", "golden-method"),
        ("atom", "{method: mtp, num-speculative-tokens: 3, num_speculative_tokens: 2}", "golden-two-spellings"),
        ("tilert", '{with-mtp: "true", num-mtp: 3}', "golden-method"),
    ],
)  # fmt: skip
def test_half_a_setting_is_refused(recipe_of: RecipeMaker, engine: str, args: str, rule: str) -> None:
    with pytest.raises(GoldenError) as caught:
        draft_of(recipe_of(HEAD + args), engine)
    assert [finding.rule for finding in caught.value.findings] == [rule]


def test_all_that_is_unclear_comes_together(recipe_of: RecipeMaker) -> None:
    with pytest.raises(GoldenError) as caught:
        draft_of(recipe_of(HEAD + vllm(model=7)), "vllm")
    assert sorted(finding.rule for finding in caught.value.findings) == [
        "golden-draft-length",
        "golden-method",
        "golden-method",
    ]


@pytest.mark.parametrize(
    ("config", "scheduled"),
    [
        ("'{\"confidence_schedule\": true}'", True),
        ("{confidence_schedule: true}", True),
        ('\'{"confidence_schedule": false, "ragged": true}\'', False),
        ("'not json'", False),
    ],
)
def test_the_confidence_scheduler_is_seen(recipe_of: RecipeMaker, config: str, scheduled: bool) -> None:
    args = f"{{method: dspark, num-speculative-tokens: 3, dspark-config: {config}}}"
    draft = draft_of(recipe_of(HEAD + args), "atom")
    assert draft is not None
    assert (draft.scheduled is not None) is scheduled


def test_the_frameworks_that_are_known() -> None:
    assert {name for name, engine in FRAMEWORKS.items() if engine is Engine.ATOM} == {"atom", "atom-disagg"}
    assert set(FRAMEWORKS.values()) == set(Engine)
