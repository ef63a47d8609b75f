"""Other ways to be right: what is written differently and means the same is not told."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from tests.checks.breaks import MASTER, MU, NU, XI, Edit
from tests.checks.support import Repository


class Right(NamedTuple):
    what: str
    edits: tuple[Edit, ...]


def right(what: str, *edits: Edit) -> Right:
    return Right(what, edits)


RIGHTS: Final = (
    right("image as pyxis takes it", (MU, 4, "lab/atom", "docker://lab#atom")),
    right("root spelled as InferenceX does", (MASTER, 74, "recipes/", "benchmarks/multi_node/srt-slurm-recipes/")),
    right("model folder in capitals", (NU, 4, "/models/Nu", "/models/NU/")),
    right("no gpus_per_node", (XI, 5, ", gpus_per_node: 8", "")),
    right("no precision in the recipe", (XI, 3, ", precision: fp16", "")),
    right("nodes of the recipe in a setting", (MASTER, 74, '"]', '", PREFILL_NODES=1]')),
    right("sizes written as text", (NU, 24, "8", '"8"'), (XI, 14, "2", '"2"')),
    right("sizes by their other names", (NU, 25, "ep-size", "expert_parallel_size"), (XI, 14, "tensor-", "tensor_")),
    right("expert parallelism by exchange", (NU, 25, "ep-size: 8", "moe-a2a-backend: mori")),
    right(
        "expert parallelism raised by exchange", (NU, 25, "ep-size: 8", "ep-size: 4\n        moe-a2a-backend: deepep")
    ),
    right("no exchange", (NU, 25, "ep-size: 8", "ep-size: 8\n        moe-a2a-backend: none")),
    right(
        "data-parallel vLLM",
        (MASTER, 73, "dp-attn: false", "dp-attn: true"),
        (XI, 14, "tensor-parallel-size: 2", "data-parallel-size: 2"),
    ),
    right(
        "pipeline stages",
        (MASTER, 73, "tp: 2", "tp: 2, pp: 2"),
        (XI, 11, "2", "4"),
        (XI, 14, "2", "2\n      pipeline-parallel-size: 2"),
    ),
    right("rank-aware router spelled with underscores", (MU, 64, "dp-aware", "dp_aware")),
    right(
        "Dynamo in front, several frontends",
        (MASTER, 39, "sglang-router", "dynamo-router"),
        (NU, 46, "sglang", "dynamo"),
        (NU, 47, "false", "true"),
        (NU, 48, ", dp-aware: true", ""),
    ),
    right("several routers that remember nothing", (NU, 47, "false", "true")),
    right("concurrency as a number", (MU, 43, '"16"', "16")),
    right("concurrency as a list", (XI, 21, '"4"', "[4]")),
    right("concurrency said twice, alike", (XI, 22, "{MODEL", '{CONC: "4", MODEL')),
    right(
        "one job of several fixed-length concurrencies",
        (MASTER, 71, "[4]", "[2, 4]"),
        (XI, 21, '"4"', '"2x4"'),
    ),
    right("a range", (MASTER, 71, "conc-list: [4]", "conc-start: 1\n            conc-end: 4"), (XI, 21, "4", "1 2 4")),
    right("time limit in days", (MU, 5, "08:00:00", "1-0")),
    right("time limit in minutes", (XI, 4, '"00:45:00"', "45")),
    right("time limit of minutes and seconds", (XI, 4, "00:45:00", "45:00")),
    right("no time limit at all, said so", (XI, 4, "00:45:00", "UNLIMITED")),
    right("no graphs", (MU, 61, "cuda", "enforce-eager: true\n        cuda"), (MU, 59, "512", "8192")),
    right("ATOM's own admission", (MU, 59, "        max-num-seqs: 512\n", "")),
    right(
        "dense graphs up to 64",
        (MU, 37, "32", "256"),
        (MU, 40, "32", "256"),
        (MU, 41, "16,32", "16,32,64"),
    ),
    right("SGLang leaves out sizes it cannot reach", (NU, 43, "16]", "16, 512]")),
    right(
        "size of the tier in its environment",
        (MU, 48, "{", '{LMCACHE_MAX_LOCAL_CPU_SIZE: "187", '),
        (MU, 56, "            lmcache.max_local_cpu_size: 187\n", ""),
    ),
    right("no size of the tier", (MU, 56, "            lmcache.max_local_cpu_size: 187\n", "")),
    right(
        "hash seed for all",
        (MU, 48, 'PYTHONHASHSEED: "0", ', ""),
        (MU, 29, "  benchmark:", '  environment: {PYTHONHASHSEED: "0"}\n  benchmark:'),
    ),
    right("spelled anew for a new image", (MU, 17, "kv_cache_dtype", "kv-cache-dtype")),
    right(
        "an image without a date",
        (MASTER, 2, "nightly_20260922", "v1"),
        (MU, 4, "nightly_20260922", "v1"),
        (MU, 17, "kv_cache_dtype", "kv-cache-dtype"),
    ),
    right(
        "no client name and no client that asks", (MU, 32, "    env:\n", ""), (MU, 33, "      MODEL: lab/Mu-Pro\n", "")
    ),
    right(
        "served by another name, asked for it",
        (MU, 18, "level: 3", "served-model-name: it"),
        (MU, 33, "lab/Mu-Pro", "it"),
    ),
    right("connector by its class", (XI, 6, "connector: null", "connector: NixlConnector")),
    right(
        "NIXL, which vLLM takes by itself",
        (MASTER, 65, "false", "true\n  kv-p2p-transfer: nixl\n  router: {name: vllm-router, version: '1'}"),
        (MASTER, 72, "num-nodes: 1", "decode: {num-worker: 2, tp: 2, ep: 1, dp-attn: false}"),
        (MASTER, 73, "worker: {", "prefill: {"),
        (XI, 6, ", connector: null", ""),
        (XI, 8, "agg:", "prefill: &one"),
        (XI, 15, "max-num-seqs: 8", "max-num-seqs: 8\n  decode: *one"),
        (XI, 16, "vllm", "vllm-router, enable_multiple_frontends: false"),
    ),
    right(
        "the same recipe on both roles",
        (MASTER, 21, "false}", 'false, additional-settings: ["CONFIG_FILE=recipes/mu.yaml:override_tp8_c16"]}'),
    ),
)


@pytest.mark.parametrize("case", RIGHTS, ids=lambda case: case.what)
def test_the_same_thing_said_otherwise_is_right(case: Right, repository: Repository) -> None:
    for name, line, old, new in sorted(case.edits, key=lambda edit: -edit[1]):
        repository.edit(name, line, old, new)
    answer = repository.check("--strict")
    assert answer.findings == []
    assert answer.status == 0
