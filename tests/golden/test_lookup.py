"""Which curve, which value: identities, names, and what the reference implementation answers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from matrix.config.source import loads
from matrix.recipes.acceptance import AcceptanceRequest, inject
from matrix.recipes.golden import CurveBook, GoldenError, LookUp
from matrix.recipes.recipe import Recipe, parse_reference
from tests.golden.conftest import BookMaker

MTP = (
    "identity: {model-prefixes: [m], methods: [mtp]}\nmodel: {thinking_on: {1: 1.5, 3: 2.10}, thinking_off: {1: 1.6}}\n"
)


def look_up(book: CurveBook, method: str = "mtp", tokens: int = 3, **more: Any) -> str:
    fields: dict[str, Any] = {"model_prefix": "m", "method": method, "tokens": tokens}
    return book.look_up(LookUp(**fields | more)).text


def refusal(book: CurveBook, method: str = "mtp", tokens: int = 3, **more: Any) -> str:
    with pytest.raises(GoldenError) as caught:
        look_up(book, method, tokens, **more)
    (finding,) = caught.value.findings
    return str(finding)


def test_the_value_of_the_seed(shipped: CurveBook) -> None:
    found = shipped.look_up(LookUp(model_prefix="dsv4", method="dspark", tokens=3))
    assert (found.text, found.curve.name, found.thinking) == ("3.01", "dsv4-pro-0813-dspark", "thinking_on")
    line = found.curve.path.read_text(encoding="utf-8").splitlines()[found.span.line - 1]
    assert line.strip() == "3: 3.01"


def test_a_look_up_is_exact(book_of: BookMaker) -> None:
    book = book_of(m_mtp=MTP)
    assert look_up(book) == "2.1"
    assert look_up(book, "MTP", 1, thinking="thinking_off") == "1.6"
    assert "no value for thinking_on with 2 draft tokens, and none is interpolated. fix: it has: 1, 3" in refusal(
        book, tokens=2
    )
    assert "no value for thinking_on with 4 draft tokens" in refusal(book, tokens=4)
    assert "no values for thinking_deep. fix: it has: thinking_on, thinking_off" in refusal(
        book, thinking="thinking_deep"
    )
    assert "golden-request" in refusal(book, tokens=0)
    assert "golden-request" in refusal(book, tokens=True)  # True is 1 to a mapping


@pytest.mark.parametrize(("prefix", "method"), [("M x", "mtp"), ("", "mtp"), ("m", ""), ("m", "../mtp"), ("m", "a b")])
def test_a_name_that_no_curve_can_have_is_refused(book_of: BookMaker, prefix: str, method: str) -> None:
    assert "golden-request" in refusal(book_of(m_mtp=MTP), method, model_prefix=prefix)


def test_what_is_there_is_named(book_of: BookMaker) -> None:
    book = book_of(m_mtp=MTP, other=MTP.replace("[m]", "[dsv4]"))
    assert "did you mean dsv4?" in refusal(book, model_prefix="dsv44")
    assert "curves of m: m_mtp.yaml (m mtp)" in refusal(book, "eagle3")


def test_the_narrower_match_wins(book_of: BookMaker) -> None:
    narrow = MTP.replace("[mtp]", '[mtp], draft-model: "(?i)gqa"').replace("2.10", "2.2")
    narrowest = narrow.replace("draft-model", "draft-sampling: greedy, draft-model").replace("2.2", "2.3")
    book = book_of(wide=MTP, narrow=narrow, narrowest=narrowest)
    assert look_up(book, draft_model="Org/X", draft_sampling="greedy") == "2.1"
    assert look_up(book, draft_model="Org/X-GQA", draft_sampling="probabilistic") == "2.2"
    assert look_up(book, draft_model="Org/X-GQA", draft_sampling="greedy") == "2.3"


def test_equal_matches_are_refused_and_named(book_of: BookMaker) -> None:
    by_model = MTP.replace("[mtp]", "[mtp], draft-model: x")
    by_sampling = MTP.replace("[mtp]", "[mtp], draft-sampling: greedy")
    said = refusal(book_of(a=by_model, b=by_sampling), draft_model="x", draft_sampling="greedy")
    assert "golden-ambiguous" in said
    assert "a.yaml" in said
    assert "b.yaml" in said
    assert "golden-ambiguous" in refusal(book_of(a=MTP, b=MTP))


def test_what_decides_has_to_be_said(book_of: BookMaker) -> None:
    narrow = MTP.replace("[mtp]", "[mtp], draft-model: gqa, draft-sampling: greedy").replace("2.10", "2.2")
    book = book_of(wide=MTP, narrow=narrow)
    said = refusal(book)
    assert "golden-condition" in said
    assert "does not say its draft model and draft sampling" in said
    assert "wide.yaml" in said
    assert "narrow.yaml" in said
    assert "does not say its draft model," in refusal(book, draft_sampling="greedy")
    # The sampling rules the narrow curve out, so its other condition decides nothing any more.
    assert look_up(book, draft_sampling="probabilistic") == "2.1"


def test_a_sampling_that_no_curve_has_is_refused(shipped: CurveBook) -> None:
    said = refusal(shipped, "dspark", model_prefix="kimik3", draft_sampling="top-k")
    assert "golden-missing" in said
    assert "greedy draft" in said


def test_a_file_that_cannot_be_read_refuses_every_look_up(book_of: BookMaker) -> None:
    # It might be the one that is asked for.
    with pytest.raises(GoldenError) as caught:
        look_up(book_of(m_mtp=MTP, broken="identity: {methods: [x]}\nn: {thinking_on: {1: 1.5}}\n"))
    assert [finding.rule for finding in caught.value.findings] == ["golden-identity"]


def test_a_wrong_cell_refuses_its_own_look_up_alone(book_of: BookMaker) -> None:
    book = book_of(m_mtp=MTP.replace("1: 1.5", "1: 9.5"))
    assert look_up(book) == "2.1"
    assert "golden-range" in refusal(book, tokens=1)


def test_curves_are_read_once(book_of: BookMaker, tmp_path: Path) -> None:
    book = book_of(m_mtp=MTP)
    assert look_up(book) == "2.1"
    (tmp_path / "golden" / "m_mtp.yaml").unlink()
    assert look_up(book) == "2.1"


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    assert "golden-folder" in refusal(CurveBook(tmp_path / "none"))


def test_names_and_identities_share_a_folder(book_of: BookMaker) -> None:
    named = "model: {thinking_on: {3: 2.7}}\n"
    book = book_of(m_eagle3=named, m_mtp=MTP, dsv4__pro__0813__dspark=named)
    assert look_up(book, "eagle3") == "2.7"
    assert look_up(book, "dspark", model_prefix="dsv4") == "2.7"
    # A name stands for eagle and nextn as well, an identity for what it lists.
    assert "golden-missing" in refusal(book, "nextn")
    assert look_up(book_of(k_mtp=named), "nextn", model_prefix="k") == "2.7"


# -- the reference implementation's answers ---------------------------------------------------------------------------


def replay(book: CurveBook, cases: list[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    """What we answer otherwise, counted by model prefix, what we say, and what the reference says.

    Each case is asked as a run would ask it, as the speculative-config of a vLLM recipe.
    """
    differences: Counter[tuple[str, str, str]] = Counter()
    for case in cases:
        spec = json.dumps(json.dumps(case["spec"]))
        text = f"schema: 2\nengine: vllm\nroles: {{agg: {{nodes: 1, args: {{speculative-config: {spec}}}}}}}\n"
        document = loads(text.encode(), "r.yaml")
        recipe = Recipe(parse_reference("r.yaml"), document.root, document, Path("r.yaml"))
        request = AcceptanceRequest(
            model_prefix=case["model"], framework="vllm", spec_decoding="mtp", agentic=True, thinking=case["thinking"]
        )
        try:
            _, record = inject(recipe, request, book)
            ours = str(record.length)
        except GoldenError as error:
            ours = error.findings[0].rule
        theirs = f"{case['result']:g}" if "result" in case else "refused"
        if ours != theirs and not (theirs == "refused" and ours.startswith("golden-")):
            differences[case["model"], ours, theirs] += 1
    return differences


@pytest.fixture(scope="module")
def lookups(shared: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(
        (shared / "parity" / "golden" / "lookups.json").read_text(encoding="utf-8")
    )
    assert len(cases) == 2079
    return cases


def test_files_without_identity_answer_as_the_reference_does(lookups: list[dict[str, Any]], shared: Path) -> None:
    assert replay(CurveBook(shared / "parity" / "golden"), lookups) == Counter()


def test_the_shipped_curves_answer_as_the_reference_does_but_for_a_draft_that_is_not_named(
    lookups: list[dict[str, Any]], shipped: CurveBook
) -> None:
    differences = replay(shipped, lookups)
    # MiniMax-M3 has two drafts with a curve each. Where a run does not say which it loads, the reference takes the
    # older one; we refuse, because half of the time that is the wrong curve.
    assert {(model, ours) for model, ours, _ in differences} == {("minimaxm3", "golden-condition")}
    assert sum(differences.values()) == 24
    assert all(theirs != "refused" for _, _, theirs in differences)
