"""What `matrix golden check` and the pre-merge checks say: clean as shipped, and each way to break it told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from matrix.checks.golden import check_golden
from matrix.findings import Finding, errors_of
from matrix.recipes.golden import CurveBook
from matrix.workspace import open_workspace

MASTER = """\
m-fp4-mi355x-atom-disagg:
  image: example/atom:1
  model: org/M
  model-prefix: m
  runner: cluster:a
  precision: fp4
  framework: atom-disagg
  kv-p2p-transfer: mooncake
  multinode: true
  disagg: true
  scenarios:
    agentic-coding:
    - search-space:
      - spec-decoding: draft_model
        conc-list: [1, 4]
        prefill: {num-worker: 1, tp: 8, ep: 1, dp-attn: false, additional-settings: ["CONFIG_FILE=recipes/m.yaml"]}
        decode: {num-worker: 1, tp: 8, ep: 1, dp-attn: false, additional-settings: []}
"""
RUNNERS = """\
labels:
  cluster:a: [a_00, a_01]
hardware:
  cluster:a: {available-cpu-dram-mib: 3_000_000, gpus-per-node: 8}
"""
RECIPE = """\
schema: 2
name: m
engine: atom
environment: {KEEP: "1"}
roles:
  prefill:
    nodes: 1
    args: {method: dspark, num-speculative-tokens: 3}
  decode:
    nodes: 1
    args: {method: dspark, num-speculative-tokens: 3}
    env: {KEEP: "1"}
"""
CURVE = """\
identity: {model-prefixes: [m], methods: [dspark]}
model-m:
  thinking_on: {1: 1.84, 2: 2.51, 3: 3.01}
