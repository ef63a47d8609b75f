"""`matrix diff` over small repositories: what each kind of edit is told as, and what is no change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.cli.diff import diff as command
from matrix.cli.main import run
from matrix.cli.plan import plan as plan_command
from matrix.report.diff import NO_CHANGE
from tests.changelog.support import BASE, Repository
from tests.plan.support import RECIPE, RUNNERS, added, commit, files, multi, of, single

if TYPE_CHECKING:
    from collections.abc import Callable

M: Final = multi("m", (1, "[8, 32]", "override_a"), recipe="r.yaml")
A: Final = single("a", "[4, 16, 64]") + M
BUMPED: Final = RECIPE.replace("i:1", "i:2").replace('"4"', '"5"')
SERIES: Final = 'pin: "{pin}"\npatches:\n  - {{file: 1-x.patch, sha256: "{sha}"}}\n'


class Said:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def repository(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Repository:
    scratch = Repository(tmp_path / "scratch")
    commit(scratch, A)
    monkeypatch.chdir(scratch.folder)
    monkeypatch.setenv("COLUMNS", "160")
    return scratch


@pytest.fixture
def diff(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*args: str) -> Said:
        status = run(command, args, prog="matrix diff")
        return Said(status, *capsys.readouterr())

    return call


def lay(repository: Repository, masters: str = A, recipe: str = RECIPE, **more: str) -> None:
    """Files in the working tree, not committed."""
    for name, text in files(masters, recipe, **more).items():
        repository.write(text.encode(), name)


def anchored(text: str) -> str:
    return text.replace("org/a\n", "&model org/a\n").replace("model-prefix: a", "model-prefix: a # the same, *model")


NO_CHANGES: Final = {
    "nothing": (A, RECIPE),
    "comments": ("# a comment\n" + A.replace("image: i:1", "image: i:1 # why"), "# another\n" + RECIPE),
    "order of fields": (A.replace("  precision: fp8\n  framework: s", "  framework: s").replace(
        "  runner", "  precision: fp8\n  runner"), RECIPE.replace("\n", "\n\n")),
    "order of configs": (M + single("a", "[4, 16, 64]"), RECIPE),
    "order of keys in a recipe": (A, RECIPE.replace("  name: r\n  engine: sglang\n", "  engine: sglang\n  name: r\n")),
    "an anchor": (anchored(A), RECIPE),
    "a list written in lines": (A.replace("[4, 16, 64]", "[4,\n          16, 64]"), RECIPE),
    "a variant that nothing names": (A, RECIPE.replace('concurrencies: "8"', 'concurrencies: "9"')),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_changes_no_job_is_one_line(repository: Repository, diff: Callable[..., Said], name: str) -> None:
    lay(repository, *NO_CHANGES[name])
    said = diff("--exit-code")
    assert (said.status, said.out, said.err) == (0, NO_CHANGE + "\n", "")
    assert diff("--format", "markdown").out == NO_CHANGE + "\n"
    assert diff("--format", "json").record()["same"] is True


def test_a_recipe_file_moved_is_no_change(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A.replace("r.yaml", "moved.yaml"), **{"configs/recipes/moved.yaml": RECIPE})
    assert diff().out == NO_CHANGE + "\n"


def test_an_image_bump_is_one_line_however_many_points_it_hits(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    concs = str(list(range(1, 201)))
    commit(repository, single("a", concs) + single("b", concs))
    lay(repository, single("a", concs, image="i:2") + single("b", concs, image="i:2"))
    said = diff()
    assert said.lines[2:4] == [
        "a: 202 changed; image: i:1 -> i:2 (all 202 points)",
        "b: 202 changed; image: i:1 -> i:2 (all 202 points)",
    ]
    assert len(said.lines) == 6
    whole = diff("--full")
    assert len([line for line in whole.lines if line.startswith("      a--8k1k--tp8--c")]) == 202


def test_added_and_removed_points_and_their_accuracy_runs(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A.replace("[4, 16, 64]", "[8, 16, 64, 128]"))
    said = diff("--exit-code")
    assert said.status == 1
    assert said.lines[0] == f"HEAD ({repository.git('rev-parse', 'HEAD')[:12]}) -> working tree"
    assert said.lines[2:] == [
        "a: 3 added, 1 removed",
        "  + 3 points: 8k1k tp8 c8 c128; 8k1k tp8 c128 accuracy",
        "  - 8k1k tp8 c4",
        "",
        "1 config: 3 added, 1 removed; 14 -> 16 jobs",
    ]


def test_a_new_and_a_removed_config(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A + single("n", "", "[1, 2]"))
    assert diff().lines[2:] == [
        "n: new config, 3 points, +16 GPU-hours",
        "",
        "1 config: 3 added; 14 -> 17 jobs; 0 -> 16 GPU-hours (+16, 15 jobs of unknown length)",
    ]
    commit(repository, A + single("n", "", "[1, 2]"))
    lay(repository)
    assert diff().lines[2] == "n: config removed, 3 points, -16 GPU-hours"


def test_a_change_inside_a_recipe_is_told_by_its_path(repository: Repository, diff: Callable[..., Said]) -> None:
    decode, mark = RECIPE.rsplit("mori}", 1)
    lay(repository, recipe=f"{decode}mori, max-num-seqs: 64}}{mark}")
    expected = "m: 2 changed; recipe.roles.decode.args.max-num-seqs: (absent) -> 64 (all 2 points)"
    assert diff().lines[2] == expected
    change = diff("--format", "json").record()["changes"][0]
    assert change["fields"] == [{"path": "recipe.roles.decode.args.max-num-seqs", "new": 64}]
    assert change["kind"] == "changed"


def test_each_difference_is_told_once_with_the_points_that_have_it(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    masters = multi("m", (1, "[8, 32]", "override_a"), (8, "[64]", "override_b"), recipe="r.yaml")
    commit(repository, masters)
    lay(repository, masters.replace("i:1", "i:2"), RECIPE.replace('"8"', '"9"'))
    where = "8k1k 1p-tp8ep8-1d-tp8 c64; 8k1k 1p-tp8ep8-1d-tp8 c64 accuracy"
    assert diff().lines[2:5] == [
        "m: 4 changed",
        "  ~ image: i:1 -> i:2 (all 4 points)",
        f"  ~ recipe.benchmark.env.STEP: 8 -> 9 (2 points: {where})",
    ]


def test_points_are_told_by_what_they_are_all_of(repository: Repository, diff: Callable[..., Said]) -> None:
    commit(repository, single("a", "[4, 16, 64]", "[1, 2]"))
    lay(repository, single("a", "[4, 16, 64]", "[1, 2]", "i:2"))
    assert diff().lines[2] == "a: 7 changed; image: i:1 -> i:2 (all 7 points)"
    lay(repository, single("a", "[4, 16, 64]", "[1, 2, 3]", "i:2"))
    assert "  ~ image: i:1 -> i:2 (all 6 points that stay)" in diff().lines
    power = single("a", "[4, 16, 64]", "[1, 2]").replace("osl: 1024", "osl: 1024\n        require-power: true")
    lay(repository, power)
    where = "(3 points: 8k1k tp8 c4 c16 c64)"
    assert diff().lines[2] == f"a: 3 changed; require-power: (absent) -> true {where}"
    commit(repository, single("b", "[4, 16, 64]"))
    lay(repository, power_of("b"))
    assert diff().lines[2] == "b: 3 changed; require-power: (absent) -> true (all 3 throughput points)"


def power_of(key: str) -> str:
    return single(key, "[4, 16, 64]").replace("osl: 1024", "osl: 1024\n        require-power: true")


def test_a_config_under_another_key(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A.replace("a:\n  image", "renamed:\n  image", 1))
    said = diff("--exit-code")
    assert said.status == 1
    assert said.lines[2] == "renamed: 4 renamed; was a (all 4 points, the same jobs under another id)"
    changes = diff("--format", "json").record()["changes"]
    assert changes[0]["was"], changes[0]["id"] == ("a--8k1k--tp8--c4", "renamed--8k1k--tp8--c4")
    assert {change["kind"] for change in changes} == {"renamed"}


def test_a_job_has_one_new_name(repository: Repository, diff: Callable[..., Said]) -> None:
    """Of two copies under new keys the first is the old one, and the other is new."""
    only = single("a", "[4, 16, 64]")
    lay(repository, M + only.replace("a:\n", "b:\n", 1) + only.replace("a:\n", "c:\n", 1))
    record = diff("--format", "json").record()
    kinds = {
        (change["kind"], change["config-key"], change.get("was", "").split("--")[0]) for change in record["changes"]
    }
    assert kinds == {("renamed", "b", "a"), ("added", "c", "")}
    assert record["points"] == {"changed": 0, "added": 4, "removed": 0, "renamed": 4}


def test_a_variant_under_another_name(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A.replace("override_a", "override_new"), RECIPE.replace("override_a", "override_new"))
    said = diff()
    assert said.lines[2] == "m: 2 renamed"
    assert "8k1k--1p-tp8-1d-tp8--c8-32--override_a -> 8k1k--1p-tp8-1d-tp8--c8-32--override_new" in said.out
    assert diff("--format", "json").record()["changes"][0]["fields"] == [
        {"path": "recipe.name", "old": "r_a", "new": "r_new"}
    ]


def test_a_set_of_concurrencies_that_grows_is_one_changed_job(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    lay(repository, A.replace("[8, 32]", "[8, 32, 48]"))
    said = diff()
    assert said.lines[2:4] == [
        "m: 2 changed",
        "  ~ conc: [8, 32] -> [8, 32, 48] (all 2 points)",
    ]
    record = diff("--format", "json").record()
    assert record["points"] == {"changed": 2, "added": 0, "removed": 0, "renamed": 0}
    first = record["changes"][0]
    assert (first["was"][-17:], first["id"][-20:]) == ("c8-32--override_a", "c8-32-48--override_a")


def test_pin_and_patches_change_every_job(repository: Repository, diff: Callable[..., Said]) -> None:
    series = "runners/srt-slurm/patches/series.yaml"
    repository.write(SERIES.format(pin="1" * 40, sha="a" * 64).encode(), series)
    repository.commit()
    repository.write(SERIES.format(pin="2" * 40, sha="b" * 64).encode(), series)
    said = diff()
    assert "  ~ pin: 111111111111 -> 222222222222 (all 4 points)" in said.lines
    assert "  ~ patches.1-x.patch: aaaaaaaaaaaa -> bbbbbbbbbbbb (all 4 points)" in said.lines
    assert diff("--format", "json").record()["points"]["changed"] == 14


def test_runners_decide_a_budget(repository: Repository, diff: Callable[..., Said]) -> None:
    agentic = single("g", "", "[1, 2]").replace("none,", "dram, kv-offload-backend: {name: lmcache},")
    agentic = agentic.replace("coding:\n      - search", "coding:\n      - dram-utilization: 0.5\n        search")
    commit(repository, agentic)
    lay(repository, agentic, **{"configs/runners.yaml": RUNNERS.replace("3_000_000", "2_000_000")})
    said = diff()
    assert re.match(r"g: 3 changed; total-cpu-dram-gb: \d+ -> \d+ \(all 3 points\)", said.lines[2])


def test_a_policy_of_evals_changes_accuracy_runs_of_configs_that_are_the_same(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    policy = "version: 1\nminimum-concurrency: {}\nsequence: {{isl: 8192, osl: 1024}}\n"
    policy += "default: {{framework: lm-eval, suite: ''}}\n"
    repository.write(policy.format(16).encode(), "configs/evals.yaml")
    repository.commit()
    repository.write(policy.format(64).encode(), "configs/evals.yaml")
    record = diff("--format", "json").record()
    assert record["points"]["removed"] > 0
    assert all(change["id"].endswith("--eval") for change in record["changes"])


def test_a_suite_changes_the_accuracy_runs_alone(repository: Repository, diff: Callable[..., Said]) -> None:
    policy = "version: 1\nminimum-concurrency: 16\nsequence: {isl: 8192, osl: 1024}\n"
    repository.write(f"{policy}default: {{framework: lm-eval, suite: one}}\n".encode(), "configs/evals.yaml")
    repository.commit()
    repository.write(f"{policy}default: {{framework: lm-eval, suite: two}}\n".encode(), "configs/evals.yaml")
    said = diff()
    assert said.lines[2] == "a: 1 changed; eval-suite: one -> two (8k1k tp8 c64 accuracy)"
    assert "4 changed" in said.lines[-1]


def test_another_config_decides_which_is_evaluated(repository: Repository, diff: Callable[..., Said]) -> None:
    """Two configs of one model are one group of evals: a change of one moves the run of the other."""
    twin = single("b", "[4, 16, 32]").replace("org/b", "org/a").replace("model-prefix: b", "model-prefix: a")
    commit(repository, single("a", "[4, 16, 64]") + twin)
    lay(repository, single("a", "[4, 16, 64]") + twin.replace("[4, 16, 32]", "[4, 256, 512]"))
    changes = {change["id"]: change["kind"] for change in diff("--format", "json").record()["changes"]}
    assert any(name.startswith("a--") and name.endswith("--eval") for name in changes)
    assert not any(name.startswith("a--") and not name.endswith("--eval") for name in changes)


def test_a_link_whose_target_changed_is_looked_into(repository: Repository, diff: Callable[..., Said]) -> None:
    (repository.folder / "configs/recipes/link.yaml").symlink_to("r.yaml")
    commit(repository, A.replace("r.yaml", "link.yaml"))
    before = repository.git("rev-parse", "HEAD").strip()
    commit(repository, A.replace("r.yaml", "link.yaml"), recipe=RECIPE.replace('"4"', '"5"'))
    assert diff(f"{before}..HEAD").lines[2] == "m: 2 changed; recipe.benchmark.env.STEP: 4 -> 5 (all 2 points)"


def test_what_is_compared_with_what(repository: Repository, diff: Callable[..., Said]) -> None:
    first = repository.git("rev-parse", "HEAD").strip()
    repository.git("switch", "--quiet", "--create", "feature")
    commit(repository, A.replace("[4, 16, 64]", "[4, 16, 64, 65]"))
    repository.git("switch", "--quiet", "main")
    commit(repository, A.replace("[4, 16, 64]", "[4, 16]"))
    lay(repository, A.replace("[4, 16, 64]", "[4]"))
    assert diff("main..feature").out == diff("main", "feature").out
    assert "1 removed" not in diff("main...feature").out
    assert diff("main...feature").lines[0].startswith(f"{first[:12]} -> feature (")
    assert diff("..feature").out.replace("HEAD", "main") == diff("main..feature").out
    assert diff("feature..").out.replace("HEAD", "main") == diff("feature..main").out
    assert diff("main").lines[0].endswith(" -> working tree")
    assert diff().out.replace("HEAD", "main") == diff("main").out
    assert diff("a", "b", "c").status == 2
    assert diff("nowhere..main").status == 1


def test_plan_files(repository: Repository, diff: Callable[..., Said], capsys: pytest.CaptureFixture[str]) -> None:
    def planned(name: str) -> None:
        assert run(plan_command, ["--base-ref", first, "--format", "json"], prog="matrix plan") == 0
        repository.write(capsys.readouterr().out.encode(), name)

    first = repository.git("rev-parse", "HEAD").strip()
    commit(repository, A.replace("[4, 16, 64]", "[4, 16, 64, 65]"), added(of("a"), of("m")))
    planned("old.json")
    lay(repository, A.replace("[4, 16, 64]", "[4, 16, 64, 65]").replace("i:1", "i:2"), BUMPED)
    repository.commit()
    planned("new.json")
    said = diff("old.json", "new.json")
    assert said.lines[0] == "old.json -> new.json"
    assert said.lines[2:4] == [
        "a: 6 changed; image: i:1 -> i:2 (all 6 points)",
        "m: 2 changed; image: i:1 -> i:2 (all 2 points)",
    ]
    assert diff("old.json..new.json").out == said.out
    assert diff("new.json", "new.json").out == NO_CHANGE + "\n"
    rest = diff("new.json..HEAD", "--format", "json").record()
    assert (rest["points"]["changed"], rest["points"]["removed"]) == (0, 0)
    assert {config["key"] for config in rest["configs"]} == {"omega", "sigma"}
    assert diff("old.json...HEAD").status == 2
    assert diff("missing.json").status == 1


def test_a_plan_file_tells_what_it_can(
    repository: Repository, diff: Callable[..., Said], capsys: pytest.CaptureFixture[str]
) -> None:
    first = repository.git("rev-parse", "HEAD").strip()
    commit(repository, A.replace("[8, 32]", "[8, 33]"), added(of("m")))
    assert run(plan_command, ["--base-ref", first, "--format", "json"], prog="matrix plan") == 0
    repository.write(capsys.readouterr().out.encode(), "plan.json")
    repository.write(RECIPE.replace('"4"', '"5"').encode(), "configs/recipes/r.yaml")
    said = diff("plan.json")
    assert "something that a plan file does not hold: resolved recipe" in said.out
    assert "(all 2 points)" in said.out


@pytest.mark.parametrize("where", ["main", "HEAD", "feature"])
def test_a_refused_side_is_told_by_ref_file_and_line(
    repository: Repository, diff: Callable[..., Said], where: str
) -> None:
    repository.git("switch", "--quiet", "--create", "feature")
    commit(repository, A.replace("tp: 8, conc", "tp: eight, conc", 1))
    repository.git("branch", "--quiet", "--force", "main", "HEAD")
    said = diff(f"{where}~1..{where}")
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith(f"{where}:configs/amd-master.yaml:14:18: ")
    lay(repository, A.replace("tp: 8, conc", "tp: nine, conc", 1))
    both = diff(where)
    assert f"{where}:configs/amd-master.yaml:14:18: " in both.err
    assert "\nconfigs/amd-master.yaml:14:18: " in f"\n{both.err}"


def test_warnings_of_one_side_are_told_and_those_of_both_are_not(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    unknown = A.replace("runner: cluster:mi355x-a", "runner: h200", 1)
    lay(repository, unknown)
    assert "runner-unknown" in diff().err
    commit(repository, unknown)
    assert diff().err == ""


def test_unread_recipes_are_told_although_both_sides_have_none(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    repository.git("rm", "--quiet", "-r", "configs/recipes")
    repository.commit(BASE)
    said = diff()
    assert said.out == NO_CHANGE + "\n"
    assert said.err.count("recipe-root") == 1
    repository.write((A + multi("o", (1, "[8]", "x"), recipe="o.yaml")).encode(), "configs/amd-master.yaml")
    assert diff().err.count("recipe-root") == 1


def test_what_strangers_write_is_no_markup(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A.replace("image: i:1", 'image: "@org/team `x` | <b>"', 1))
    said = diff("--format", "markdown")
    row = next(line for line in said.lines if "team" in line)
    assert row.startswith("| `a` | changed `image`: `i:1` to ``@org/team `x` \\| <b>`` |")


@pytest.mark.parametrize("width", [80, 200])
def test_lines_fit(
    repository: Repository, diff: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lay(repository, A.replace("i:1", "registry.example/some/long/image:v1.2.3-nightly") + single("n", "[1, 2]"))
    assert max(map(len, diff().lines)) <= width
