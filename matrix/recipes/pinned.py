"""What the pinned srtctl reads of a schema 1 recipe: fields by section, engines, frontends, benchmarks.

Source: the loaders of srt-slurm at the commit of the submodule, and what our patches add to them (engine ``atom``,
frontend ``atomesh``). A test holds these tables against the submodule itself, so a moved pin shows here first.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BENCHMARKS",
    "ENGINES",
    "FIELDS",
    "FRONTENDS",
    "REQUIRED",
    "STRING_MAPS",
    "VLLM_CONNECTORS",
    "WITHOUT_ETCD_NATS",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EXPORTER: Final = frozenset({"container_image", "port", "command"})
_PHASE: Final = frozenset({"start_step", "stop_step"})

FIELDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "": _words(
            "name model resources slurm backend frontend dynamo benchmark profiling output health_check infra "
            "observability telemetry environment container_mounts extra_mount srun_options sbatch_directives "
            "enable_config_dump setup_script identity reporting"
        ),
        "model": frozenset({"path", "container", "precision", "stage_dir"}),
        "identity": frozenset({"model", "container", "frameworks"}),
        "identity.model": frozenset({"repo", "revision"}),
        "identity.container": frozenset({"image"}),
        "resources": _words(
            "gpu_type gpus_per_node spread_workers het_jobs prefill_nodes prefill_workers gpus_per_prefill "
            "decode_nodes decode_workers gpus_per_decode agg_nodes agg_workers gpus_per_agg"
        ),
        "slurm": frozenset({"account", "partition", "time_limit"}),
        "frontend": _words(
            "type enable_multiple_frontends num_additional_frontends nginx_container nginx_raise_ulimit "
            "nginx_session_affinity nginx_session_affinity_header nginx_keepalive_timeout args env ctx_router "
            "gen_router server_config_extra orchestrator_placement dedicated_node"
        ),
        "benchmark": _words(
            "type isl osl concurrencies req_rate client_placement client_dedicated_node colocate_with_frontend sweep "
            "num_examples max_tokens repeat num_threads max_context_length categories num_shots temperature top_p "
            "top_k num_requests concurrency prefix_ratios mooncake_workload ttft_threshold_ms itl_threshold_ms "
            "random_range_ratio num_prompts_mult num_warmup_mult dataset_name dataset_path trace_file "
            "custom_tokenizer use_chat_template reuse_http_connections command container_image env aiperf_package "
            "aiperf_args export_node_metrics slow_down_sleep_time slow_down_wait_time"
        ),
        "dynamo": _words("install version hash top_of_tree wheel request_plane event_plane cargo_patches"),
        "profiling": _words(
            "type extra_nsys_args prefill decode aggregated delay_secs duration_secs benchmark_duration_secs"
        ),
        "profiling.prefill": _PHASE,
        "profiling.decode": _PHASE,
        "profiling.aggregated": _PHASE,
        "output": frozenset({"log_dir"}),
        "health_check": frozenset({"max_attempts", "interval_seconds"}),
        "infra": frozenset({"etcd_nats_dedicated_node", "nats_max_payload_mb"}),
        "observability": _words(
            "enabled enable_otel otel_endpoint scrape_metrics scrape_interval_seconds scrape_output build_dashboard "
            "tachometer"
        ),
        "observability.tachometer": _words(
            "enabled binary_path default_frequency sync_interval_secs compaction_threads storage_subdir "
            "extra_metadata dcgm_exporter node_exporter"
        ),
        "observability.tachometer.dcgm_exporter": _EXPORTER,
        "observability.tachometer.node_exporter": _EXPORTER,
        "telemetry": _words(
            "enabled dcgm_exporter default_frequency storage_subdir required startup_timeout_seconds "
            "request_timeout_seconds collector_join_timeout_seconds"
        ),
        "telemetry.dcgm_exporter": _EXPORTER,
        "reporting": frozenset({"status", "ai_analysis", "s3"}),
    }
)
"""Fields of each section by its dotted path; the document itself is ``""``. What is not listed is free or a scalar."""

REQUIRED: Final = ("name", "model.path", "model.container", "model.precision", "resources.gpu_type")
"""Without these a recipe does not load."""

STRING_MAPS: Final = frozenset(
    {"environment", "srun_options", "sbatch_directives", "frontend.env", "benchmark.env", "identity.frameworks"}
)
"""Mappings whose values have to be strings; a number or a boolean there is refused at load."""

ENGINES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "atom": frozenset({"connector", "mooncake_protocol"}),
        "mocker": _words(
            "engine_type speedup_ratio decode_speedup_ratio num_gpu_blocks_override max_num_seqs "
            "max_num_batched_tokens block_size data_parallel_size num_workers startup_time kv_transfer_bandwidth "
            "kv_cache_dtype enable_prefix_caching enable_chunked_prefill preemption_mode"
        ),
        "sglang": frozenset({"gpu_type", "kv_events_config", "mooncake_kv_store"}),
        "trtllm": frozenset({"publish_events_and_metrics", "sequential_node_start", "numa_memory_bind"}),
        "vllm": _words(
            "set_cuda_visible_devices connector mooncake_kv_store kv_events_config allow_prefill_decode_colocation "
            "allow_prefill_decode_colocation_across_nodes dp_launch_mode"
        ),
    }
)
"""Engines with the settings of their own, beside type, environments and ``<engine>_config``."""

FRONTENDS: Final = frozenset({"dynamo", "sglang", "trtllm_serve", "vllm", "atomesh"})

WITHOUT_ETCD_NATS: Final = frozenset({"trtllm_serve", "vllm", "atomesh"})
"""Frontends for which neither etcd nor NATS is started; every other one gets both."""

BENCHMARKS: Final = _words(
    "custom gpqa gsm8k lm-eval longbenchv2 manual mmlu mooncake-router router sa-bench sglang-bench trace-replay"
)

VLLM_CONNECTORS: Final = frozenset({"nixl", "lmcache", "kvbm", "null", "none"})
"""Words that stand for a connector; any other text reaches vLLM as JSON."""
