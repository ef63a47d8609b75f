"""A curve, how each engine drafts, and what it is given for the length of three tokens."""

from typing import Any

from matrix.config.source import Map, Seq
from matrix.recipes.acceptance import AcceptanceRequest

CURVE = """\
identity: {model-prefixes: [m], methods: [mtp, eagle, dspark]}
model: {thinking_on: {1: 1.84, 2: 2.50, 3: 2.78, 6: 3}, thinking_off: {3: 1.5}}
"""
DRAFTS = {
    "vllm": 'speculative-config: \'{"method": "mtp", "num_speculative_tokens": 3}\'',
    "sglang": "speculative-algorithm: EAGLE, speculative-num-steps: 3",
    "trtllm": "speculative_config: {decoding_type: MTP, max_draft_len: 3}",
    "atom": "method: mtp, num-speculative-tokens: 3",
    "tilert": "with-mtp: true, num-mtp: 3",
}
GIVEN: dict[str, dict[str, dict[str, Any]]] = {
    "vllm": {
        "args": {
            "speculative-config": '{"method": "mtp", "num_speculative_tokens": 3,'
            ' "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.78}'
        }
    },
    "sglang": {
        "env": {
            "SGLANG_SIMULATE_ACC_LEN": "2.78",
            "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
            "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token",
        }
    },
    "trtllm": {"env": {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": "1.78"}},
    "atom": {"args": {"spec-decode-acceptance-length": 2.78}},
    "tilert": {"env": {"TILERT_SIMULATE_ACC_LEN": "2.78", "TILERT_SIMULATE_ACC_METHOD": "match-expected"}},
}
FRAMEWORK = {
    "vllm": "vllm-disagg",
    "sglang": "sglang-disagg",
    "trtllm": "trt",
    "atom": "atom-disagg",
    "tilert": "tilert",
}


def request_for(framework: str, **more: Any) -> AcceptanceRequest:
    fields: dict[str, Any] = {"model_prefix": "m", "framework": framework, "spec_decoding": "mtp", "agentic": True}
    return AcceptanceRequest(**fields | more)


def assert_marked(node: object) -> None:
    if isinstance(node, Map):
        assert node.keys() == node.marks.keys()
        for member in node.values():
            assert_marked(member)
    elif isinstance(node, Seq):
        assert len(node) == len(node.marks)