"""
DECODE = "  decode:\n    nodes: 1\n    args: {method: dspark, num-speculative-tokens: 3}\n"
PREFILL = "  prefill:\n    nodes: 1\n    args: {method: dspark, num-speculative-tokens: 3}\n"

Check = Callable[..., list[Finding]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """The findings of a small repository, after edits: file name -> (old text, new text)."""

    def run(*edits: tuple[str, str, str], **extra: str) -> list[Finding]:
        files = {"master": MASTER, "runners": RUNNERS, "recipes/m": RECIPE, "golden/m": CURVE} | extra
        for name, old, new in edits:
            assert old in files[name]
            files[name] = files[name].replace(old, new)
        for name, text in files.items():
            path = tmp_path / f"{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        workspace = open_workspace(
            str(tmp_path),
            masters=[str(tmp_path / "master.yaml")],
            runners=str(tmp_path / "runners.yaml"),
            recipes=[str(tmp_path / "recipes")],
        )
        return list(check_golden(workspace.configs, workspace.facts, CurveBook(tmp_path / "golden")))

    return run


def placed(finding: Finding) -> str:
    """``file:line`` of a finding and of what it is related to."""
    spans = [finding.span, *(related.span for related in finding.related)]
    return " ".join(f"{Path(span.file).stem}:{span.line}" for span in spans if span is not None)


def test_a_sound_repository_is_clean(check: Check) -> None:
    assert check() == []


def test_the_shipped_search_space_is_clean(root: Path) -> None:
    workspace = open_workspace(str(root))
    assert workspace.settings.golden is not None
    assert list(check_golden(workspace.configs, workspace.facts, CurveBook(workspace.settings.golden))) == []


@pytest.mark.parametrize(
    ("edit", "rule", "place", "says"),
    [
        pytest.param(
            ("golden/m", "3: 3.01", "4: 3.36"),
            "golden-unmeasured",
            "m:11 master:14",
            "it has: 1, 2, 4",
            id="unknown level",
        ),
        pytest.param(
            ("golden/m", "thinking_on", "thinking_off"),
            "golden-unmeasured",
            "m:11 master:14",
            "no values for thinking_on",
            id="thinking mode missing in the curve",
        ),
        pytest.param(
            ("golden/m", "[dspark]", "[mtp]"), "golden-missing", "m:11 master:14", "curves of m: m.yaml", id="no curve"
        ),
        pytest.param(("golden/m", "3.01}", "4.01}"), "golden-range", "m:3", "between 1 and 4", id="impossible value"),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace(", num-speculative-tokens: 3", "")),
            "golden-draft-length",
            "m:11 master:14",
            "does not say how many tokens",
            id="missing draft length",
        ),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace(": 3}", ': "3"}')),
            "golden-draft-length",
            "m:11 master:14",
            '"3", which is text',
            id="numeric string",
        ),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace(": 3}", ": true}")),
            "golden-draft-length",
            "m:11 master:14",
            "a boolean",
            id="boolean",
        ),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace("method: dspark", "num_speculative_tokens: 2, method: dspark")),
            "golden-two-spellings",
            "m:11 master:14",
            "which are one setting",
            id="two spellings",
        ),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace("3}", "3, dspark-config: {confidence_schedule: true}}")),
            "golden-scheduler",
            "m:11 master:14",
            "cuts the verified length at run time",
            id="confidence scheduler",
        ),
        pytest.param(
            (
                "recipes/m",
                DECODE,
                DECODE.replace("3}", "3, spec-decode-acceptance-length: 3.01, spec-decode-acceptance-rate: 0.67}"),
            ),
            "golden-length-and-rate",
            "m:11 master:14",
            "ATOM takes one of the two",
            id="both length and rate",
        ),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace("3}", "3, spec_decode_acceptance_length: 3.77}")),
            "golden-hard-coded",
            "m:11 master:14",
            "3.77); m.yaml says 3.01 for thinking_on and 3 draft tokens",
            id="length in the recipe",
        ),
        pytest.param(
            ("recipes/m", 'environment: {KEEP: "1"}', 'environment: {SGLANG_SIMULATE_ACC_LEN: "2"}'),
            "golden-hard-coded",
            "m:4 master:14",
            "environment.SGLANG_SIMULATE_ACC_LEN: 2",
            id="variable for all roles",
        ),
        pytest.param(
            ("master", "additional-settings: []", 'additional-settings: ["SPEC_DECODE_ACCEPTANCE_LENGTH=3.77"]'),
            "golden-hard-coded",
            "master:17",
            "3.77); m.yaml says 3.01",
            id="length in the master",
        ),
        pytest.param(
            ("master", "additional-settings: []", 'additional-settings: ["THINKING_MODE=thinking_off"]'),
            "golden-unmeasured",
            "m:11 master:14",
            "no values for thinking_off",
            id="asked without thinking",
        ),
        pytest.param(
            ("master", "framework: atom-disagg", "framework: atom-disag"),
            "golden-engine",
            "m: master:14",
            "did you mean atom-disagg",
            id="engine unknown",
        ),
        pytest.param(
            ("recipes/m", "engine: atom", "engine: sglang"),
            "golden-engine",
            "m: master:14",
            "role decode of the recipe runs sglang",
            id="another engine",
        ),
        pytest.param(
            ("recipes/m", DECODE, DECODE.replace("method: dspark, num-speculative-tokens: 3", "tp: 8")),
            "golden-no-draft",
            "m: master:14",
            "role decode does not draft",
            id="decode without speculation",
        ),
        pytest.param(
            ("recipes/m", PREFILL, "  prefill: {args: {}}\n"),
            "recipe-nodes",
            "m:6 master:16",
            "",
            id="a recipe that is none",
        ),
        pytest.param(
            ("master", "recipes/m.yaml", "recipes/n.yaml"), "recipe-missing", "master:16", "n.yaml", id="recipe missing"
        ),
        pytest.param(
            ("recipes/m", PREFILL, PREFILL.replace("tokens: 3", "tokens: 1")),
            "golden-roles",
            "m:8 master:14",
            "ATOM refuses more than 2 for 1 draft tokens",
            id="a prefill that cannot reach the length",
        ),
    ],
)
def test_each_way_to_break_it_is_told_once(
    check: Check, edit: tuple[str, str, str], rule: str, place: str, says: str
) -> None:
    found = check(edit)
    matching = [finding for finding in found if finding.rule == rule]
    assert len(matching) == 1, found
    assert errors_of(matching)
    where = placed(matching[0]).replace(":0", ":")
    assert where == place
    assert says in str(matching[0])


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (PREFILL.replace("tokens: 3", "tokens: 5"), "decode decides, and both are given 3.01"),
        (PREFILL.replace("tokens: 3", "tokens: 4"), "role prefill drafts 4 tokens with dspark, decode 3"),
        (PREFILL.replace("dspark", "mtp"), "role prefill drafts 3 tokens with mtp"),
        (PREFILL.replace("method: dspark, num-speculative-tokens: 3", "tp: 8"), "role prefill does not draft"),
    ],
)
def test_roles_that_differ_are_a_warning(check: Check, new: str, says: str) -> None:
    (finding,) = check(("recipes/m", PREFILL, new))
    assert finding.rule == "golden-roles"
    assert not errors_of([finding])
    assert says in finding.message


def test_roles_that_say_two_thinking_modes_are_refused(check: Check) -> None:
    found = check(
        ("master", "additional-settings: []", 'additional-settings: ["THINKING_MODE=thinking_on"]'),
        ("master", '"CONFIG_FILE', '"THINKING_MODE=thinking_off", "CONFIG_FILE'),
    )
    assert [(finding.rule, placed(finding)) for finding in found] == [("golden-thinking", "master:14")]


def test_a_fixed_length_entry_needs_no_curve_but_may_force_nothing(check: Check) -> None:
    fixed = (
        (
            "master",
            "agentic-coding:\n    - search-space",
            "fixed-seq-len:\n    - isl: 8\n      osl: 8\n      search-space",
        ),
        ("golden/m", "[dspark]", "[mtp]"),
    )
    assert check(*fixed) == []
    forced = ("recipes/m", 'env: {KEEP: "1"}', 'env: {TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS: "2"}')
    (finding,) = check(*fixed, forced)
    assert (finding.rule, placed(finding)) == ("golden-hard-coded", "m:12 master:16")
    assert "given at launch, from the golden curve, to agentic throughput runs alone" in finding.message


def test_one_cause_is_told_once_however_many_entries_lead_to_it(check: Check) -> None:
    entry = MASTER[MASTER.index("      - spec-decoding") :]
    forced = ("recipes/m", DECODE, DECODE.replace("3}", "3, spec-decode-acceptance-length: 3.77}"))
    assert [finding.rule for finding in check(forced, master=MASTER + entry)] == ["golden-hard-coded"]


def test_entries_that_name_no_recipe_are_counted(check: Check) -> None:
    (finding,) = check(("master", '"CONFIG_FILE=recipes/m.yaml"', ""))
    assert (finding.rule, placed(finding)) == ("golden-unread", "master:1")
    assert "1 speculative entry names no recipe" in finding.message
    assert not errors_of([finding])


def test_all_faults_come_together(check: Check) -> None:
    found = check(
        ("golden/m", "1: 1.84", "1: 9"),
        ("recipes/m", DECODE, DECODE.replace("3}", '"3", spec-decode-acceptance-length: 3.77}')),
        ("master", "additional-settings: []", 'additional-settings: ["SYNTHETIC_ACCEPTANCE=true"]'),
    )
    assert sorted(finding.rule for finding in found) == [
        "golden-draft-length",
        "golden-hard-coded",
        "golden-hard-coded",
        "golden-range",
    ]


def test_a_length_typed_by_hand_is_set_against_the_curve(shared: Path) -> None:
    folder = shared / "cases" / "C29"
    workspace = open_workspace(
        str(folder),
        masters=[str(folder / "X.yaml")],
        runners=str(folder / "R.yaml"),
        recipes=[str(folder / "recipes")],
    )
    found = list(check_golden(workspace.configs, workspace.facts, CurveBook(folder / "golden")))
    (refused,) = errors_of(found)
    assert (refused.rule, placed(refused)) == ("golden-hard-coded", "X:18")
    for said in ("SYNTHETIC_ACCEPTANCE=true", "3.77", "theta_mtp.yaml says 2.49 for thinking_on and 3 draft tokens"):
        assert said in refused.message


def test_settings_that_the_roles_share_are_one_cause(check: Check) -> None:
    shared_args = RECIPE.replace(
        "args: {method: dspark, num-speculative-tokens: 3}\n  decode",
        "args: &args {method: dspark, num-speculative-tokens: 3, spec-decode-acceptance-length: 3.01}\n  decode",
    ).replace("args: {method: dspark, num-speculative-tokens: 3}\n    env", "args: *args\n    env")
    found = check(**{"recipes/m": shared_args})
    assert [(finding.rule, placed(finding)) for finding in found] == [("golden-hard-coded", "m:8 master:14")]


@pytest.mark.parametrize("home", ["environment", "benchmark", "role"])
def test_a_launcher_s_variable_is_told_wherever_it_stands(check: Check, home: str) -> None:
    variable = 'SYNTHETIC_ACCEPTANCE_LENGTH: "3.77"'
    edit = {
        "environment": ("recipes/m", 'environment: {KEEP: "1"}', f"environment: {{{variable}}}"),
        "benchmark": ("recipes/m", "name: m\n", f"name: m\nbenchmark: {{env: {{{variable}}}}}\n"),
        "role": ("recipes/m", '    env: {KEEP: "1"}', f"    env: {{{variable}}}"),
    }[home]
    (finding,) = check(edit)
    assert finding.rule == "golden-hard-coded"
    assert "SYNTHETIC_ACCEPTANCE_LENGTH: 3.77); m.yaml says 3.01" in finding.message
