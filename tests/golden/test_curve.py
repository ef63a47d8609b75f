"""Curve files: the shipped ones, the schema, and every way to write one wrong."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from matrix.checks.golden import check_curves
from matrix.config.source import load, plain
from matrix.recipes.curve import read_curve, short_text
from matrix.recipes.golden import CurveBook

# The published tables, by file, model and mode: lengths for 1 to 8 draft tokens.
VALUES = """
dsv4-pro-0813-dspark deepseek-v4-pro-0813    on  1.84 2.51 3.01 3.36 3.61 3.77 3.73 3.47
dsv4_mtp             deepseek-v4-pro         on  1.79 2.27 2.49 2.54 2.55 2.55 2.54 2.58
dsv4_mtp             deepseek-v4-pro         off 1.92 2.61 2.97 3.00 3.10 3.16 3.00 3.11
glm5.2_mtp           glm-5.2-fp8             on  1.84 2.50 2.99 3.33 3.61 3.78 3.91 4.06
kimik2.5_eagle3      kimi-k2.5-nvfp4         on  1.83 2.43 2.88 3.24 3.46 3.62 3.71 3.77
kimik2.5_eagle3      kimi-k2.5-nvfp4         off 1.80 2.33 2.75 3.06 3.25 3.43 3.46 3.51
kimik3_dspark        kimi-k3                 on  1.84 2.45 2.87 3.22 3.44 3.54 3.78 3.88
kimik3_dspark_probabilistic_sample_method_block_rejection_sample_method kimi-k3 on 1.85 2.51 3.00 3.36 3.62 3.75 3.84 4.00
minimaxm3_eagle3     minimax-m3              on  1.78 2.38 2.83 3.11 3.35 3.45 3.53 3.74
minimaxm3_eagle3     minimax-m3              off 1.84 2.52 2.93 3.41 3.59 3.57 3.85 4.06
minimaxm3_eagle3_gqa minimax-m3              on  1.79 2.39 2.78 3.02 3.21 3.30 3.52 3.51
minimaxm3_eagle3_gqa minimax-m3              off 1.83 2.46 2.97 3.29 3.72 3.76 3.75 3.93
qwen3.5_mtp          qwen3.5-397b-a17b-nvfp4 on  1.93 2.73 3.39 3.97 4.41 4.80 5.04 5.21
qwen3.5_mtp          qwen3.5-397b-a17b-nvfp4 off 1.92 2.70 3.33 3.83 4.20 4.48 4.73 4.71
"""  # noqa: E501

GOOD = "identity: {model-prefixes: [m], methods: [mtp]}\nmodel-a: {thinking_on: {1: 1.5, 3: 2}}\n"


def test_the_shipped_curves_hold_the_published_values(shipped: CurveBook) -> None:
    published: dict[tuple[str, str, str], list[Decimal]] = {}
    for line in VALUES.strip().splitlines():
        name, model, mode, *values = line.split()
        published[name, model, f"thinking_{mode}"] = [Decimal(value) for value in values]
    ours = {
        (curve.name, curve.model, mode): list(cells.values())
        for curve in shipped.curves
        for mode, cells in curve.modes.items()
    }
    assert ours == published
    assert all(list(cells) == list(range(1, 9)) for curve in shipped.curves for cells in curve.modes.values())


def test_the_shipped_curves_equal_the_reference_files(shipped: CurveBook, shared: Path) -> None:
    names = {path.name for path in (shared / "parity" / "golden").glob("*.yaml")}
    assert {curve.path.name for curve in shipped.curves} == names
    for curve in shipped.curves:
        ours = plain(load(curve.path, integer_keys=True).root)
        del ours["identity"]
        assert ours == plain(load(shared / "parity" / "golden" / curve.path.name, integer_keys=True).root)


def test_the_shipped_curves_are_clean_and_say_where_they_come_from(shipped: CurveBook) -> None:
    assert list(check_curves(shipped)) == []
    for curve in shipped.curves:
        head = curve.path.read_text(encoding="utf-8").partition("identity:")[0]
        assert head.startswith("# yaml-language-server: $schema=../../matrix/schemas/golden.json\n")
        for said in ("Source run: https://", "Dataset: ", "Sampling: "):
            assert said in head, curve.name


def levels(text: str) -> str:
    return f"m: {{thinking_on: {text}}}\n"


def identity(text: str) -> str:
    return f"identity: {text}\nm: {{thinking_on: {{1: 1.5}}}}\n"


@pytest.mark.parametrize(
    ("text", "rule", "place", "says"),
    [
        ("", "yaml-empty", "1:1", "empty"),
        ("- 1\n", "golden-model", "", "a curve is a mapping"),
        (levels("{1: 1.5}") + "n: {thinking_on: {1: 1.5}}\n", "golden-model", "1:1", "2 model keys (m, n)"),
        ("identity: {model-prefixes: [m], methods: [mtp]}\n", "golden-model", "1:1", "no model key"),
        ("m: 3\n", "golden-model", "1:4", "m is 3"),
        ("m: {}\n", "golden-model", "1:4", "mapping of thinking modes"),
        ("3: {thinking_on: {1: 1.5}}\n", "golden-model", "1:1", "the model 3, which is no name"),
        ("m: {thinking: {1: 1.5}}\n", "golden-thinking", "1:5", "did you mean thinking_on"),
        (levels("[1.5]"), "golden-level", "1:18", "thinking_on is a list"),
        (levels("{}"), "golden-level", "1:18", "mapping of draft lengths"),
        (levels('{"3": 1.5}'), "golden-level", "1:19", 'the draft length "3"'),
        (levels("{0: 1.5}"), "golden-level", "1:19", "the draft length 0"),
        (levels("{-1: 1.5}"), "golden-level", "1:19", "the draft length -1"),
        (levels("{three: 1.5}"), "golden-level", "1:19", "the draft length three"),
        (levels("{1.5: 1.5}"), "yaml-key", "1:19", "1.5"),
        (levels("{true: 1.5}"), "yaml-key", "1:19", "true"),
        (levels("{1: 1.5, 1: 1.6}"), "yaml-duplicate-key", "1:27", "set twice"),
        (levels('{1: "1.5"}'), "golden-value", "1:22", 'thinking_on/1 is "1.5"'),
        (levels("{1: true}"), "golden-value", "1:22", "thinking_on/1 is true"),
        (levels("{1: }"), "golden-value", "1:22", "thinking_on/1 is nothing"),
        (levels("{1: [1.5]}"), "golden-value", "1:22", "a list"),
        (levels("{1: .nan}"), "yaml-number", "1:22", ".nan"),
        (levels("{1: .inf}"), "yaml-number", "1:22", ".inf"),
        (levels("{1: 1.0e+999}"), "golden-range", "1:22", "1.0e+999"),
        (levels("{3: 0.99}"), "golden-range", "1:22", "between 1 and 4"),
        (levels("{3: 4.01}"), "golden-range", "1:22", "between 1 and 4"),
        (identity("m"), "golden-identity", "1:11", "identity is m"),
        (identity("{methods: [mtp]}"), "golden-identity", "1:11", "model-prefixes of the identity is missing"),
        (identity("{model-prefixes: [m], methods: mtp}"), "golden-identity", "1:42", "methods of the identity is mtp"),
        (identity("{model-prefixes: [], methods: [mtp]}"), "golden-identity", "1:28", "model-prefixes"),
        (identity("{model-prefixes: [m, M x], methods: [mtp]}"), "golden-identity", "1:32", "M x"),
        (identity("{model-prefixes: [m], methods: [mtp, mtp]}"), "golden-identity", "1:48", "mtp twice"),
        (identity("{model-prefixes: [m], methods: [MTP]}"), "golden-identity", "1:43", "MTP"),
        (identity("{model-prefixes: [m], methods: [mtp], draft-model: '('}"), "golden-identity", "1:62", "expression"),
        (identity("{model-prefixes: [m], methods: [mtp], draft-model: ''}"), "golden-identity", "1:62", "draft-model"),
        (
            identity("{model-prefixes: [m], methods: [mtp], draft-sampling: greed}"),
            "golden-identity",
            "1:65",
            "greedy?",
        ),
        (identity("{model-prefixes: [m], method: [x], methods: [mtp]}"), "golden-identity", "1:33", "mean methods?"),
    ],
)
def test_a_wrong_curve_is_told_at_its_line(tmp_path: Path, text: str, rule: str, place: str, says: str) -> None:
    path = tmp_path / "x_mtp.yaml"
    path.write_text(text, encoding="utf-8")
    (finding,) = read_curve(path).faults
    assert (finding.rule, str(finding.span)) == (rule, f"{path}:{place}" if place else str(path))
    assert says in str(finding)
    # The checker says what the reader says.
    assert finding in list(check_curves(CurveBook(tmp_path)))


def test_all_faults_of_a_file_come_together(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        'identity: {model-prefixes: [M], methods: []}\nm: {thinking_on: {"1": 1.5, 2: 9}, loud: {}}\n', encoding="utf-8"
    )
    rules = [finding.rule for finding in read_curve(path).faults]
    assert rules == ["golden-identity", "golden-identity", "golden-level", "golden-range", "golden-thinking"]


def test_a_falling_tail_and_gaps_are_legal(tmp_path: Path) -> None:
    path = tmp_path / "x_mtp.yaml"
    path.write_text("m: {thinking_off: {1: 1, 2: 3, 6: 2.5, 9: 1.25}}\n", encoding="utf-8")
    curve = read_curve(path)
    assert curve.faults == ()
    assert curve.modes == {"thinking_off": {1: Decimal(1), 2: Decimal(3), 6: Decimal("2.5"), 9: Decimal("1.25")}}


def test_folders_are_checked_too(tmp_path: Path) -> None:
    missing = list(check_curves(CurveBook(tmp_path / "none")))
    assert [finding.rule for finding in missing] == ["golden-folder"]
    (tmp_path / "m_mtp.yml").write_text(GOOD, encoding="utf-8")
    messages = [finding.message for finding in check_curves(CurveBook(tmp_path))]
    assert messages == ["the folder holds no golden curve (*.yaml).", "this file is not read: a curve ends in .yaml."]


def test_two_curves_for_the_same_runs_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(GOOD.replace("[m]", "[n, m]"), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(GOOD.replace("[mtp]", "[mtp], draft-sampling: greedy"), encoding="utf-8")
    (finding,) = check_curves(CurveBook(tmp_path))
    assert finding.rule == "golden-ambiguous"
    assert "b.yaml and a.yaml are both for m mtp" in finding.message
    assert str(finding.related[0].span) == str(tmp_path / "a.yaml")


BAD_FOR_THE_SCHEMA = [
    levels("{1: 1.5}") + "n: {thinking_on: {1: 1.5}}\n",
    "identity: {model-prefixes: [m], methods: [mtp]}\n",
    "m: 3\n",
    "m: {}\n",
    "m: {thinking: {1: 1.5}}\n",
    levels("{}"),
    levels("{0: 1.5}"),
    levels('{1: "1.5"}'),
    levels("{1: true}"),
    levels("{3: 0.99}"),
    identity("{methods: [mtp]}"),
    identity("{model-prefixes: [m], methods: mtp}"),
    identity("{model-prefixes: [m], methods: [MTP]}"),
    identity("{model-prefixes: [m], methods: [mtp, mtp]}"),
    identity("{model-prefixes: [m], methods: [mtp], draft-sampling: greed}"),
    identity("{model-prefixes: [m], methods: [mtp], draft-model: ''}"),
    identity("{model-prefixes: [m], methods: [mtp], more: 1}"),
]


@pytest.mark.parametrize(
    ("text", "good"), [(GOOD, True), (GOOD.splitlines()[1], True), *((text, False) for text in BAD_FOR_THE_SCHEMA)]
)
def test_the_schema_for_editors_gives_the_reader_s_verdict(tmp_path: Path, text: str, good: bool) -> None:
    path = tmp_path / "x_mtp.yaml"
    path.write_text(text, encoding="utf-8")
    as_json = plain(_with_text_keys(load(path, integer_keys=True).root))
    assert Draft202012Validator(load_schema_of_curves()).is_valid(as_json) is good
    assert (read_curve(path).faults == ()) is good


def test_the_schema_accepts_the_shipped_curves(shipped: CurveBook) -> None:
    schema = load_schema_of_curves()
    Draft202012Validator.check_schema(schema)
    for curve in shipped.curves:
        Draft202012Validator(schema).validate(plain(_with_text_keys(load(curve.path, integer_keys=True).root)))


def load_schema_of_curves() -> dict[str, object]:
    import json
    from importlib.resources import files

    schema: dict[str, object] = json.loads(files("matrix").joinpath("schemas/golden.json").read_text(encoding="utf-8"))
    return schema


def _with_text_keys(value: object) -> object:
    """As an editor's JSON sees it: every key is text."""
    return {str(key): _with_text_keys(member) for key, member in value.items()} if isinstance(value, dict) else value


@given(st.decimals(min_value=1, max_value=100, places=6, allow_nan=False))
def test_the_shortest_text_is_exact(value: Decimal) -> None:
    text = short_text(value)
    assert Decimal(text) == value
    assert not ("." in text and text.endswith(("0", ".")))
    assert Decimal(short_text(value - 1)) + 1 == value
