"""`Point`: one job. Its id, name, row, fingerprint and digest.

A `Deployment` is what the points of one search-space entry share: everything but the concurrency. What its points have
in common as text (row, canonical row, digest payload) is made once, and a point fills in what is its own: that is what
keeps a million points linear and fast.
"""

from __future__ import annotations

import re
from hashlib import sha256
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.model import Aggregated, ScenarioKind, SingleNode
from matrix.config.source import plain
from matrix.points.row import AGENTIC_SECONDS, CONFIG_FILE, scenario_name, template_of

if TYPE_CHECKING:
    from matrix.config.model import Config, Entry, Scenario, Worker
    from matrix.recipes.recipe import Recipe

__all__ = ["Deployment", "Evaluation", "Point", "Stack"]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SPEC_TAG: Final = {"none": "", "mtp": "-mtp", "draft_model": "-draft"}
_SLOT: Final = -7_770_777
"""Stands for the concurrency in a text; no concurrency is negative."""

_encode: Final = JSONEncoder(check_circular=False).encode
_canonical: Final = JSONEncoder(check_circular=False, sort_keys=True, separators=(",", ":")).encode
_NO_RUN_EVAL: Final = '"run-eval":false,'


class Stack(NamedTuple):
    """The software below a recipe: the pin of the submodule and its patches as sorted ``(file, sha256)`` pairs."""

    pin: str = ""
    patches: tuple[tuple[str, str], ...] = ()


class Evaluation(NamedTuple):
    """An accuracy run. ``conc``: the one evaluated of a multi-node point's list; ``all_concs``: whether all are."""

    framework: str
    suite: str
    conc: int | None = None
    all_concs: bool | None = None

    def fields(self) -> dict[str, Any]:
        """Its fields of a row."""
        fields: dict[str, Any] = {"eval-framework": self.framework, "eval-suite": self.suite}
        if self.conc is not None:
            fields["eval-conc"] = self.conc
        if self.all_concs is not None:
            fields["eval-all-concs"] = self.all_concs
        return fields


class _Texts(NamedTuple):
    """What the points of a deployment share as text, cut where a point's own values go."""

    canonical: str
    fingerprint: str
    digest: tuple[str, str]
    row: tuple[str, str, str] | None


class Deployment:
    """A topology of one config and scenario on one runner, at any concurrency. Never changed once made.

    ``runner`` is the row's: the config's label, or a node of it when ``on_node``. ``budget_gb``: host memory for KV
    blocks. ``nodes``: None where unknown or single-node. ``gpus``: held while the job runs. ``reference``: the recipe
    as the master names it; ``recipe``: what the cluster gets of it in a throughput run, ``eval_recipe`` in an accuracy
    run; None where it was not found. ``golden``: the acceptance length that was injected, as text. ``stem`` and
    ``tail``: what an id says before and behind the concurrency.
    """

    __slots__ = (
        "_texts", "budget_gb", "config", "entry", "eval_recipe", "golden", "gpus", "nodes", "on_node", "recipe",
        "reference", "runner", "scenario", "selector", "stack", "stem", "tail",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - a record
        self,
        config: Config,
        scenario: Scenario,
        entry: Entry,
        runner: str,
        *,
        on_node: bool = False,
        budget_gb: int = 0,
        nodes: int | None = None,
        gpus: int = 0,
        reference: str | None = None,
        recipe: Recipe | None = None,
        eval_recipe: Recipe | None = None,
        golden: str | None = None,
        stack: Stack = Stack(),  # noqa: B008 - immutable
    ) -> None:
        self.config = config
        self.scenario = scenario
        self.entry = entry
        self.runner = runner
        self.on_node = on_node
        self.budget_gb = budget_gb
        self.nodes = nodes
        self.gpus = gpus
        self.reference = reference
        self.recipe = recipe
        self.eval_recipe = eval_recipe
        self.golden = golden
        self.stack = stack
        head, colon, selector = (reference or "").rpartition(":")
        self.selector = selector if colon and head else None
        self.stem = f"{config.key}--{scenario_name(scenario)}--{_topology_tag(entry, self.selector)}--c"
        self.tail = "--" + _safe(selector.replace("[", ".").replace("]", "")) if self.selector else ""
        self._texts: _Texts | None = None

    @property
    def agentic(self) -> bool:
        """Whether the workload is agentic, not of fixed length."""
        return self.scenario.kind is ScenarioKind.AGENTIC

    @property
    def multinode(self) -> bool:
        """Whether the row has a prefill and a decode side."""
        return self.config.multinode

    @property
    def topology(self) -> str:
        """The topology as an id has it."""
        return self.stem.rsplit("--", 2)[1]

    @property
    def family(self) -> str:
        """Equal for deployments whose rows differ in the selector of one recipe file at most."""
        canonical = self.texts.canonical
        if self.selector is None or self.reference is None:
            return canonical
        return canonical.replace(self.reference, self.reference.removesuffix(f":{self.selector}"))

    @property
    def texts(self) -> _Texts:
        """The shared texts, made when first asked for."""
        texts = self._texts
        if texts is None:
            texts = self._texts = _texts_of(self)
        return texts

    def digest_payload(self, *, eval_only: bool = False) -> dict[str, Any]:
        """What a digest covers besides the point's own fields, which go into its ``row``.

        A resolved recipe stands for itself, so its file name does not count.
        """
        recipe = self.eval_recipe if eval_only else self.recipe
        row = template_of(self)
        for key in ("exp-name", "run-eval", "conc"):
            row.pop(key, None)
        if eval_only:
            row.pop("require-power", None)
        if recipe is not None:
            row.pop("srt-recipe", None)
            for role in ("prefill", "decode"):
                settings = row.get(role, {}).get("additional-settings")
                if settings:
                    row[role]["additional-settings"] = [text for text in settings if not text.startswith(CONFIG_FILE)]
        return {
            "golden": None if eval_only else self.golden,
            "patches": self.stack.patches,
            "pin": self.stack.pin,
            "recipe": plain(recipe.data) if recipe is not None else None,
            "row": row,
        }


