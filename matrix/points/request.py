"""What is asked of the pipeline: which points, and what is done about evals and trimming."""

from __future__ import annotations

from typing import Final

from matrix.points.evals import EvalMode
from matrix.record import Record

__all__ = ["EVERYTHING", "Filters", "Request"]


class Filters(Record):
    """The selection options of a command line; an empty one selects everything."""

    config_keys: tuple[str, ...] = ()
    model_prefix: tuple[str, ...] = ()
    precision: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()
    runner_type: tuple[str, ...] = ()
    seq_lens: tuple[str, ...] = ()
    scenario_type: tuple[str, ...] = ()
    single_node: bool = False
    multi_node: bool = False
    min_conc: int | None = None
    max_conc: int | None = None
    max_tp: int | None = None
    max_ep: int | None = None
    conc: tuple[int, ...] = ()
    exp_names: tuple[str, ...] = ()


EVERYTHING: Final = Filters()
"""No filter at all."""


class Request(Record):
    """Which points are wanted: the filters, the ladder's step, and what is done about evals and trimming."""

    filters: Filters = EVERYTHING
    step: int = 2
    node_filter: str | None = None
    evals: EvalMode = EvalMode.MARK
    evals_only: bool = False
    trim: bool = False
    smoke: bool = False
    ids: tuple[str, ...] = ()
