"""What a cluster will be told, without a cluster.

The five variants of the agentic ATOM config are held by golden files, and
`pytest tests/recipes --update-golden` writes them anew. That srtctl says the same is shown by test_pin.py.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.recipes.commands import Commands, Process, commands_of
from matrix.recipes.environment import Origin
from matrix.report.commands import lines_of, render_text

if TYPE_CHECKING:
    from matrix.recipes.recipe import Recipe, RecipeBook
    from tests.recipes.conftest import Make

SEED: Final = "dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml"
VARIANTS: Final = ("tp8_c1", "tp8_c16", "dpa8_c64", "dpa8_c128", "dpa8_c256_lmcache")
GOLDEN: Final = Path(__file__).with_name("golden")


def flags(process: Process, start: int) -> dict[str, list[str]]:
    """Each flag of a command with its values."""
    found: dict[str, list[str]] = {}
    for word in process.argv[start:]:
        if word.startswith("--") or word == "-tp":
            found[word] = []
        else:
            list(found.values())[-1].append(word)
    return found


def worker(commands: Commands, name: str) -> Process:
    return next(process for process in commands.workers if process.name == name)


def env_of(process: Process) -> dict[str, str]:
    return {variable.name: variable.value for variable in process.env}


@pytest.fixture(scope="module")
def seed(book: RecipeBook) -> dict[str, Commands]:
    return {name: commands_of(book.resolve(f"{SEED}:override_{name}")) for name in VARIANTS}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_seed_is_told_as_its_golden_file_says(
    seed: dict[str, Commands], name: str, pytestconfig: pytest.Config
) -> None:
    file = GOLDEN / f"{name}.sh"
    text = render_text(seed[name])
    if pytestconfig.getoption("--update-golden", default=False):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_golden_file_is_one_of_the_variants() -> None:
    assert sorted(file.stem for file in GOLDEN.iterdir()) == sorted(VARIANTS)


# -- the seed, fact by fact -----------------------------------------------------------------------------------------

SHARED: Final = {
    "--attn-prefill-chunk-size": ["16384"],
    "--block-size": ["256"],
    "--cudagraph-mode": ["FULL"],
    "--enable-prefix-caching": [],
    "--gpu-memory-utilization": ["0.9"],
    "--index-cache-dtype": ["fp4"],
    "--kv_cache_dtype": ["fp8"],
    "--level": ["3"],
    "--max-model-len": ["1000000"],
    "--max-num-batched-tokens": ["16384"],
    "--method": ["dspark"],
    "--num-speculative-tokens": ["3"],
    "--served-model-name": ["deepseek-ai/DeepSeek-V4-Pro-0813"],
    "--state-checkpoint-interval-tokens": ["8192"],
    "--trust-remote-code": [],
}
MOONCAKE: Final[dict[str, dict[str, Any]]] = {
    "prefill": {
        "kv_role": "kv_producer",
        "kv_connector": "mooncake",
        "proxy_ip": "<prefill-0>",
        "handshake_port": 5400,
    },
    "decode": {"kv_role": "kv_consumer", "kv_connector": "mooncake", "proxy_ip": "<decode-0>", "handshake_port": 5401},
}
LMCACHE: Final = {
    "kv_connector": "lmcache_offload",
    "kv_role": "offload",
    "offload_layout": "hybrid",
    "max_pending_saves": 8,
    "slot_sidecar_staging_slots": 4,
    "lmcache.local_cpu": True,
    "lmcache.max_local_cpu_size": 187,
    "lmcache.local_disk": None,
    "lmcache.max_local_disk_size": 0,
    "lmcache.remote_url": None,
    "lmcache.chunk_size": 256,
    "lmcache.cache_policy": "LRU",
    "lmcache.lookup_server_worker_ids": [],
    "lmcache.store_location": "LocalCPUBackend",
    "lmcache.retrieve_locations": ["LocalCPUBackend"],
}
PER_VARIANT: Final = {
    # concurrency, DP attention, last size that decode captures
    "tp8_c1": (1, False, 2),
    "tp8_c16": (16, False, 32),
    "dpa8_c64": (64, True, 16),
    "dpa8_c128": (128, True, 32),
    "dpa8_c256_lmcache": (256, True, 64),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_worker_flags_of_the_seed(seed: dict[str, Commands], name: str, role: str) -> None:
    conc, dpa, captured = PER_VARIANT[name]
    process = worker(seed[name], f"{role}-0")
    assert process.argv[:3] == ("python3", "-m", "atom.entrypoints.openai_server")
    found = flags(process, 3)
    owned = ["--model", "--host", "--server-port", "-tp", "--kv-transfer-config"]
    assert list(found)[:5] == owned
    assert [found[flag] for flag in owned[:4]] == [["/model"], ["0.0.0.0"], ["6100"], ["8"]]  # noqa: S104
    expected = {**SHARED, "--max-num-seqs": [str(2 * conc)]}
    if dpa:
        expected["--enable-dp-attention"] = []
    if dpa and role == "prefill":
        expected["--enable-tbo"] = []
    if role == "decode":
        expected["--cudagraph-capture-sizes"] = [f"[{','.join(map(str, range(1, captured + 1)))}]"]
    rest = {flag: values for flag, values in found.items() if flag not in owned}
    assert rest == expected
    assert list(rest) == sorted(rest)


@pytest.mark.parametrize("name", VARIANTS)
def test_connectors_of_the_seed(seed: dict[str, Commands], name: str) -> None:
    told = {role: flags(worker(seed[name], f"{role}-0"), 3)["--kv-transfer-config"] for role in MOONCAKE}
    [prefill], [decode] = told["prefill"], told["decode"]
    wanted = MOONCAKE["prefill"]
    if name == "dpa8_c256_lmcache":
        wanted = {"kv_connector": "multi", "connectors": [MOONCAKE["prefill"], LMCACHE]}
    # Text, not values: the order of keys and the compact form are part of what ATOM is told.
    assert prefill == json.dumps(wanted, separators=(",", ":"))
    assert decode == json.dumps(MOONCAKE["decode"], separators=(",", ":"))


def test_environment_of_the_seed(seed: dict[str, Commands]) -> None:
    plain = env_of(worker(seed["tp8_c1"], "prefill-0"))
    assert len(plain) == 20
    assert plain["ATOM_HOST_IP"] == "<prefill-0>"
    assert env_of(worker(seed["tp8_c1"], "decode-0")) == {**plain, "ATOM_HOST_IP": "<decode-0>"}
    dpa = {**plain, "ATOM_ENABLE_PREFILL_DELAYER": "0"}
    assert env_of(worker(seed["dpa8_c64"], "prefill-0")) == {**dpa, "GPU_MAX_HW_QUEUES": "5"}
    assert env_of(worker(seed["dpa8_c64"], "decode-0")) == {**dpa, "ATOM_HOST_IP": "<decode-0>"}
    assert env_of(worker(seed["dpa8_c256_lmcache"], "prefill-0")) == {
        **dpa,
        "GPU_MAX_HW_QUEUES": "5",
        "PYTHONHASHSEED": "0",
        "OFFLOAD_COPY_WORKERS": "1",
        "OFFLOAD_MIN_LOAD_TOKENS": "8192",
        "OFFLOAD_SLOT_STAGING_SLOTS": "4",
    }


def test_the_router_of_the_seed_keeps_the_order_of_the_recipe(seed: dict[str, Commands]) -> None:
    [router] = seed["dpa8_c64"].routers
    assert shlex.join(router.argv) == (
        "atomesh launch --pd-disaggregation --prefill 'http://<prefill-0>:6100' --decode 'http://<decode-0>:6100' "
        "--host 0.0.0.0 --port 8000 --backend atom --log-level info --disable-health-check --disable-circuit-breaker "
        "--prometheus-port 29100 --dp-aware --prefill-policy cache_aware --decode-policy cache_aware "
        "--cache-threshold 0.8 --balance-abs-threshold 20 --balance-rel-threshold 2.0 --eviction-interval 300 "
        "--atom-pd-rank-mapping-policy none"
    )
    assert (router.port, router.node, router.env) == (8000, 0, ())


def test_the_rest_of_the_seed(seed: dict[str, Commands]) -> None:
    commands = seed["dpa8_c256_lmcache"]
    assert (commands.model, commands.served) == ("/model", "deepseek-ai/DeepSeek-V4-Pro-0813")
    assert commands.nodes == (("prefill-0", "router-0", "benchmark"), ("decode-0",))
    assert {process.container for process in commands.processes} == {"rocm/atom-dev:nightly_202609221542"}
    assert {process.srun for process in commands.processes} == {
        ("--mem=0", "--container-writable", "--container-remap-root")
    }
    assert commands.sbatch[1:] == ("--nodes=2", "--time=08:00:00", "--cpus-per-task=128", "--mem=0")
    env = env_of(commands.benchmark)
    assert (env["MODEL"], env["CONC"]) == (commands.served, "256")
    assert commands.benchmark.argv == ("bash", "-lc", "bash /infmax-workspace/benchmarks/srt_agentic.sh")
    assert [(mount.source, mount.target) for mount in commands.mounts] == [
        ("<log-dir>", "/logs"),
        ("DeepSeek-V4-Pro-0813", "/model"),
        ("$INFMAX_WORKSPACE", "/infmax-workspace"),
    ]


# -- every shipped recipe -------------------------------------------------------------------------------------------


def test_every_shipped_recipe_is_told(shipped: list[Recipe]) -> None:
    silent = set()
    for recipe in shipped:
        commands = commands_of(recipe)
        assert render_text(commands).startswith(f"# {recipe.data['name']}: ")
        assert env_of(commands.benchmark)["CONC"] == recipe.data["benchmark"]["env"]["CONC"]
        assert sum(map(len, commands.nodes)) == len(commands.processes)
        silent |= {(recipe.reference.path, process.why) for process in commands.processes if not process.argv}
    assert silent == {
        (
            "qwen3-0.6b/vllm/mi300x-fp16/128-32/disagg.yaml",
            "the pinned srtctl does not start the engine vllm behind the frontend vllm-router",
        ),
        ("qwen3-0.6b/vllm/mi300x-fp16/128-32/disagg.yaml", "the pinned srtctl has no frontend vllm-router"),
    }


def test_a_process_without_a_command_shows_the_recipe_s_variables_alone(book: RecipeBook) -> None:
    commands = commands_of(book.resolve("qwen3-0.6b/vllm/mi300x-fp16/128-32/disagg.yaml:override_1p1d_tp1_c1"))
    assert {variable.origin for process in commands.workers for variable in process.env} == {Origin.OWN}


def test_the_gpu_mask_bears_the_name_the_cluster_gives_it(book: RecipeBook) -> None:
    recipe = book.resolve("qwen3-0.6b/atom/mi300x-fp16/128-32/agg.yaml:override_2w_tp1_c1")
    for name in ("ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        commands = commands_of(recipe, visible_devices=name)
        assert [env_of(process)[name] for process in commands.workers] == ["0", "1"]


ROUTER: Final = """
    schema: 2
    name: n
    engine: %s
    model: {path: m, container: image}
    srun_options: {mem: "0"}
    roles: {prefill: {nodes: 1, gpus: 4}, decode: {nodes: 1, gpus: 4}}
    frontend:
      type: %s
      enable_multiple_frontends: %s
      args: {z_last: 1, a_first: true, list: [a, b], off: false, none: null}
