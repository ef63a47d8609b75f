"""What srtctl makes of an ATOM worker, and what it refuses of one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import pytest

from matrix.recipes.atom import atom_faults
from matrix.recipes.commands import CommandsError, Process, commands_of
from matrix.recipes.environment import Origin
from matrix.recipes.recipe import RecipeBook
from matrix.recipes.roles import view_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.recipes.conftest import Make


def flag(process: Process, name: str) -> str:
    """The word behind a flag."""
    return process.argv[process.argv.index(name) + 1]


def env_of(process: Process) -> dict[str, str]:
    return {variable.name: variable.value for variable in process.env}


ATOM: Final = """
    schema: 2
    name: n
    engine: atom
    model: {path: %s, container: image%s}
    frontend: {type: atomesh, enable_multiple_frontends: false}
    roles:
      agg: {nodes: 1, gpus: 8, args: {%s}}
"""


@pytest.mark.parametrize(
    ("path", "more", "args", "model", "served"),
    [
        ("'hf:org/Mu'", "", "", "org/Mu", "org/Mu"),
        ("/models/org/Mu", "", "", "/model", "/model"),
        ("Alias", "", "", "/model", "/model"),
        ("/models/org/Mu", ", stage_dir: /raid/x", "", "/raid/x/Mu", "/raid/x/Mu"),
        ("'hf:org/Mu'", ", stage_dir: /raid/x", "", "org/Mu", "org/Mu"),
        ("/models/org/Mu", "", "served-model-name: org/Mu", "/model", "org/Mu"),
        ("/models/org/Mu", "", "served_model_name: org/Mu", "/model", "org/Mu"),
    ],
)
def test_the_name_an_atom_server_goes_by(make: Make, path: str, more: str, args: str, model: str, served: str) -> None:
    commands = commands_of(make(ATOM % (path, more, args)))
    assert (commands.model, commands.served) == (model, served)
    assert flag(commands.workers[0], "--model") == model


def test_other_engines_are_told_the_last_part_of_the_path(make: Make) -> None:
    text = (ATOM % ("'hf:org/Mu'", "", "")).replace("atomesh", "sglang").replace("atom", "sglang")
    assert (commands_of(make(text)).model, commands_of(make(text)).served) == ("org/Mu", "Mu")


def test_worker_flags_are_written_as_the_recipe_spells_them(make: Make) -> None:
    args = "kv_cache_dtype: fp8, no-enable_prefix_caching: true, off: false, none: null, list: [1, two], text: '[1,2]'"
    [process] = commands_of(make(ATOM % ("m", "", args))).workers
    assert shlex.join(process.argv[11:]) == (
        "--kv_cache_dtype fp8 --list 1 two --no-enable_prefix_caching --text '[1,2]'"
    )


def test_one_connector_of_an_aggregated_worker_is_not_wrapped(make: Make) -> None:
    args = "extra-kv-connectors: [{kv_connector: lmcache_offload, a: null, b: 0.50}]"
    [process] = commands_of(make(ATOM % ("m", "", args))).workers
    assert flag(process, "--kv-transfer-config") == '{"kv_connector":"lmcache_offload","a":null,"b":0.5}'


def test_the_protocol_goes_last(make: Make) -> None:
    text = (ATOM % ("m", "", "")).replace("engine: atom", "engine: {type: atom, mooncake_protocol: tcp}")
    text = text.replace(
        "agg: {nodes: 1, gpus: 8, args: {}}", "{prefill: {nodes: 1, gpus: 8}, decode: {nodes: 1, gpus: 8}}"
    )
    config = flag(commands_of(make(text)).workers[0], "--kv-transfer-config")
    assert config.endswith('"handshake_port":5400,"protocol":"tcp"}')


REFUSED: Final = [
    ("kv-transfer-config: '{}'", "atom-reserved-arg", "kv-transfer-config"),
    ("kv_transfer_config: '{}'", "atom-reserved-arg", "kv_transfer_config"),
    ("tensor-parallel-size: 8", "atom-reserved-arg", "tensor-parallel-size"),
    ("tp: 8", "atom-reserved-arg", "tp"),
    ("server-p: 1", "atom-reserved-arg", "short for one that belongs to srtctl"),
    ("model: x", "atom-reserved-arg", "model"),
    ("block-size: 1, block_size: 2", "atom-flag-twice", "block-size, block_size"),
    ("online-quant: {layers: 1}", "atom-argument-value", "no flag takes one"),
    ("extra-kv-connectors: {a: 1}", "atom-connectors", "is no list"),
    ("extra-kv-connectors: [x]", "atom-connectors", "names no kv_connector"),
    ("extra-kv-connectors: [{kv_connector: mooncake}]", "atom-connectors", "is generated"),
]


@pytest.mark.parametrize(("args", "rule", "words"), REFUSED)
def test_what_srtctl_refuses_of_an_atom_role(make: Make, args: str, rule: str, words: str) -> None:
    recipe = make(ATOM % ("m", "", args))
    [finding] = atom_faults(view_of(recipe))
    assert (finding.rule, words in finding.message) == (rule, True)
    assert finding.span is not None
    assert finding.span.line == 7
    with pytest.raises(CommandsError) as refusal:
        commands_of(recipe)
    assert refusal.value.findings == (finding,)


@pytest.mark.parametrize(
    "key", ["method", "max-num-seqs", "modelo", "kv_cache_dtype", "hostess", "extra_kv_connectors"]
)
def test_flags_that_are_nobody_else_s(make: Make, key: str) -> None:
    assert not list(atom_faults(view_of(make(ATOM % ("m", "", f"{key}: null")))))


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("type: atomesh", "type: sglang", "atom-frontend"),
        ("frontends: false}", "frontends: false, args: {backend: vllm}}", "router-reserved-arg"),
        ("frontends: false}", "frontends: false, args: {worker_urls: x}}", "router-reserved-arg"),
        ("nodes: 1, gpus: 8", "nodes: 1, gpus: 8, env: {ATOM_HOST_IP: 10.9.9.9}", "atom-reserved-env"),
        ("schema: 2", "schema: 2\n    environment: {ATOM_HOST_IP: 10.9.9.9}", "atom-reserved-env"),
        ("nodes: 1, gpus: 8", "nodes: 2, gpus: 16", "atom-one-node"),
        ("nodes: 1, gpus: 8", "nodes: 2, workers: 2, gpus: 8", None),
        ("schema: 2", "schema: 2\n    resources: {gpus_per_node: 4}", "atom-one-node"),
    ],
)
def test_what_srtctl_refuses_of_an_atom_job(make: Make, old: str, new: str, rule: str | None) -> None:
    text = ATOM % ("m", "", "")
    assert old in text
    found = [finding.rule for finding in atom_faults(view_of(make(text.replace(old, new))))]
    assert found == ([rule] if rule is not None else [])


def test_all_faults_come_together(make: Make) -> None:
    text = (ATOM % ("m", "", "tp: 1, host: x")).replace("type: atomesh", "type: dynamo")
    with pytest.raises(CommandsError) as refusal:
        commands_of(make(text))
    assert [finding.rule for finding in refusal.value.findings] == [
        "atom-reserved-arg",
        "atom-reserved-arg",
        "atom-frontend",
    ]


@pytest.mark.parametrize(("name", "served"), [("recipe", "org/Mu-Pro"), ("recipe_local", "/model")])
def test_a_client_asks_for_what_the_server_was_given(shared: Path, name: str, served: str) -> None:
    commands = commands_of(RecipeBook([shared / "cases" / "C56"]).resolve(f"{name}.yaml"))
    assert commands.served == served
    for process in commands.workers:
        assert flag(process, "--model") == served
        assert flag(process, "--kv_cache_dtype") == "fp8"
        assert "--no-enable_prefix_caching" in process.argv


def test_an_argument_that_is_the_launcher_s(shared: Path) -> None:
    recipe = RecipeBook([shared / "cases" / "C56"]).resolve("recipe_reserved.yaml")
    with pytest.raises(CommandsError) as refusal:
        commands_of(recipe)
    assert [(finding.rule, "kv-transfer-config" in finding.message) for finding in refusal.value.findings] == [
        ("atom-reserved-arg", True),
        ("atom-reserved-arg", True),
    ]


# -- environment ----------------------------------------------------------------------------------------------------


def test_the_environment_of_the_recipe_wins_over_a_role_s_own(make: Make) -> None:
    text = (ATOM % ("m", "", "")).replace(
        "gpus: 8,", "gpus: 8, env: {A: role, B: role},"
    ) + "    environment: {B: all}\n"
    [process] = commands_of(make(text)).workers
    assert [(variable.name, variable.value, variable.origin) for variable in process.env] == [
        ("A", "role", Origin.OWN),
        ("B", "all", Origin.ENVIRONMENT),
        ("ATOM_HOST_IP", "<agg-0>", Origin.SRTCTL),
    ]


@pytest.mark.parametrize(
    ("value", "filled"),
    [("{node}:{node_id}", "<node-0>:0"), ("{other} {{}}", "{other} {}"), ("plain", "plain")],
)
def test_braces_that_srtctl_fills_in(make: Make, value: str, filled: str) -> None:
    text = (ATOM % ("m", "", "")).replace("gpus: 8,", f"gpus: 8, env: {{A: '{value}'}},")
    assert env_of(commands_of(make(text)).workers[0])["A"] == filled


@pytest.mark.parametrize("value", ['{"a": 1}', "{", "{}", "{node.x}"])
@pytest.mark.parametrize("home", ["role", "environment"])
def test_braces_over_which_srtctl_would_end(make: Make, value: str, home: str) -> None:
    text = ATOM % ("m", "", "")
    if home == "role":
        text = text.replace("gpus: 8,", f"gpus: 8, env: {{A: '{value}'}},")
    else:
        text += f"    environment: {{A: '{value}'}}\n"
    with pytest.raises(CommandsError, match="recipe-braces") as refusal:
        commands_of(make(text))
    [finding] = refusal.value.findings
    assert finding.span is not None
    assert finding.span.line == (7 if home == "role" else 8)
