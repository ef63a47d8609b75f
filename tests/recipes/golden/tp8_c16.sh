# mi355x-dsv4-pro-0813-atom-agentx-lmcache_tp8_c16: atom behind atomesh
# workers load /model, clients ask for deepseek-ai/DeepSeek-V4-Pro-0813
# batch job: --job-name=mi355x-dsv4-pro-0813-atom-agentx-lmcache_tp8_c16 --nodes=2 --time=08:00:00 --cpus-per-task=128 --mem=0
# 2 nodes of 8 GPUs:
#   <node-0>  prefill-0 on GPUs 0-7, router-0, benchmark
#   <node-1>  decode-0 on GPUs 0-7
# mounts, beside those of the cluster and of srtctl's own folder:
#   <log-dir> -> /logs  (srtctl)
#   DeepSeek-V4-Pro-0813 -> /model  (model.path)
#   $INFMAX_WORKSPACE -> /infmax-workspace  (srtctl, where it is set)
# <...> stands for what only the cluster knows: <node-0> for a name, <prefill-0> for the address of the node
# of that worker, <head> for the one of <node-0>.

# prefill-0: <node-0>, GPUs 0-7, port 6100
# srun --container-image=rocm/atom-dev:nightly_202609221542 --mem=0 --container-writable --container-remap-root
env \
  PYTHONUNBUFFERED=1 \
  PYTHONDONTWRITEBYTECODE=1 \
  SAFETENSORS_FAST_GPU=1 \
  VLLM_LOG_LEVEL=WARNING \
  ATOM_LOG_LEVEL=WARNING \
  AITER_LOG_LEVEL=WARNING \
  LOG_LEVEL=WARNING \
  LOGLEVEL=WARNING \
  ATOM_MOE_GU_ITLV=1 \
  AITER_BF16_FP8_MOE_BOUND=0 \
  MC_GID_INDEX=1 \
  ATOM_MOONCAKE_MATCHED_RAILS=auto \
  NCCL_IB_DISABLE=1 \
  ATOM_DISABLE_MMAP=true \
  ATOM_NUMA_BIND=1 \
  ATOM_DP_MASTER_PORT=29510 \
  ATOM_DP_BASE_PORT=29610 \
  ATOM_PREFIX_CACHE_POLICY=lru \
  ATOM_PREFIX_CACHE_PROTECTED_RATIO=0.5 \
  ATOM_HOST_IP='<prefill-0>' \
  python3 -m atom.entrypoints.openai_server \
    --model /model \
    --host 0.0.0.0 \
    --server-port 6100 \
    -tp 8 \
    --kv-transfer-config '{"kv_role":"kv_producer","kv_connector":"mooncake","proxy_ip":"<prefill-0>","handshake_port":5400}' \
    --attn-prefill-chunk-size 16384 \
    --block-size 256 \
    --cudagraph-mode FULL \
    --enable-prefix-caching \
    --gpu-memory-utilization 0.9 \
    --index-cache-dtype fp4 \
    --kv_cache_dtype fp8 \
    --level 3 \
    --max-model-len 1000000 \
    --max-num-batched-tokens 16384 \
    --max-num-seqs 32 \
    --method dspark \
    --num-speculative-tokens 3 \
    --served-model-name deepseek-ai/DeepSeek-V4-Pro-0813 \
    --state-checkpoint-interval-tokens 8192 \
    --trust-remote-code

