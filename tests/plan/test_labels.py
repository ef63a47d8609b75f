"""The label registry: what is read, what is refused, and that page, schema and file agree."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import pytest

from matrix.config.source import loads, plain
from matrix.errors import RefusedError
from matrix.plan.labels import Permission, Primary, Refused, Registry, load_labels, registry_of

if TYPE_CHECKING:
    from pathlib import Path

PRIMARY: Final = {"meaning": "all", "canary": True, "fail-fast": True, "trim": False, "set-by": "write"}
GOOD: Final[dict[str, Any]] = {
    "version": 1,
    "skip-word": "[skip]",
    "primary": {"go": PRIMARY},
    "modifiers": {"more": {"meaning": "m", "effect": "all-evals", "set-by": "admin"}},
    "refused": {"old": {"reason": "r", "instead": "i"}},
}


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    return load_labels(str(root / "configs/labels.yaml"))


def changed(*path: str, value: Any) -> dict[str, Any]:
    data = deepcopy(GOOD)
    node = data
    for key in path[:-1]:
        node = node[key]
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return data


# What is wrong -> the rule and what the message or the fix must say.
BAD: Final[dict[str, tuple[dict[str, Any], str, str]]] = {
    "version": (changed("version", value=2), "labels-version", "version: 1"),
    "no version": (changed("version", value=None), "labels-version", "version: 1"),
    "version true": (changed("version", value=True), "labels-version", "version: 1"),
    "skip word": (changed("skip-word", value="x"), "labels-value", "3 characters"),
    "no primary": (changed("primary", value={}), "labels-field", "no primary label"),
    "unknown section": (changed("modifier", value={}), "labels-field", "did you mean modifiers"),
    "section form": (changed("refused", value=["old"]), "labels-form", "mapping"),
    "label form": (changed("primary", "go", value="all"), "labels-form", "mapping"),
    "unknown field": (changed("primary", "go", "canari", value=True), "labels-field", "did you mean canary"),
    "field is missing": (changed("primary", "go", "trim", value=None), "labels-field", "go lacks trim"),
    "canary text": (changed("primary", "go", "canary", value="maybe"), "labels-value", "true or false"),
    "empty meaning": (changed("primary", "go", "meaning", value=""), "labels-value", "text"),
    "triage sets": (changed("primary", "go", "set-by", value="triage"), "labels-value", "'triage'"),
    "effect": (changed("modifiers", "more", "effect", value="all-eval"), "labels-value", "did you mean all-evals"),
    "quote": (changed("primary", "it's", value=PRIMARY), "labels-name", "it's"),
    "expression": (changed("primary", "${{ x }}", value=PRIMARY), "labels-name", "${{ x }}"),
    "too long": (changed("primary", "x" * 51, value=PRIMARY), "labels-name", "1 to 50"),
    "not ASCII": (changed("primary", "gö", value=PRIMARY), "labels-name", "gö"),
}


def refusal(data: Any) -> RefusedError:
    document = loads(json.dumps(data).encode(), "labels.yaml")
    with pytest.raises(RefusedError) as caught:
        registry_of(document)
    return caught.value


@pytest.mark.parametrize("what", BAD)
def test_bad_registries_are_refused(what: str) -> None:
    data, rule, text = BAD[what]
    (finding,) = refusal(data).findings
    assert finding.rule == rule
    assert text in f"{finding.message} {finding.fix}"
    assert finding.span is not None
    assert finding.span.line == 1


def test_the_good_one_is_read() -> None:
    found = registry_of(loads(json.dumps(GOOD).encode(), "labels.yaml"))
    assert found.ours == ("go", "more")
    assert found.modifiers["more"].set_by is Permission.ADMIN


def test_one_name_has_one_meaning() -> None:
    for other in ("GO", "Old", "mOre"):
        (finding,) = refusal(changed("primary", other, value=PRIMARY)).findings
        assert finding.rule == "labels-twice"


def test_all_faults_come_together() -> None:
    data = changed("primary", "go", "trim", value=None) | {"version": 3, "extra": 1}
    assert [finding.rule for finding in refusal(data).findings] == ["labels-field", "labels-version", "labels-field"]


def test_schema_and_reader_have_one_verdict(root: Path) -> None:
    schema = json.loads((root / "matrix/schemas/labels.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert validator.is_valid(GOOD)
    assert validator.is_valid(plain(loads((root / "configs/labels.yaml").read_bytes(), "labels.yaml").root))
    for what, (data, _, _) in BAD.items():
        assert not validator.is_valid(data), what


def test_names_are_found_without_case(registry: Registry) -> None:
    for name in ("full-sweep-enabled", "Full-Sweep-Enabled", "FULL-SWEEP-ENABLED"):
        found = registry.find(name)
        assert isinstance(found, Primary)
        assert found.name == "full-sweep-enabled"
    assert registry.find("full-\u017fweep-enabled") is None  # its long s folds to s, and GitHub's need not
    assert registry.find("") is None


def test_labels_of_the_peer_are_refused_by_name(registry: Registry) -> None:
    for name in ("agentx-fast", "AgentX-Fast", "full-sweep-fail-fast-no-canary", "skip_queue", "ci-patchwork"):
        assert isinstance(registry.find(name), Refused)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("full-sweep-failfast", "full-sweep-fail-fast"),
        ("full sweep enabled", "full-sweep-enabled"),
        ("all-eval", "all-evals"),
        ("documentation", ""),
        ("bug", ""),
    ],
)
def test_near_names(registry: Registry, text: str, near: str) -> None:
    assert near in registry.near(text)
    assert bool(registry.near(text)) == bool(near)


def test_modes(registry: Registry) -> None:
    primary, everything = registry.primaries["full-sweep-fail-fast"], list(registry.modifiers.values())
    mode = registry.mode(primary)
    assert (mode.canary, mode.fail_fast, mode.options) == (True, True, (False, False, False))
    mode = registry.mode(primary, everything)
    assert (mode.canary, mode.options) == (False, (False, True, True))
    assert registry.mode(registry.primaries["sweep-enabled"]).options == (True, False, False)


def test_the_page_says_what_the_file_says(root: Path, registry: Registry) -> None:
    page = (root / "docs/labels.md").read_text(encoding="utf-8")
    rows = [re.split(r" \| ", line.strip("| ")) for line in page.splitlines() if line.startswith("| `")]
    yes = {True: "yes", False: "no"}
    assert rows == [
        *(
            [f"`{one.name}`", one.meaning, yes[one.canary], yes[one.fail_fast], one.set_by]
            for one in registry.primaries.values()
        ),
        *([f"`{one.name}`", one.meaning, one.set_by] for one in registry.modifiers.values()),
        *([f"`{one.name}`", one.reason, one.instead] for one in registry.refused.values()),
    ]
    assert f"`{registry.skip_word}`" in page