class Point(NamedTuple):
    """One job: a deployment at the concurrencies of one allocation.

    ``run_eval`` is None before evals were marked; ``evaluation`` says what is evaluated; an ``eval_only`` point
    measures accuracy alone.
    """

    deployment: Deployment
    concs: tuple[int, ...]
    run_eval: bool | None = None
    evaluation: Evaluation | None = None
    eval_only: bool = False

    @property
    def id(self) -> str:
        """Unique in a plan, stable, made of ``[A-Za-z0-9._-]``."""
        deployment = self.deployment
        concs = self.concs
        text = f"{deployment.stem}{concs[0] if len(concs) == 1 else '-'.join(map(str, concs))}{deployment.tail}"
        if self.eval_only:
            framework = self.evaluation.framework if self.evaluation else "lm-eval"
            text += "--eval" if framework == "lm-eval" else f"--eval-{_safe(framework)}"
        return f"{text}--on-{_safe(deployment.runner)}" if deployment.on_node else text

    @property
    def name(self) -> str:
        """What people call the job: short, not necessarily unique."""
        concs = "-".join(map(str, self.concs))
        return f"{_title(self.deployment)} c{concs}{' eval' if self.eval_only else ''}"

    @property
    def exp_name(self) -> str:
        """InferenceX's experiment name; not unique."""
        name: str = template_of(self.deployment)["exp-name"]
        return name.replace("{}", str(self.concs[0])) if self.deployment.agentic else name

    @property
    def seconds(self) -> int | None:
        """How long the benchmark itself runs, where that is known beforehand."""
        return AGENTIC_SECONDS if self.deployment.agentic and not self.eval_only else None

    @property
    def digest(self) -> str:
        """sha256 over everything that makes this job what it is: equal digests are the same job.

        Canonical JSON of the row without its names and run-eval marks (an accuracy run keeps its eval fields), the
        resolved and injected recipe, the golden value, the patches and the pin.
        """
        conc = self._conc_json(",")
        if not self.eval_only:
            head, tail = self.deployment.texts.digest
            return sha256(f"{head}{conc}{tail}".encode()).hexdigest()
        return sha256(_canonical(self.digest_payload()).encode()).hexdigest()

    def digest_payload(self) -> dict[str, Any]:
        """What the digest covers, as JSON has it."""
        payload = self.deployment.digest_payload(eval_only=self.eval_only)
        row = payload["row"]
        row["conc"] = list(self.concs) if self.deployment.multinode else self.concs[0]
        if self.eval_only:
            row["eval-only"] = True
            if self.evaluation is not None:
                row |= self.evaluation.fields()
        return payload

    def row(self) -> dict[str, Any]:
        """The row: InferenceX's fields in its order, then ours."""
        deployment = self.deployment
        concs = self.concs
        row = template_of(deployment)
        row["conc"] = list(concs) if deployment.multinode else concs[0]
        if deployment.agentic:
            row["exp-name"] = row["exp-name"].replace("{}", str(concs[0]))
        if self.run_eval is not None:
            row["run-eval"] = self.run_eval
        if self.evaluation is not None:
            row |= self.evaluation.fields()
        if self.eval_only:
            row["eval-only"] = True
            row.pop("require-power", None)
        row["id"] = self.id
        row["name"] = self.name
        row["config-key"] = deployment.config.key
        if deployment.reference is not None:
            row["recipe"] = deployment.reference
        if not self.eval_only:
            row["recipe-fingerprint"] = deployment.texts.fingerprint
        row["digest"] = self.digest
        return row

    def row_json(self) -> str:
        """``row()`` as JSON text, put together from the deployment's when it is a plain throughput row."""
        pieces = self.deployment.texts.row
        if pieces is None or self.eval_only:
            return _encode(self.row())
        deployment = self.deployment
        head, middle, end = pieces
        concs = self.concs
        if deployment.agentic:
            text = f"{head}{self._conc_json(', ')}{middle}{concs[0]}{end}"
            if self.run_eval is not None:
                text += f', "run-eval": {_BOOL[self.run_eval]}'
        else:
            text = f"{head}{self._conc_json(', ')}{middle}{_BOOL[self.run_eval or False]}{end}"
        if self.evaluation is not None:
            text += f", {_encode(self.evaluation.fields())[1:-1]}"
        texts = deployment.texts
        recipe = "" if deployment.reference is None else f', "recipe": {_encode(deployment.reference)}'
        return (
            f'{text}, "id": "{self.id}", "name": {_encode(self.name)}, "config-key": "{deployment.config.key}"{recipe}'
            f', "recipe-fingerprint": "{texts.fingerprint}", "digest": "{self.digest}"}}'
        )

    def _conc_json(self, separator: str) -> str:
        if self.deployment.config.multinode:
            return f"[{separator.join(map(str, self.concs))}]"
        return str(self.concs[0])


