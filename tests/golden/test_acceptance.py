"""What a run is given, what is taken out, and that nothing else changes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.source import Map, Seq, loads, plain
from matrix.points.expand import survey
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.recipes.acceptance import AcceptanceRecord, AcceptanceRequest, Reason, framework_of, inject, injector
from matrix.recipes.draft import Engine
from matrix.recipes.forced import leftovers
from matrix.recipes.golden import CurveBook, GoldenError
from matrix.recipes.recipe import Recipe, RecipeBook, parse_reference
from matrix.recipes.roles import view_of
from matrix.workspace import Workspace, open_workspace
from tests.golden.conftest import BookMaker, RecipeMaker

CURVE = """\
identity: {model-prefixes: [m], methods: [mtp, eagle, dspark]}
model: {thinking_on: {1: 1.84, 2: 2.50, 3: 2.78, 6: 3}, thinking_off: {3: 1.5}}
"""
DRAFTS = {
    "vllm": 'speculative-config: \'{"method": "mtp", "num_speculative_tokens": 3}\'',
    "sglang": "speculative-algorithm: EAGLE, speculative-num-steps: 3",
    "trtllm": "speculative_config: {decoding_type: MTP, max_draft_len: 3}",
    "atom": "method: mtp, num-speculative-tokens: 3",
    "tilert": "with-mtp: true, num-mtp: 3",
}
GIVEN: dict[str, dict[str, dict[str, Any]]] = {
    "vllm": {
        "args": {
            "speculative-config": '{"method": "mtp", "num_speculative_tokens": 3,'
            ' "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.78}'
        }
    },
    "sglang": {
        "env": {
            "SGLANG_SIMULATE_ACC_LEN": "2.78",
            "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
            "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token",
        }
    },
    "trtllm": {"env": {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": "1.78"}},
    "atom": {"args": {"spec-decode-acceptance-length": 2.78}},
    "tilert": {"env": {"TILERT_SIMULATE_ACC_LEN": "2.78", "TILERT_SIMULATE_ACC_METHOD": "match-expected"}},
}
FRAMEWORK = {
    "vllm": "vllm-disagg",
    "sglang": "sglang-disagg",
    "trtllm": "trt",
    "atom": "atom-disagg",
    "tilert": "tilert",
}
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


def request_for(framework: str, **more: Any) -> AcceptanceRequest:
    fields: dict[str, Any] = {"model_prefix": "m", "framework": framework, "spec_decoding": "mtp", "agentic": True}
    return AcceptanceRequest(**fields | more)


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


def assert_marked(node: object) -> None:
    if isinstance(node, Map):
        assert node.keys() == node.marks.keys()
        for member in node.values():
            assert_marked(member)
    elif isinstance(node, Seq):
        assert len(node) == len(node.marks)


# -- laws -------------------------------------------------------------------------------------------------------------

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


# -- cases of other people --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "file", "prefix", "framework", "roles"),
    [
        ("C26", "recipe.yaml", "eta", "trt", {"prefill": None, "decode": "1.78"}),
        ("C31", "recipe_atom.yaml", "theta", "atom", {"prefill": "3.01", "decode": "3.01"}),
        ("C31", "recipe_atom.yaml", "theta", "atom-disagg", {"prefill": "3.01", "decode": "3.01"}),
        ("C31", "recipe_asym.yaml", "kappa", "sglang", {"prefill": "2.5", "decode": "2.5"}),
        ("C31", "recipe_prefill_plain.yaml", "kappa", "sglang", {"prefill": None, "decode": "2.99"}),
    ],
)
def test_reported_cases(
    shared: Path, case: str, file: str, prefix: str, framework: str, roles: dict[str, str | None]
) -> None:
    folder = shared / "cases" / case
    recipe = RecipeBook([folder]).resolve(file)
    injected, _ = inject(recipe, request_for(framework, model_prefix=prefix), CurveBook(folder / "golden"))
    found: dict[str, str | None] = dict.fromkeys(roles)
    for left in leftovers(view_of(injected)):
        assert left.role is not None
        if left.path[-1].endswith(("length", "LEN", "TOKENS")):
            found[left.role] = str(left.value)
        assert not left.path[-1].endswith("rate")
    assert found == roles


# -- the shipped search space -----------------------------------------------------------------------------------------

SEED = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"


@pytest.fixture(scope="module")
def workspace(root: Path) -> Workspace:
    return open_workspace(str(root))


def test_the_five_points_of_the_seed_get_3_01_on_both_roles_and_nothing_in_accuracy_runs(
    workspace: Workspace, shipped: CurveBook
) -> None:
    configs = [config for config in workspace.configs if config.key == SEED]
    groups = survey(configs, workspace.facts._replace(inject=injector(shipped))).groups
    assert len(groups) == 5
    for (deployment,) in groups:
        assert deployment.golden == "3.01"
        assert deployment.recipe is not None
        assert deployment.eval_recipe is not None
        lengths = [
            (one.path[1], one.path[-1], str(one.value).rstrip("0")) for one in leftovers(view_of(deployment.recipe))
        ]
        assert lengths == [
            ("prefill", "spec-decode-acceptance-length", "3.01"),
            ("decode", "spec-decode-acceptance-length", "3.01"),
        ]
        assert list(leftovers(view_of(deployment.eval_recipe))) == []


def test_a_changed_value_changes_the_digests_of_the_points_that_use_it_alone(
    workspace: Workspace, shipped: CurveBook, tmp_path: Path
) -> None:
    for curve in shipped.curves:
        text = curve.path.read_text(encoding="utf-8")
        if curve.name == "dsv4-pro-0813-dspark":
            assert "    3: 3.01\n" in text
            text = text.replace("    3: 3.01\n", "    3: 3.02\n").replace("    4: 3.36\n", "    4: 3.30\n")
        (tmp_path / curve.path.name).write_text(text, encoding="utf-8")

    def digests(book: CurveBook) -> dict[str, str]:
        facts = workspace.facts._replace(inject=injector(book))
        points = expand(workspace.configs, facts, workspace.policy, Request()).points
        return {point.id: point.digest for point in points}

    before, after = digests(shipped), digests(CurveBook(tmp_path))
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for name in before if name.startswith(f"{SEED}--")}
    assert len(changed) == 5