# decode-0: <node-1>, GPUs 0-7, port 6100
# srun --container-image=rocm/atom-dev:nightly_202609221542 --mem=0 --container-writable --container-remap-root
env \
  PYTHONUNBUFFERED=1 \
  PYTHONDONTWRITEBYTECODE=1 \
  SAFETENSORS_FAST_GPU=1 \
  VLLM_LOG_LEVEL=WARNING \
  ATOM_LOG_LEVEL=WARNING \
  AITER_LOG_LEVEL=WARNING \
  LOG_LEVEL=WARNING \
  LOGLEVEL=WARNING \
  ATOM_MOE_GU_ITLV=1 \
  AITER_BF16_FP8_MOE_BOUND=0 \
  MC_GID_INDEX=1 \
  ATOM_MOONCAKE_MATCHED_RAILS=auto \
  NCCL_IB_DISABLE=1 \
  ATOM_DISABLE_MMAP=true \
  ATOM_NUMA_BIND=1 \
  ATOM_DP_MASTER_PORT=29510 \
  ATOM_DP_BASE_PORT=29610 \
  ATOM_PREFIX_CACHE_POLICY=lru \
  ATOM_PREFIX_CACHE_PROTECTED_RATIO=0.5 \
  ATOM_HOST_IP='<decode-0>' \
  python3 -m atom.entrypoints.openai_server \
    --model /model \
    --host 0.0.0.0 \
    --server-port 6100 \
    -tp 8 \
    --kv-transfer-config '{"kv_role":"kv_consumer","kv_connector":"mooncake","proxy_ip":"<decode-0>","handshake_port":5401}' \
    --attn-prefill-chunk-size 16384 \
    --block-size 256 \
    --cudagraph-capture-sizes '[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32]' \
    --cudagraph-mode FULL \
    --enable-prefix-caching \
    --gpu-memory-utilization 0.9 \
    --index-cache-dtype fp4 \
    --kv_cache_dtype fp8 \
    --level 3 \
    --max-model-len 1000000 \
    --max-num-batched-tokens 16384 \
    --max-num-seqs 32 \
    --method dspark \
    --num-speculative-tokens 3 \
    --served-model-name deepseek-ai/DeepSeek-V4-Pro-0813 \
    --state-checkpoint-interval-tokens 8192 \
    --trust-remote-code

# router-0: <node-0>, port 8000
# srun --container-image=rocm/atom-dev:nightly_202609221542 --mem=0 --container-writable --container-remap-root
atomesh launch \
  --pd-disaggregation \
  --prefill 'http://<prefill-0>:6100' \
  --decode 'http://<decode-0>:6100' \
  --host 0.0.0.0 \
  --port 8000 \
  --backend atom \
  --log-level info \
  --disable-health-check \
  --disable-circuit-breaker \
  --prometheus-port 29100 \
  --prefill-policy round_robin \
  --decode-policy round_robin \
  --atom-pd-rank-mapping-policy none

# benchmark: <node-0>
# srun --container-image=rocm/atom-dev:nightly_202609221542 --mem=0 --container-writable --container-remap-root
env \
  SRTCTL_FRONTEND_TYPE=atomesh \
  SRT_FRONTEND_HOST='<head>' \
  SRT_FRONTEND_PORT=8000 \
  SRT_PREFILL_IPS='<prefill-0>' \
  SRT_PREFILL_ENDPOINTS='<prefill-0>:6100' \
  SRT_DECODE_IPS='<decode-0>' \
  SRT_DECODE_ENDPOINTS='<decode-0>:6100' \
  AIPERF_SERVER_METRICS_URLS='http://<prefill-0>:6100/metrics,http://<decode-0>:6100/metrics' \
  MODEL=deepseek-ai/DeepSeek-V4-Pro-0813 \
  RESULT_DIR=/infmax-workspace/LOGS/agentic \
  AGENTIC_OUTPUT_DIR=/infmax-workspace \
  AIPERF_REQUIRED_SERVER_METRIC_PREFIX=atom: \
  AIPERF_DATASET_MMAP_CACHE_DIR=/aiperf_mmap_cache \
  HF_HUB_CACHE=/hf_hub_cache/hub \
  TOKENIZERS_PARALLELISM=false \
  TRANSFORMERS_VERBOSITY=error \
  CONC=16 \
  bash -lc 'bash /infmax-workspace/benchmarks/srt_agentic.sh'