_BOOL: Final = {True: "true", False: "false"}


def _texts_of(d: Deployment) -> _Texts:
    row = template_of(d)
    row["conc"] = _SLOT
    slot = str(_SLOT)
    pieces = _row_pieces(row, slot, agentic=d.agentic)
    del row["exp-name"]
    canonical = _canonical(row)
    fingerprint = sha256(canonical.replace(f'"conc":{slot},', "", 1).encode()).hexdigest()
    if d.recipe is None:
        bare = canonical.replace(_NO_RUN_EVAL, "", 1)
        payload = (
            f'{{"golden":{_canonical(d.golden)},"patches":{_canonical(d.stack.patches)},"pin":{_canonical(d.stack.pin)}'
        )
        payload += f',"recipe":null,"row":{bare}}}'
    else:
        covered = d.digest_payload()
        covered["row"]["conc"] = _SLOT
        payload = _canonical(covered)
    head, tail = payload.split(slot, 1)
    return _Texts(canonical, fingerprint, (head, tail), pieces)


def _row_pieces(row: dict[str, Any], slot: str, *, agentic: bool) -> tuple[str, str, str] | None:
    """The row's text cut at the concurrency and at the second open value: the agentic exp-name's, else run-eval."""
    head, _, rest = _encode(row)[:-1].partition(slot)
    mark = "{}" if agentic else '"run-eval": false'
    middle, _, end = rest.partition(mark)
    if mark in end:
        return None
    return head, middle if agentic else f'{middle}"run-eval": ', end


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text)


def _title(d: Deployment) -> str:
    config = d.config
    return (
        f"{config.model_prefix} {config.precision} {d.runner} {config.framework}"
        f" {scenario_name(d.scenario)} {d.topology}"
    )


def _topology_tag(entry: Entry, selector: str | None) -> str:
    topology = entry.topology
    if isinstance(topology, SingleNode):
        tag = _worker_tag("", topology.worker)
    elif isinstance(topology, Aggregated):
        tag = _worker_tag(f"{topology.worker.replicas}w-", topology.worker)
    else:
        tag = _worker_tag(f"{topology.prefill.replicas}p-", topology.prefill)
        tag += _worker_tag(f"-{topology.decode.replicas}d-", topology.decode)
    if selector is None:
        tag += _SPEC_TAG[entry.spec_decoding]
        backend = entry.offload.backend
        if backend is not None:
            tag += _safe(f"-kv{entry.offload.mode}-{backend['name']}")
    return tag


def _worker_tag(count: str, worker: Worker) -> str:
    tag = f"{count}tp{worker.tp}"
    if worker.ep != 1:
        tag += f"ep{worker.ep}"
    if worker.dp_attn:
        tag += "dpa"
    if worker.pp != 1:
        tag += f"pp{worker.pp}"
    if worker.dcp != 1:
        tag += f"dcp{worker.dcp}"
    if worker.pcp != 1:
        tag += f"pcp{worker.pcp}"
    if worker.attn_dp is not None and worker.attn_dp != 1:
        tag += f"adp{worker.attn_dp}"
    return tag
