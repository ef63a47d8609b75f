"""`Point`: one job. Its id, name, row, fingerprint and digest.

A `Deployment` is what the points of one search-space entry share: everything but the concurrency. What its points have
in common as text is made once (`matrix.points.texts`), and a point fills in what is its own: that is what keeps a
million points linear and fast.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from matrix.config.model import Aggregated, SingleNode
from matrix.config.source import plain
from matrix.points.row import AGENTIC_SECONDS, CONFIG_FILE, Frame, exp_name, family_key
from matrix.points.texts import Texts, evaluation_texts
from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matrix.config.model import Entry
    from matrix.recipes.recipe import Recipe

    Recipes = tuple[Recipe | None, Recipe | None, str | None]

__all__ = ["NO_RECIPES", "Deployment", "Evaluation", "Point", "Stack"]

NO_RECIPES: Final[Recipes] = (None, None, None)
"""The throughput recipe, the accuracy recipe and the golden length of a job whose recipe nobody read."""

_NOT_IN_DIGEST: Final = ("exp-name", "run-eval", "id", "name", "config-key", "recipe", "recipe-fingerprint", "digest")
_OF_THE_RUN: Final = ("conc", "eval-framework", "eval-suite", "eval-conc", "eval-all-concs", "eval-only")
_MARKS: Final = {None: "", True: ', "run-eval": true', False: ', "run-eval": false'}
_SPEC_TAG: Final = {"none": "", "mtp": "-mtp", "draft_model": "-draft"}


class Stack(Record):
    """The software below a recipe: the pin of the submodule and its patches as sorted ``(file, sha256)`` pairs."""

    pin: str = ""
    patches: tuple[tuple[str, str], ...] = ()


# What a search space makes by the thousand is no `Record`.


class Evaluation:
    """An accuracy run. ``conc``: the one evaluated of a multi-node point's list; ``all_concs``: whether all are.

    Never changed once made.
    """

    __slots__ = ("all_concs", "conc", "framework", "suite")

    def __init__(self, framework: str, suite: str, conc: int | None = None, all_concs: bool | None = None) -> None:
        self.framework: Final = framework
        self.suite: Final = suite
        self.conc: Final = conc
        self.all_concs: Final = all_concs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evaluation) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((self.framework, self.suite, self.conc, self.all_concs))

    def __repr__(self) -> str:
        return f"Evaluation({self.framework!r}, {self.suite!r}, {self.conc!r}, {self.all_concs!r})"

    def at(self, conc: int | None, all_concs: bool | None) -> Evaluation:
        """The same suite at other concurrencies."""
        return Evaluation(self.framework, self.suite, conc, all_concs)

    def fields(self) -> dict[str, Any]:
        """Its fields of a row."""
        fields: dict[str, Any] = {"eval-framework": self.framework, "eval-suite": self.suite}
        if self.conc is not None:
            fields["eval-conc"] = self.conc
        if self.all_concs is not None:
            fields["eval-all-concs"] = self.all_concs
        return fields


class Deployment:
    """A topology of one config and scenario on one runner, at any concurrency. Never changed once made.

    ``agentic``: the workload is, instead of fixed lengths; ``multinode``: the row has a prefill and a decode side.
    ``runner`` is the row's: the config's label, or a node of it when ``on_node``. ``budget_gb``: host memory for KV
    blocks. ``nodes``: None where unknown or single-node. ``gpus``: held while the job runs. ``reference``: the recipe
    as the master names it; ``recipe``: what the cluster gets of it in a throughput run, ``eval_recipe`` in an accuracy
    run; None where it was not found. ``golden``: the acceptance length that was injected, as text. ``topology``: as an
    id has it. ``stem``, ``tail`` and ``node_end``: what an id says before and behind the concurrency, and last of all.
    """

    __slots__ = (
        "_eval_texts", "_family", "_texts", "agentic", "budget_gb", "config", "entry", "eval_recipe", "frame", "golden",
        "gpus", "multinode", "node_end", "nodes", "on_node", "recipe", "reference", "runner", "scenario", "selector",
        "stack", "stem", "tail", "topology",
    )  # fmt: skip

    def __init__(
        self,
        frame: Frame,
        entry: Entry,
        *,
        budget_gb: int = 0,
        nodes: int | None = None,
        gpus: int = 0,
        reference: str | None = None,
        recipes: Recipes = NO_RECIPES,
        stack: Stack = Stack(),  # noqa: B008 - immutable
    ) -> None:
        self.frame = frame
        self.config = config = frame.config
        self.scenario = frame.scenario
        self.entry = entry
        self.runner = frame.runner
        self.agentic = frame.agentic
        self.multinode = config.multinode
        self.on_node = frame.on_node
        self.budget_gb = budget_gb
        self.nodes = nodes
        self.gpus = gpus
        self.reference = reference
        self.recipe, self.eval_recipe, self.golden = recipes
        self.stack = stack
        self.selector, self.tail = _selector(reference)
        self.topology = topology = _topology_tag(entry, self.selector)
        self.stem = f"{config.key}--{frame.scenario_name}--{topology}--c"
        self.node_end = f"--on-{_safe(frame.runner)}" if frame.on_node else ""
        self._texts: Texts | None = None
        self._eval_texts: Texts | None = None
        self._family: Hashable = None

    @property
    def title(self) -> str:
        """What people call its jobs, without the concurrency: short, not necessarily unique."""
        return f"{self.frame.title} {self.topology}"

    @property
    def family(self) -> Hashable:
        """Equal for deployments whose rows differ in the selector of one recipe file at most."""
        family = self._family
        if family is None:
            family = self._family = family_key(self)
        return family

    @property
    def texts(self) -> Texts:
        """What its throughput points share as text, made when first asked for."""
        texts = self._texts
        if texts is None:
            texts = self._texts = Texts(self, eval_only=False)
        return texts

    @property
    def eval_texts(self) -> Texts:
        """What its accuracy runs share as text, made when first asked for."""
        texts = self._eval_texts
        if texts is None:
            texts = self._eval_texts = Texts(self, eval_only=True)
        return texts

    def forget(self) -> None:
        """Drop the texts: a stream that has passed its points needs the memory for the next ones."""
        self._texts = self._eval_texts = None


class Point:
    """One job: a deployment at the concurrencies of one allocation. Never changed once made.

    ``run_eval`` is None before evals were marked; ``evaluation`` says what is evaluated; an ``eval_only`` point
    measures accuracy alone.
    """

    __slots__ = ("concs", "deployment", "eval_only", "evaluation", "run_eval")

    def __init__(
        self,
        deployment: Deployment,
        concs: tuple[int, ...],
        run_eval: bool | None = None,
        evaluation: Evaluation | None = None,
        eval_only: bool = False,
    ) -> None:
        self.deployment: Final = deployment
        self.concs: Final = concs
        self.run_eval: Final = run_eval
        self.evaluation: Final = evaluation
        self.eval_only: Final = eval_only

    def __repr__(self) -> str:
        return f"<Point {self.id}>"

    def _replace(self, **changes: Any) -> Point:
        """The same with other values in some fields."""
        return Point(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})

    @property
    def id(self) -> str:
        """Unique in a plan, stable, made of ``[A-Za-z0-9._-]``."""
        deployment = self.deployment
        eval_end = self._eval_end() if self.eval_only else ""
        return f"{deployment.stem}{'-'.join(map(str, self.concs))}{deployment.tail}{eval_end}{deployment.node_end}"

    @property
    def name(self) -> str:
        """What people call the job: short, not necessarily unique."""
        return f"{self.deployment.title} c{'-'.join(map(str, self.concs))}{' eval' if self.eval_only else ''}"

    @property
    def exp_name(self) -> str:
        """InferenceX's experiment name; not unique."""
        name, end = exp_name(self.deployment)
        return f"{name}{self.concs[0]}{end}" if self.deployment.agentic else name

    @property
    def seconds(self) -> int | None:
        """How long the benchmark itself runs, where that is known beforehand."""
        return AGENTIC_SECONDS if self.deployment.agentic and not self.eval_only else None

    @property
    def digest(self) -> str:
        """sha256 over everything that makes this job what it is: equal digests are the same job.

        Of the canonical JSON of `digest_payload`, in which the row is not written out: its own sha256 stands for it.
        """
        deployment, concs = self.deployment, self.concs
        conc = f"[{','.join(map(str, concs))}]" if deployment.multinode else str(concs[0])
        if self.eval_only:
            return deployment.eval_texts.digest(conc, self._evaluation_texts()[2])
        return deployment.texts.digest(conc, "")

    def digest_payload(self) -> dict[str, Any]:
        """What the digest covers, as JSON has it.

        ``row``: without its names, and as it is before evaluations are marked. ``run``: the concurrency, and the eval
        fields of an accuracy run. ``recipe``: resolved and injected; its file name does not count. ``golden``: the
        acceptance length. ``patches`` and ``pin``: the software below.
        """
        deployment = self.deployment
        recipe = deployment.eval_recipe if self.eval_only else deployment.recipe
        row = self.row()
        for key in _NOT_IN_DIGEST:
            row.pop(key, None)
        run = {key: row.pop(key) for key in _OF_THE_RUN if key in row}
        if not deployment.agentic:
            row["run-eval"] = False
        if recipe is not None:
            row.pop("srt-recipe", None)
            for role in ("prefill", "decode"):
                settings = row.get(role, {}).get("additional-settings")
                if settings:
                    row[role]["additional-settings"] = [text for text in settings if not text.startswith(CONFIG_FILE)]
        return {
            "golden": None if self.eval_only else deployment.golden,
            "patches": deployment.stack.patches,
            "pin": deployment.stack.pin,
            "recipe": plain(recipe.data) if recipe is not None else None,
            "row": row,
            "run": run if self.eval_only else {"conc": run["conc"]},
        }

    def row(self) -> dict[str, Any]:
        """The row: InferenceX's fields in its order, then ours."""
        from json import loads

        row: dict[str, Any] = loads(self.row_json())
        return row

    def row_json(self) -> str:
        """The row as JSON text, put together from what the deployment's points share."""
        deployment, concs, run_eval = self.deployment, self.concs, self.run_eval
        dashed = str(concs[0]) if len(concs) == 1 else "-".join(map(str, concs))
        conc = f"[{dashed.replace('-', ', ')}]" if deployment.multinode else dashed
        if deployment.agentic:
            own, marks = str(concs[0]), _MARKS[run_eval]
        else:
            own, marks = "true" if run_eval else "false", ""
        if self.eval_only:
            texts, eval_end, name_end = deployment.eval_texts, self._eval_end(), " eval"
            _, fields, eval_c = self._evaluation_texts()
            marks += fields
        else:
            texts, eval_end, name_end, eval_c = deployment.texts, "", "", ""
            if self.evaluation is not None:
                marks += self._evaluation_texts()[0]
        digest = texts.digest(conc.replace(" ", ""), eval_c)
        return (
            f"{texts.head}{conc}{texts.middle}{own}{texts.end}{marks}{texts.before_id}{dashed}{deployment.tail}{eval_end}"
            f'{texts.before_name}{dashed}{name_end}{texts.before_digest}{digest}"}}'
        )

    def _evaluation_texts(self) -> tuple[str, str, str]:
        one = self.evaluation
        if one is None:
            return evaluation_texts(None)
        return evaluation_texts(one.framework, one.suite, one.conc, one.all_concs)

    def _eval_end(self) -> str:
        framework = self.evaluation.framework if self.evaluation is not None else "lm-eval"
        return "--eval" if framework == "lm-eval" else f"--eval-{_safe(framework)}"


