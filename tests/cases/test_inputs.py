"""Stories of other people's masters, as far as loading goes: what came in, and what has to be said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from matrix.config.loading import load_fleet, load_masters
from matrix.config.source import load
from matrix.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

RUNNERS: Final = """\
labels:
  mi355x: [mi355x-a_00, mi355x-a_01]
  cluster:mi355x-a: [mi355x-a_00, mi355x-a_01]
hardware:
  cluster:mi355x-a:
    available-cpu-dram-mib: 3_095_781
    gpus-per-node: 8
"""
HEAD: Final = """\
beta-fp4-mi355x-sglang:
  image: example/sglang:1
  model: org/Beta
  model-prefix: beta
  runner: mi355x
  precision: fp4
  framework: sglang
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 1024
      osl: 1024
      search-space:
"""
AGENTIC: Final = """\
delta-fp4-mi355x-vllm-agentic:
  image: example/vllm:1
  model: org/Delta
  model-prefix: delta
  runner: cluster:mi355x-a
  precision: fp4
  framework: vllm
  multinode: false
  router: {{ name: mesh, version: {version} }}
  scenarios:
    agentic-coding:
    - search-space:
      - {{ tp: 8, kv-offloading: {tier}, conc-list: [1] }}
"""

# Each refusal: the input, then for each finding its place and rule, and words that must be in it.
REFUSED: Final[dict[str, tuple[str, list[tuple[str, ...]]]]] = {
    "a config pasted twice loses points": (
        HEAD + "      - { tp: 8, conc-list: [1, 2, 4] }\n" + HEAD + "      - { tp: 8, conc-list: [1] }\n",
        [("m.yaml:15:1", "yaml-duplicate-key", "beta-fp4-mi355x-sglang", "lines 1 and 15")],
    ),
    "a field repeated in one entry": (
        HEAD + "      - tp: 8\n        conc-list: [1]\n        tp: 4\n",
        [("m.yaml:16:9", "yaml-duplicate-key", "tp", "lines 14 and 16")],
    ),
    "off where none is meant": (
        AGENTIC.format(version="'1.10'", tier="off"),
        [("m.yaml:13:33", "yaml-word", "off", "quote it ('off')", "use none")],
    ),
    "a version that is a number to YAML": (
        AGENTIC.format(version="1.10", tier="none"),
        [("m.yaml:9:34", "wrong-type", "1.10", "quote it: '1.10'")],
    ),
    "both in one file": (
        AGENTIC.format(version="1.10", tier="'off'"),
        [("m.yaml:9:34", "wrong-type", "1.10"), ("m.yaml:13:33", "unknown-value", "'off'", "none or dram")],
    ),
}


@pytest.mark.parametrize("story", REFUSED)
def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: str) -> None:
    text, expected = REFUSED[story]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RefusedError) as refused:
        load_masters(["m.yaml"])
    findings = refused.value.findings
    assert [(str(finding.span), finding.rule) for finding in findings] == [
        (place, rule) for place, rule, *_ in expected
    ]
    for finding, (_place, _rule, *words) in zip(findings, expected, strict=True):
        assert [word for word in words if word not in str(finding)] == []


def test_a_merge_may_be_overridden(tmp_path: Path) -> None:
    text = HEAD.replace("sglang:\n", "sglang: &beta\n", 1) + "      - { tp: 8, conc-list: [1] }\n"
    text += "gamma-fp8-mi355x-sglang:\n  <<: *beta\n  model: org/Gamma\n  model-prefix: gamma\n  precision: fp8\n"
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8")
    configs = [(config.model, config.precision, config.scenarios[0].isl) for config in load_masters([path])]
    assert configs == [("org/Beta", "fp4", 1024), ("org/Gamma", "fp8", 1024)]


def test_a_list_and_a_range_of_one_node(tmp_path: Path) -> None:
    text = HEAD + "      - { tp: 8, ep: 1, conc-list: [1, 2, 4, 32] }\n      - { tp: 4, conc-start: 4, conc-end: 48 }\n"
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8")
    (config,) = load_masters([path])
    assert [list(entry.ladder(2)) for entry in config.scenarios[0].entries] == [[1, 2, 4, 32], [4, 8, 16, 32, 48]]


def test_a_workflow_keeps_its_key_on(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("name: sweep\non:\n  push: {branches: [main]}\njobs: {}\n", encoding="utf-8")
    assert list(load(path).root) == ["name", "on", "jobs"]


def test_the_runners_of_these_stories(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(RUNNERS, encoding="utf-8")
    assert load_fleet(path).gpus_per_node("mi355x") == (8,)


SHARED: Final = {
    "C03/X.yaml": [("15:1", "yaml-duplicate-key")],
    "C04/X_dup.yaml": [("16:9", "yaml-duplicate-key")],
    "C11/X_off.yaml": [("12:33", "yaml-word")],
    "C11/X_version.yaml": [("9:34", "wrong-type")],
}


@pytest.mark.parametrize("name", SHARED)
def test_the_files_themselves(shared: Path, name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        load_masters([shared / "cases" / name])
    told = [(str(finding.span).rpartition(".yaml:")[2], finding.rule) for finding in refused.value.findings]
    assert told == SHARED[name]


@pytest.mark.parametrize(
    ("name", "keys"), [("C01/X.yaml", 1), ("C04/X_merge.yaml", 2), ("C06/X.yaml", 2), ("C13/X.yaml", 1)]
)
def test_files_that_load(shared: Path, name: str, keys: int) -> None:
    folder = shared / "cases" / name
    assert len(load_masters([folder])) == keys
    assert load_fleet(folder.with_name("R.yaml")).nodes("mi355x")
