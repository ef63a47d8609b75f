"""What is measured on: the real masters where they lie beside the checkout, else made-up ones of the same size."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Masters", "changelog", "history", "masters", "repeated", "synthetic"]

ROOT: Final = Path(__file__).resolve().parents[1]
REAL: Final = ROOT.parent / "shared" / "data" / "masters"

_RUNNERS: Final = """\
labels:
  mi355x: [mi355x-a_00, mi355x-a_01]
  cluster:mi355x-a: [mi355x-a_00, mi355x-a_01]
hardware:
  cluster:mi355x-a: { gpus-per-node: 8, available-cpu-dram-mib: 3095781 }
"""
_SINGLE: Final = """\
model{n}-fp8-mi355x-sglang:
  image: example/sglang:v0.5.{n}
  model: org/Model-{n}
  model-prefix: model{n}
  runner: mi355x
  precision: fp8
  framework: sglang
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - {{ tp: 8, ep: 1, {conc} }}
      - {{ tp: 4, ep: 1, dp-attn: false, {conc} }}
      - {{ tp: 2, spec-decoding: mtp, {conc} }}
"""
_MULTI: Final = """\
model{n}-fp4-mi355x-vllm-disagg:
  image: example/vllm:v0.26.{n}
  model: org/Model-{n}
  model-prefix: model{n}
  runner: cluster:mi355x-a
  precision: fp4
  framework: vllm-disagg
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  router:
    name: vllm-router
    version: "0.1.{n}"
  scenarios:
    agentic-coding:
    - dram-utilization: 0.80
      search-space:
"""
_ENTRY: Final = """\
      - conc-list: [{conc}]
        spec-decoding: mtp
        kv-offloading: dram
        kv-offload-backend:
          name: lmcache
        prefill:
          num-worker: {workers}
          tp: 8
          ep: 8
          dp-attn: true
          additional-settings:
          - "CONFIG_FILE=recipes/vllm/model{n}/disagg-{workers}p1d-c{conc}.yaml"
          - "NOTE=made up, and as long as the lines of a real master are"
        decode:
          num-worker: 1
          tp: 8
          ep: 8
          dp-attn: true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masters:
    """Master configs and their runners file; ``about`` says in a line what they are."""

    configs: tuple[Path, ...]
    runners: Path
    about: str

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.runners.parent

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `matrix` that name them."""
        return (*(word for path in self.configs for word in ("--config", str(path))), "--runners", str(self.runners))


def masters(folder: Path) -> Masters:
    """AMD and NVIDIA masters of August 2026, or made-up ones of as many lines and rows, written into ``folder``."""
    real = tuple(REAL / name for name in ("amd-master.yaml", "nvidia-master.yaml"))
    if all(path.is_file() for path in real):
        return Masters(configs=real, runners=REAL / "runners.yaml", about=f"the real masters, {_lines(real):,} lines")
    text = "".join(_SINGLE.format(n=n, conc="conc-start: 4, conc-end: 64") for n in range(70))
    for n in range(70):
        text += _MULTI.format(n=n)
        text += "".join(
            _ENTRY.format(n=n, conc=conc, workers=workers) for workers in (1, 2) for conc in (1, 4, 16, 64, 256)
        )
    return _written(folder, "like-real", text)


def synthetic(folder: Path, points: int) -> Masters:
    """Single-node configs with that many points in all, 1,000 to an entry at the most."""
    each = min(points, 1000)
    ladder = f"conc-list: [{', '.join(map(str, range(1, each + 1)))}]"
    entry = _SINGLE.split("      - {{ tp: 4", maxsplit=1)[0]
    text = "".join(entry.format(n=n, conc=ladder) for n in range(points // each))
    return _written(folder, f"{points}-points", text)


def repeated(folder: Path, times: int) -> Masters:
    """The shipped configs, so many times under other keys; their recipes and golden lengths are the shipped ones."""
    head, *parts = re.split(
        r"(?m)^(?=[a-z0-9.-]+:\n)", (ROOT / "configs" / "amd-master.yaml").read_text(encoding="utf-8")
    )
    copies = (part.replace(":", f"-{n:02d}:", 1) for n in range(times) for part in parts)
    made = folder / "repeated-master.yaml"
    made.write_text(head + "".join(copies), encoding="utf-8")
    return Masters(
        configs=(made,), runners=ROOT / "configs" / "runners.yaml", about=f"the shipped configs, {times} times"
    )


def changelog(folder: Path) -> tuple[Path, Path] | None:
    """The log of August 2026, 6,371 lines, and the same with one entry more; None where it does not lie there."""
    corpus = ROOT.parent / "shared" / "parity" / "changelog"
    index = corpus / "index.aug.json"
    if not index.is_file():
        return None
    good = [one for one in json.loads(index.read_text(encoding="utf-8")) if one["byte_rules_main"]["ok"]]
    newest = max(good, key=lambda one: one["head_len"])
    found = []
    for side in ("base", "head"):
        path = folder / f"{side}.yaml"
        path.write_bytes(gzip.decompress((corpus / "bytes" / f"{newest[side]}.yaml.gz").read_bytes()))
        found.append(path)
    return found[0], found[1]


def history(folder: Path) -> tuple[Path, str]:
    """A repository with two neighbouring revisions of the masters, and what they are; the newer one is checked out."""
    repository = folder / "repository"
    corpus = ROOT.parent / "shared" / "parity" / "aug"
    if (corpus / "index.json").is_file():
        index = json.loads((corpus / "index.json").read_text(encoding="utf-8"))
        for commit in index[-2:]:
            _commit(repository, {
                f"{name}.yaml": gzip.decompress((corpus / "inputs" / f"{digest}.yaml.gz").read_bytes())
                for name, digest in commit["inputs"].items()
            })  # fmt: skip
        return repository, f"{index[-2]['commit'][:8]} and {index[-1]['commit'][:8]} of the real masters"
    made = masters(folder)
    text = made.configs[0].read_bytes()
    for image in (b"example/sglang:v0.5.7\n", b"example/sglang:v0.6.0\n"):
        changed = text.replace(b"example/sglang:v0.5.7\n", image)
        _commit(repository, {"made-up-master.yaml": changed, "runners.yaml": _RUNNERS.encode()})
    return repository, "made-up masters, the image of one config changed"


def _commit(repository: Path, files: dict[str, bytes]) -> None:
    configs = repository / "configs"
    configs.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (configs / name).write_bytes(data)
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "--message", "masters")):
        subprocess.run(["git", *words], cwd=repository, check=True)


def _written(folder: Path, name: str, text: str) -> Masters:
    config, runners = folder / f"{name}-master.yaml", folder / f"{name}-runners.yaml"
    config.write_text(text, encoding="utf-8")
    runners.write_text(_RUNNERS, encoding="utf-8")
    return Masters(configs=(config,), runners=runners, about=f"made-up masters, {_lines([config]):,} lines")


def _lines(paths: tuple[Path, ...] | list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)
