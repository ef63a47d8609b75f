"""An edit of a line that an anchor shares says who else changes, and says it only then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.answers.edits import edit_of, edited
from tests.cli.support import RUNNERS, cli, repository

HEAD: Final = """\
  image: i:1
  model: org/M
  model-prefix: m
  precision: fp8
  framework: sglang
  runner: mi355x
  multinode: false
  scenarios:
    fixed-seq-len:
"""
MASTER: Final = f"""\
alpha:
{HEAD}\
    - isl: 8192
      osl: 1024
      search-space:
        - &base
          tp: 8
          conc-list: &ladder [4, 16]
        - {{ <<: *base, ep: 8 }}
        - &unused {{ tp: 16, conc-list: &own [1, 2] }}
    - isl: 1024
      osl: 1024
      search-space: &space
        - tp: 4
          conc-list: &list
          - 2
          - 8
beta:
{HEAD}\
    - isl: 1024
      osl: 1024
      search-space: *space
    - isl: 8192
      osl: 1024
      search-space:
        - {{ tp: 2, conc-list: *ladder }}
        - {{ tp: 1, conc-list: *list }}
"""
BASE, SPACE = "alpha--8k1k--tp8--c5", "alpha--1k1k--tp4--c4"
MISSING: Final = {
    "what is merged, asked where it stands": (BASE, "part of &base and &ladder, so lines 17 and 42 change with it"),
    "what is merged, asked where it is used": ("alpha--8k1k--tp8ep8--c5", "&base and &ladder, so lines 17 and 42"),
    "a list in a list that is used again": (SPACE, "part of &space and &list, so lines 38 and 43 change with it"),
    "an entry in a list that is used again": ("beta--1k1k--tp2--c4", "part of &space, so line 38 changes with it"),
    "an alias, which is written out": ("beta--8k1k--tp2--c5", ""),
    "an anchor that nobody uses": ("alpha--8k1k--tp16--c4", ""),
    "an entry below one with an anchor": ("alpha--8k1k--tp1--c4", ""),
    "a scenario below one with an anchor": ("alpha--128-128--tp4--c4", ""),
    "a config below one with aliases": ("gamma--8k1k--tp2--c4", "image, model, runner and the rest"),
}


def ids() -> set[str]:
    listed = cli("expand", "--no-evals", "--format", "ids")
    assert listed.status == 0, listed.err
    return set(listed.out.split())


@pytest.mark.parametrize("case", MISSING)
def test_what_else_comes_with_a_point_is_told(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, note = MISSING[case]
    monkeypatch.chdir(repository(tmp_path / "r", MASTER, RUNNERS))
    before = ids()
    (edit,) = json.loads(cli("why-not", name, "--format", "json").out)["causes"][0]["edits"]
    file = Path(edit["place"]["file"])
    file.write_text(edited(file.read_text(encoding="utf-8"), edit_of(edit)), encoding="utf-8")
    others = ids() - before - {name}
    assert name in ids()
    assert before <= ids()
    assert (note in edit["note"]) == bool(note or not edit["note"])
    assert bool(others) == ("change" in edit["note"])


PRESENT: Final = [
    "alpha--8k1k--tp8--c4", "alpha--8k1k--tp8ep8--c16", "alpha--8k1k--tp16--c1", "alpha--1k1k--tp4--c2",
    "beta--1k1k--tp4--c8", "beta--8k1k--tp2--c4", "beta--8k1k--tp1--c8",
]  # fmt: skip


@pytest.mark.parametrize("name", PRESENT)
def test_what_else_goes_with_a_point_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", MASTER, RUNNERS))
    before = ids()
    edit = json.loads(cli("why", name, "--format", "json").out)["without"]
    file = Path(edit["place"]["file"])
    file.write_text(edited(file.read_text(encoding="utf-8"), edit_of(edit)), encoding="utf-8")
    assert name not in ids()
    assert bool(before - ids() - {name}) == ("with it" in edit["note"])


def test_an_anchor_that_would_go_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", MASTER.replace("&ladder [4, 16]", "&ladder [4]"), RUNNERS))
    edit = json.loads(cli("why", "alpha--8k1k--tp8--c4", "--format", "json").out)["without"]
    assert edit["note"] == (
        "it holds &base, which line 17 uses: write that out there first;"
        " it holds &ladder, which line 42 uses: write that out there first"
    )
