"""Stands in for the benchmark client: asks for the model that it is told, and writes down what it measured."""

import json
import os
import re
import sys
import urllib.request
from pathlib import Path

NEEDED = ("MODEL", "MODEL_PREFIX", "FRAMEWORK", "PRECISION", "CONC", "RESULT_FILENAME", "EVAL_ONLY", "CONC_LIST")


def get(url: str, body: dict[str, object] | None = None) -> bytes:
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=10) as answer:  # noqa: S310
        content: bytes = answer.read()
    return content


def main(target: str) -> None:
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        sys.exit(f"not set: {', '.join(missing)}")
    conc = int(os.environ["CONC"])
    base = f"http://{os.environ['SRT_FRONTEND_HOST']}:{os.environ['SRT_FRONTEND_PORT']}"
    texts = set()
    for _ in range(conc):
        answer = json.loads(get(f"{base}/v1/completions", {"model": os.environ["MODEL"], "prompt": "x"}))
        texts.add(answer["choices"][0]["text"])
    record: dict[str, object] = {"completed": conc, "num_prompts": conc, "answered-by": sorted(texts)}
    if target == "agentic":
        workers = [
            f"http://{endpoint}"
            for role in ("PREFILL", "DECODE")
            for endpoint in os.environ.get(f"SRT_{role}_ENDPOINTS", "").split(",")
        ]
        found = [re.search(r"per_forward ([0-9.]+)", get(f"{worker}/metrics").decode()) for worker in workers]
        lengths = [float(match[1]) for match in found if match]
        record |= {
            "num_requests_total": conc,
            "num_requests_successful": conc,
            "server_metrics": [{"mtp_average_tokens_per_forward": length} for length in lengths],
        }
        name = f"{os.environ['RESULT_FILENAME']}_conc{conc}.json"
        path = Path(os.environ["AGENTIC_OUTPUT_DIR"]) / name
        Path(os.environ["RESULT_DIR"]).mkdir(parents=True, exist_ok=True)
        (Path(os.environ["RESULT_DIR"]) / "raw.txt").write_text("raw\n")
    else:
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    Path("/written-outside-of-any-mount").write_text("gone with the step")


if __name__ == "__main__":
    main(sys.argv[1])
