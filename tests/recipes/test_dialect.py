"""Schema 2 to schema 1 and back: lossless for what schema 1 can say, and a finding for each thing it cannot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.config.source import plain
from matrix.findings import Severity, errors_of
from matrix.recipes.dialect import RULE, from_schema_1, to_schema_1
from matrix.recipes.roles import node_count, view_of

if TYPE_CHECKING:
    from matrix.recipes.recipe import Recipe
    from tests.recipes.conftest import Make

HEAD: Final = """\
schema: 2
name: n
model: {path: "hf:o/m", container: image, precision: fp8}
resources: {gpu_type: mi355x, gpus_per_node: 8}
"""
AGG: Final = "roles: {agg: {nodes: 1, workers: 1}}\n"
SGLANG: Final = HEAD + AGG + "engine: sglang\n"
ROLE: Final = f"{HEAD}engine: sglang\nroles:\n  agg:\n    nodes: 1\n    "


def roundtrip(recipe: Recipe) -> dict[str, Any]:
    return from_schema_1(to_schema_1(recipe)[0])


def test_every_shipped_variant_comes_back_as_it_was(shipped: list[Recipe]) -> None:
    whole = [recipe for recipe in shipped if not errors_of(to_schema_1(recipe)[1])]
    assert len(whole) > 100
    for recipe in whole:
        assert roundtrip(recipe) == plain(recipe.data), recipe.reference.text


def test_what_does_not_come_back_was_told(shipped: list[Recipe]) -> None:
    for recipe in shipped:
        _, findings = to_schema_1(recipe)
        told = " ".join(finding.message for finding in findings)
        for path in lost(plain(recipe.data), roundtrip(recipe)):
            assert f" {path}." in told or f" {path} " in told, (recipe.reference.text, path)


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Dotted paths of what is gone or other than before."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [] if before == after else [path]
    keys = [key for key in before if before[key] != after.get(key, object())]
    return [found for key in keys for found in lost(before[key], after.get(key), f"{path}.{key}".strip("."))]


def test_the_view_of_a_translated_recipe_is_the_same(shipped: list[Recipe], make: Make) -> None:
    for recipe in shipped[::7]:
        document, findings = to_schema_1(recipe)
        if errors_of(findings):
            continue
        before, after = view_of(recipe), view_of(make(json.dumps(document)))
        assert node_count(before) == node_count(after)
        assert before.roles.keys() == after.roles.keys()
        for name, role in before.roles.items():
            other = after.roles[name]
            assert (role.nodes, role.workers, role.gpus, role.engine) == (
                other.nodes,
                other.workers,
                other.gpus,
                other.engine,
            )
            assert (plain(role.args), plain(role.env)) == (plain(other.args), plain(other.env))


def test_the_seed_in_schema_1(book: Any) -> None:
    name = "dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml:override_dpa8_c256_lmcache"
    document, findings = to_schema_1(book.resolve(name))
    assert findings == ()
    assert "schema" not in document
    assert document["resources"] == {
        "gpu_type": "mi355x",
        "gpus_per_node": 8,
        "prefill_nodes": 1,
        "prefill_workers": 1,
        "gpus_per_prefill": 8,
        "decode_nodes": 1,
        "decode_workers": 1,
        "gpus_per_decode": 8,
    }
    backend = document["backend"]
    assert list(backend) == ["type", "connector", "prefill_environment", "decode_environment", "atom_config"]
    assert (backend["type"], backend["connector"]) == ("atom", "mooncake")
    assert backend["prefill_environment"]["PYTHONHASHSEED"] == "0"
    assert "PYTHONHASHSEED" not in backend["decode_environment"]
    [connector] = backend["atom_config"]["prefill"]["extra-kv-connectors"]
    assert (connector["kv_connector"], connector["lmcache.local_disk"]) == ("lmcache_offload", None)
    assert document["frontend"]["type"] == "atomesh"
    assert list(document["frontend"]["args"])[:4] == [
        "log-level",
        "disable-health-check",
        "disable-circuit-breaker",
        "prometheus-port",
    ]


SAID: Final[list[tuple[str, dict[str, Any]]]] = [
    # what a recipe says, and the sections of schema 1 that say it
    (
        HEAD + "engine: {type: vllm, connector: null}\nroles: {prefill: {nodes: 1, gpus: 4, env: {A: b}, args: {x: 1}},"
        " decode: {nodes: colocate, workers: 2, gpus: 2, kv_events: true}}\n",
        {
            "resources": {
                "gpu_type": "mi355x", "gpus_per_node": 8, "prefill_nodes": 1, "prefill_workers": 1,
                "gpus_per_prefill": 4, "decode_nodes": 0, "decode_workers": 2, "gpus_per_decode": 2,
            },
            "backend": {
                "type": "vllm", "connector": None, "prefill_environment": {"A": "b"},
                "kv_events_config": {"decode": True}, "vllm_config": {"prefill": {"x": 1}},
            },
        },
    ),
    (
        HEAD + "engine: sglang\nroles: {agg: {nodes: 2, workers: 1, env: {A: b}, args: {x: [1]}, critical: true,"
        " container: image}}",
        {
            "resources": {"gpu_type": "mi355x", "gpus_per_node": 8, "agg_nodes": 2, "agg_workers": 1},
            "backend": {
                "type": "sglang", "aggregated_environment": {"A": "b"}, "sglang_config": {"aggregated": {"x": [1]}},
            },
        },
    ),
    (
        HEAD + "roles: {agg: {nodes: 1, engine: {type: atom, mooncake_protocol: tcp}}}",
        {"backend": {"type": "atom", "mooncake_protocol": "tcp"}},
    ),
    (
        SGLANG + "frontend: {type: sglang, placement: {node: first_decode}}",
        {"frontend": {"type": "sglang", "orchestrator_placement": "first_decode"}},
    ),
    (SGLANG + "frontend: {placement: {node: dedicated}}", {"frontend": {"dedicated_node": True}}),
    (SGLANG + "benchmark: {placement: {node: last_decode}}", {"benchmark": {"client_placement": "last_decode"}}),
    (SGLANG + "benchmark: {placement: {node: dedicated}}", {"benchmark": {"client_dedicated_node": True}}),
    (
        SGLANG + "dynamo: {install: false, source: {rev: abc, patches: [x]}}",
        {"dynamo": {"install": False, "hash": "abc", "cargo_patches": ["x"]}},
    ),
    (
        SGLANG + "services: [{name: etcd, type: etcd, placement: {node: dedicated}},"
        " {name: nats, type: nats, placement: {node: dedicated}, options: {max_payload_mb: 24}}]",
        {"infra": {"etcd_nats_dedicated_node": True, "nats_max_payload_mb": 24}},
    ),
    (
        SGLANG + "services: [{name: nats, type: nats, options: {max_payload_mb: 24}}]",
        {"infra": {"nats_max_payload_mb": 24}},
    ),
    (SGLANG + "health_check: {max_attempts: 5}\nsrun_options: {mem: '0'}\nextra_mount: [a:b]", {
        "health_check": {"max_attempts": 5}, "srun_options": {"mem": "0"}, "extra_mount": ["a:b"],
    }),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sections"), SAID)
def test_what_schema_1_can_say(make: Make, text: str, sections: dict[str, Any]) -> None:
    recipe = make(text)
    document, findings = to_schema_1(recipe)
    assert findings == ()
    assert {key: document[key] for key in sections} == sections
    again = from_schema_1(document)
    assert to_schema_1(make(json.dumps(again)))[0] == document


def test_decode_without_nodes_of_its_own_shares_them() -> None:
    resources = {"prefill_nodes": 1, "prefill_workers": 1, "decode_nodes": 0, "decode_workers": 2, "gpus_per_decode": 2}
    roles = from_schema_1({"resources": resources, "backend": {"type": "vllm"}})["roles"]
    assert roles["decode"] == {"nodes": "colocate", "workers": 2, "gpus": 2}


def test_atomesh_alone_reads_a_list(make: Make) -> None:
    text = HEAD + AGG + "engine: atom\nfrontend: {type: atomesh, args: {urls: [a, b]}}"
    assert to_schema_1(make(text))[1] == ()


def test_a_disabled_service_says_nothing(make: Make) -> None:
    document, findings = to_schema_1(make(SGLANG + "services: [{name: x, type: generic, enabled: false}]"))
    assert (findings, "infra" in document) == ((), False)


NOT_SAID: Final = [
    # what a recipe says, words of the finding, its line
    (SGLANG + "host_setup: {commands: [x]}", "no host_setup. There nothing runs", 7),
    (SGLANG + "post_eval: {command: x}", "no post_eval", 7),
    (SGLANG + "frontend:\n  container_image: x", "frontend.container_image. There the router runs in", 8),
    (SGLANG + "frontend:\n  worker_selection: {}", "no frontend.worker_selection", 8),
    (SGLANG + "frontend:\n  type: vllm-router", "frontend.type is vllm-router", 8),
    (SGLANG + "frontend:\n  placement: {node: third}", "frontend.placement.node is third", 8),
    (SGLANG + "frontend:\n  placement: head", "frontend.placement.node is None", 8),
    (SGLANG + "frontend:\n  placement: {node: head, pool: x}", "no frontend.placement.pool", 8),
    (SGLANG + "frontend:\n  args:\n    urls: [a, b]", "frontend.args.urls is a list", 9),
    (SGLANG + "benchmark:\n  stream_output: true", "no benchmark.stream_output", 8),
    (SGLANG + "benchmark:\n  type: agentperf", "benchmark.type is agentperf", 8),
    (SGLANG + "health_check:\n  extra_fatal_log_patterns: [x]", "no health_check.extra_fatal_log_patterns", 8),
    (SGLANG + "telemetry:\n  collect_interval_ms: 5", "no telemetry.collect_interval_ms", 8),
    (SGLANG + "observability:\n  tachometer:\n    x: 1", "no observability.tachometer.x", 9),
    (SGLANG + "dynamo:\n  source:\n    branch: x", "no dynamo.source.branch", 9),
    (SGLANG + "backend: {type: sglang}", "no backend. Schema 2 says engine: and roles:", 7),
    (SGLANG + "sweep: {}", "no sweep", 7),
    (SGLANG + "environment:\n  A: 1", "environment.A is 1", 8),
    (SGLANG + "environment:\n  A: true", "environment.A is true", 8),
    (SGLANG + "srun_options:\n  mem: 0", "srun_options.mem is 0", 8),
    (SGLANG + "benchmark:\n  env:\n    CONC: 4", "benchmark.env.CONC is 4", 9),
    (SGLANG + "services:\n- name: mc\n  type: mooncake-master", "no service mooncake-master. It starts etcd", 8),
    (SGLANG + "services:\n- type: etcd\n  command: x", "no services.etcd.command", 9),
    (SGLANG + "services:\n- type: nats\n  options: {x: 1}", "no services.nats.options.x", 9),
    (SGLANG + "frontend: {type: vllm}\nservices:\n- type: nats", "Beside the frontend vllm it starts neither", 9),
    (SGLANG + "services:\n- {type: etcd, placement: {node: dedicated}}\n- type: nats", "placed differently", 7),
    (ROLE + "container: other", "no roles.agg.container. There every worker", 9),
    (ROLE + "sidecar: true", "no roles.agg.sidecar", 9),
    (ROLE + "critical: false", "no roles.agg.critical", 9),
    (ROLE + "restart: {}", "no roles.agg.restart", 9),
    (ROLE + "extra_args: x", "no roles.agg.extra_args", 9),
    (HEAD + "engine: atom\nroles:\n  agg:\n    nodes: 1\n    kv_events: true", "no roles.agg.kv_events", 9),
    (ROLE + "env: {A: 2}", "roles.agg.env.A is 2", 9),
    (
        HEAD + "roles:\n  prefill: {nodes: 1, engine: sglang}\n  decode:\n    nodes: 1\n    engine: vllm",
        "different engines",
        9,
    ),
    (HEAD + "engine: vllm\nroles:\n  agg:\n    nodes: 1\n    engine: sglang", "different engines", 9),
    (HEAD + AGG + "engine: tilert", "no engine tilert", 6),
    (HEAD + AGG + "engine:\n  type: tilert\n  x: 1", "no engine tilert", 7),
    (HEAD + AGG + "engine:\n  connector: x", "no engine None", 6),
    (HEAD + AGG, "names no engine", 0),
    (HEAD + AGG + "engine:\n  type: sglang\n  connector: nixl", "no engine.connector", 8),
    (HEAD + AGG + "engine:\n  type: vllm\n  connector: moriio", "engine.connector is moriio", 8),
    (ROLE.replace("sglang", "vllm") + "args: {connector: moriio}", "roles.agg.args.connector is moriio", 9),
    (HEAD + "engine: vllm\nroles:\n  prefill: {nodes: 1}\n  decode:\n    nodes: colocate", "does not say its gpus:", 9),
    ("schema: 2\nname: n\nengine: sglang\n" + AGG, "no resources.gpus_per_node", 0),
    ("schema: 2\nname: n\nengine: sglang\n" + AGG, "no model.precision", 0),
    ("schema: 2\nname: n\nengine: sglang\n" + AGG, "no resources.gpu_type", 0),
    (SGLANG.replace("gpu_type: mi355x", "agg_nodes: 3"), "no resources.agg_nodes", 4),
    ("name: n\nresources: {agg_nodes: 1}\nroller: 1", "no roller", 3),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "line"), NOT_SAID)
def test_what_schema_1_cannot_say(make: Make, text: str, words: str, line: int) -> None:
    _, findings = to_schema_1(make(text))
    [finding] = [finding for finding in findings if words in finding.message]
    assert (finding.rule, finding.severity) == (RULE, Severity.ERROR)
    assert finding.fix
    assert finding.span is not None
    assert finding.span.line == line


@pytest.mark.parametrize("connector", ["nixl", "LMCache", "kvbm", "none", '{"kv_connector": "x"}'])
def test_a_connector_that_the_pin_knows(make: Make, connector: str) -> None:
    text = HEAD + AGG + f"engine: {{type: vllm, connector: '{connector}'}}"
    assert to_schema_1(make(text))[1] == ()


def test_the_variable_of_visible_devices_goes_by_another_name(make: Make) -> None:
    recipe = make(HEAD + AGG + "engine:\n  type: vllm\n  set_visible_devices: true")
    document, [finding] = to_schema_1(recipe)
    assert document["backend"] == {"type": "vllm", "set_cuda_visible_devices": True}
    assert (finding.severity, "engine.set_visible_devices" in finding.message) == (Severity.WARNING, True)
    assert from_schema_1(document)["engine"] == {"type": "vllm", "set_visible_devices": True}
    document, findings = to_schema_1(make(HEAD + AGG + "engine: {type: vllm, set_visible_devices: false}"))
    assert (document["backend"], findings) == ({"type": "vllm"}, ())


def test_all_that_cannot_be_said_is_said_at_once(make: Make) -> None:
    _, findings = to_schema_1(make(SGLANG + "host_setup: {}\npost_eval: {}\nfrontend: {container_image: x, type: y}"))
    assert len(findings) == 4


def test_a_schema_1_recipe_is_held_against_the_same_fields(make: Make) -> None:
    text = """
        name: n
        model: {path: m, container: c, precision: fp8}
        resources: {gpu_type: x, agg_nodes: 1, agg_workers: 1}
        backend: {type: vllm, vllm_config: {aggregated: {a: 0.50}}}
        """
    document, findings = to_schema_1(make(text))
    assert findings == ()
    assert document["backend"]["vllm_config"] == {"aggregated": {"a": 0.5}}
    assert type(document["backend"]["vllm_config"]["aggregated"]["a"]) is float


def test_nothing_but_builtin_types_comes_out(shipped: list[Recipe]) -> None:
    def types(value: Any) -> set[type]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return {type(value)}.union(*map(types, inner))

    found = set().union(*(types(to_schema_1(recipe)[0]) for recipe in shipped[::11]))
    assert found <= {dict, list, str, int, float, bool, type(None)}