def _selector(reference: str | None) -> tuple[str | None, str]:
    """The variant that a reference selects, and how an id ends with it."""
    if reference is None:
        return None, ""
    file, _, selector = reference.rpartition(":")
    if not file:
        return None, ""
    return selector, "--" + _safe(selector.replace("[", ".").replace("]", "")) if selector else ""


def _safe(text: str) -> str:
    """The text as an id can have it."""
    bare = text.replace("-", "").replace(".", "").replace("_", "")
    return text if bare.isascii() and bare.isalnum() else re.sub(r"[^A-Za-z0-9._-]+", "_", text)


def _topology_tag(entry: Entry, selector: str | None) -> str:
    topology = entry.topology
    if isinstance(topology, SingleNode):
        tag = _sizes_tag(*topology.worker.sizes)
    elif isinstance(topology, Aggregated):
        tag = f"{topology.worker.replicas}w-{_sizes_tag(*topology.worker.sizes)}"
    else:
        prefill, decode = topology.prefill, topology.decode
        tag = f"{prefill.replicas}p-{_sizes_tag(*prefill.sizes)}-{decode.replicas}d-{_sizes_tag(*decode.sizes)}"
    if selector is None:
        tag += _SPEC_TAG[entry.spec_decoding]
        backend = entry.offload.backend
        if backend is not None:
            tag += _safe(f"-kv{entry.offload.mode}-{backend['name']}")
    return tag


@lru_cache(maxsize=4096)
def _sizes_tag(tp: int, ep: int, dp_attn: bool, pp: int, dcp: int, pcp: int, attn_dp: int | None) -> str:
    """What an id says of a worker: its tp, and what is not the default."""
    tag = f"tp{tp}"
    if ep != 1:
        tag += f"ep{ep}"
    if dp_attn:
        tag += "dpa"
    if pp != 1:
        tag += f"pp{pp}"
    if dcp != 1:
        tag += f"dcp{dcp}"
    if pcp != 1:
        tag += f"pcp{pcp}"
    if attn_dp is not None and attn_dp != 1:
        tag += f"adp{attn_dp}"
    return tag