"""


def test_atomesh_takes_hyphens_a_flag_a_member_and_the_recipe_s_srun_options(make: Make) -> None:
    [router] = commands_of(make(ROUTER % ("atom", "atomesh", "false"))).routers
    assert router.argv[-7:] == ("--z-last", "1", "--a-first", "--list", "a", "--list", "b")
    assert router.srun == ("--mem=0",)


def test_sglang_s_router_takes_keys_as_they_are_and_a_bootstrap_port(make: Make) -> None:
    [router] = commands_of(make(ROUTER % ("sglang", "sglang", "false"))).routers
    assert shlex.join(router.argv) == (
        "python -m sglang_router.launch_router --pd-disaggregation --prefill 'http://<prefill-0>:6100' 7200 "
        "--decode 'http://<decode-0>:6100' --host 0.0.0.0 --port 8000 --z_last 1 --a_first --list '['\"'\"'a'\"'\"', "
        "'\"'\"'b'\"'\"']'"
    )
    assert router.srun == ()


def test_several_routers_stand_behind_nginx(make: Make) -> None:
    commands = commands_of(make(ROUTER % ("sglang", "sglang", "true")))
    assert [(process.name, process.node, process.port) for process in commands.routers] == [
        ("nginx", 0, 8000),
        ("router-0", 1, 8180),
    ]


# -- the text -------------------------------------------------------------------------------------------------------


def test_what_is_printed_is_what_a_shell_reads(seed: dict[str, Commands], tmp_path: Path) -> None:
    """bash runs each printed block with a program that repeats its arguments in the place of env and atomesh."""
    for name in ("env", "atomesh"):
        (tmp_path / name).write_text('#!/bin/bash\nprintf "%s\\0" "${0##*/}" "$@"\nprintf "\\n"\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    commands = seed["dpa8_c256_lmcache"]
    done = subprocess.run(
        ["/bin/bash", "-c", render_text(commands)],
        env={"PATH": f"{tmp_path}:/bin:/usr/bin"},
        capture_output=True,
        check=True,
    )
    printed = [line.split("\0")[:-1] for line in done.stdout.decode().splitlines()]
    expected = [
        [*(["env", *(f"{v.name}={v.value}" for v in process.env)] if process.env else []), *process.argv]
        for process in commands.processes
    ]
    assert printed == expected


def test_a_flag_and_its_values_share_a_line() -> None:
    argv = ["python3", "-m", "x", "--urls", "a", "b", "--on", "--n", "-1", "-tp", "8", "--last"]
    assert lines_of(argv) == ["python3 -m x", "--urls a b", "--on", "--n -1", "-tp 8", "--last"]


def test_a_process_without_a_command_says_why(book: RecipeBook) -> None:
    text = render_text(commands_of(book.resolve("qwen3-0.6b/vllm/mi300x-fp16/128-32/disagg.yaml:override_1p1d_tp1_c1")))
    assert "# no command: the pinned srtctl has no frontend vllm-router" in text
