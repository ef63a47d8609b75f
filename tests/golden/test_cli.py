"""The commands: results on stdout, everything else on stderr, and the exit status."""

import json
from pathlib import Path

import pytest

from matrix.cli.golden import golden
from matrix.cli.main import run


@pytest.fixture(autouse=True)
def _at_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    status = run(golden, args, prog="matrix golden")
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err


def test_lookup_prints_the_value_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "lookup", "--model-prefix", "dsv4", "--method", "dspark", "--tokens", "3") == (0, "3.01\n", "")
    gqa = ("--draft-model", "Inferact/MiniMax-M3-EAGLE3-GQA", "--thinking", "thinking_off")
    assert (
        call(capsys, "lookup", "--model-prefix", "minimaxm3", "--method", "EAGLE3", "--tokens", "3", *gqa)[1]
        == "2.97\n"
    )
    status, out, _ = call(
        capsys, "lookup", "--model-prefix", "kimik3", "--method", "dspark", "--tokens", "3",
        "--draft-sampling", "probabilistic", "--format", "json",
    )  # fmt: skip
    record = json.loads(out)
    assert status == 0
    assert record["length"] == "3"
    assert Path(record["file"]).read_text(encoding="utf-8").splitlines()[record["line"] - 1].strip() == "3: 3.00"


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        (("--model-prefix", "dsv4", "--method", "mtp", "--tokens", "9"), 1, "none is interpolated. fix: it has: 1, 2"),
        (("--model-prefix", "dsv5", "--method", "mtp", "--tokens", "3"), 1, "did you mean dsv4"),
        (("--model-prefix", "kimik3", "--method", "dspark", "--tokens", "3"), 1, "does not say its draft sampling"),
        (("--model-prefix", "dsv4", "--method", "mtp", "--tokens", "0"), 2, "--tokens"),
        (("--model-prefix", "dsv4", "--method", "mtp"), 2, "--tokens"),
        (("--model-prefix", "dsv4", "--method", "mtp", "--tokens", "3", "--golden", "none"), 1, "golden-folder"),
    ],
)
def test_lookup_refuses(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], status: int, says: str) -> None:
    got, out, err = call(capsys, "lookup", *args)
    assert (got, out) == (status, "")
    assert says in err


def test_list_names_every_curve(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "list")
    assert (status, err) == (0, "")
    names = sorted(path.stem for path in Path("configs/golden").glob("*.yaml"))
    assert [line.split()[-1] for line in out.splitlines()] == ["curve", *names]
    assert all(len(line) <= 120 for line in out.splitlines() if len(line.split()[-1]) <= 24)
    status, out, _ = call(capsys, "list", "--format", "json")
    records = {record["name"]: record for record in json.loads(out)}
    assert records["minimaxm3_eagle3_gqa"]["identity"] == {
        "model-prefixes": ["minimaxm3"],
        "methods": ["eagle3", "eagle", "nextn"],
        "draft-model": "(?i)gqa",
        "draft-sampling": None,
    }
    assert records["dsv4_mtp"]["values"]["thinking_off"]["4"] == "3"


def test_show_has_the_values_as_committed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "show", "dsv4_mtp")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == str(Path("configs/golden/dsv4_mtp.yaml"))
    assert out.splitlines()[-5].split() == ["4", "2.54", "3.00"]
    assert call(capsys, "show", "dsv4_mtp.yaml", "--format", "json")[0] == 0
    status, out, err = call(capsys, "show", "dsv4_mtq")
    assert (status, out) == (2, "")
    assert "did you mean dsv4_mtp" in err


def test_a_folder_without_identities_is_listed_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m_mtp.yaml").write_text("model-m: {thinking_on: {1: 1.5, 2: 9}}\n", encoding="utf-8")
    status, out, err = call(capsys, "list", "--golden", str(tmp_path))
    assert status == 0
    assert "(its name)" in out
    assert "golden-range" in err
    assert "found by its name" in call(capsys, "show", "m_mtp", "--golden", str(tmp_path))[1]


SEED = "recipes/dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml:override_tp8_c16"


def test_inject_shows_what_a_recipe_would_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "inject", SEED, "--model-prefix", "dsv4")
    assert (status, err) == (0, "")
    assert out.splitlines()[1:] == [
        "roles.prefill.args.spec-decode-acceptance-length: 3.01",
        "roles.decode.args.spec-decode-acceptance-length: 3.01",
    ]
    for real in (("--eval",), ("--fixed",), ("--spec-decoding", "none")):
        status, out, _ = call(capsys, "inject", SEED, "--model-prefix", "dsv4", "--format", "json", *real)
        assert (status, json.loads(out)["length"], json.loads(out)["changes"]) == (0, None, [])
    file = f"configs/{SEED}"
    assert call(capsys, "inject", file, "--model-prefix", "dsv4", "--framework", "atom-disagg")[0] == 0
    for args, says in (
        ((file, "--model-prefix", "dsv5"), "golden-missing"),
        ((file, "--model-prefix", "dsv4", "--framework", "sglang"), "golden-engine"),
        (("recipes/none.yaml", "--model-prefix", "dsv4"), "recipe-missing"),
        ((f"{file}x", "--model-prefix", "dsv4"), "recipe-selector"),
    ):
        status, out, err = call(capsys, "inject", *args)
        assert (status, out) == (1, "")
        assert says in err


def test_check_is_clean_on_the_shipped_tree(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "check", "--strict")
    assert (status, err) == (0, "")
    assert out.startswith("golden: 9 curves and ")
    assert out.endswith("nothing wrong\n")


def test_check_refuses_a_length_typed_by_hand(capsys: pytest.CaptureFixture[str], shared: Path) -> None:
    folder = shared / "cases" / "C29"
    files = ("--config", f"{folder}/X.yaml", "--runners", f"{folder}/R.yaml", "--recipes", f"{folder}/recipes")
    status, out, err = call(capsys, "check", *files, "--golden", f"{folder}/golden")
    assert (status, out) == (1, "")
    assert f"{folder}/X.yaml:18:" in err
    assert "3.77" in err
    assert "2.49" in err


def test_strict_makes_a_warning_fail(capsys: pytest.CaptureFixture[str], shared: Path, tmp_path: Path) -> None:
    folder = shared / "cases" / "C29"
    text = (folder / "X.yaml").read_text(encoding="utf-8")
    forced = ', "SYNTHETIC_ACCEPTANCE=true", "SYNTHETIC_ACCEPTANCE_LENGTH=3.77"'
    assert forced in text
    (tmp_path / "X.yaml").write_text(text.replace(forced, ""), encoding="utf-8")
    files = ("--config", f"{tmp_path}/X.yaml", "--runners", f"{folder}/R.yaml", "--recipes", f"{folder}/recipes")
    status, out, err = call(capsys, "check", *files, "--golden", f"{folder}/golden")
    assert (status, out) == (0, "golden: 2 curves and 1 config checked, 1 warning\n")
    assert "decode is given 2.49" in err
    assert call(capsys, "check", *files, "--golden", f"{folder}/golden", "--strict")[:2] == (1, "")


def test_without_curves_anywhere_it_says_how_to_name_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = call(capsys, "list")
    assert (status, out) == (1, "")
    assert "--golden DIR" in err
