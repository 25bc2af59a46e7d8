"""What a run keeps in its row of the summary beside numbers: the columns ``CURVES``.

Missing (None) where a record has none. In the summary they are JSON text (``as_text``), which
``ExperimentData.notes`` reads back.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from scalesweep.analysis.exchange import Exchange
from scalesweep.analysis.metrics import ACCURACY_CURVES, EPOCH_CURVES
from scalesweep.analysis.profile_account import profile_account, trace_breakdown
from scalesweep.analysis.step_account import StepAccount, account_of, first_epoch_account
from scalesweep.analysis.step_work import BadSpansError
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import finite
from scalesweep.core.record_check import MAX_NUMBER
from scalesweep.tables.layers import LAYERS, layers_of
from scalesweep.tables.machine_load import LOAD, load_of
from scalesweep.tables.provenance import FACTS, noted, run_facts

ACCOUNT, FIRST_EPOCH = "_account", "_first_epoch"
STATED, ROUNDED, SCORE_RULE = "_stated", "_rounded", "_score_rule"
PARTS, SWEEP, EXCHANGE, EXCHANGED_BY = "_parts", "_sweep", "_exchange", "_exchanged_by"
SWEEP_SECONDS = "sweep_seconds"  # an array [value, repeat, rank]
Samples = Mapping[str, NDArray[Any]]


def as_text(value: Any) -> str | None:
    """What the summary holds of a value: JSON; None of None."""
    return None if value is None else orjson.dumps(value).decode()


def curves_of(record: Mapping[str, Any], samples: Samples) -> tuple[dict[str, Any], str | None]:
    """The columns ``CURVES`` of the row of a record (``core.record_check``), and why the spans of
    its steps cannot be true (None: they can).

    ``samples`` are its arrays ``[epoch, rank]``; of an imported run one column may represent all
    ranks. Raises UserError where an array is not [epoch, rank], or arrays differ in their epochs.
    """
    account, first, wrong = _accounts(record, samples)
    curves = {name: of(record, samples) for name, of in _OF.items()}
    return {ACCOUNT: account, FIRST_EPOCH: first, **curves}, wrong


def run_seconds(record: Mapping[str, Any]) -> float | None:
    """Seconds of a run that its steps are a part of: what it timed (``phases.timed``), else all of
    it, by its own phases or the clock outside of it; None where its record has neither.

    What a program states that only computes its times may be longer than it ran.
    """
    known, wall = record.get("phases") or {}, record.get("wall_s")
    if finite(timed := known.get("timed")) and timed > 0:
        return float(timed)
    whole = math.fsum(seconds for seconds in known.values() if finite(seconds))
    return max(whole, wall if finite(wall) else 0.0) or None


def _accounts(
    record: Mapping[str, Any], samples: Samples
) -> tuple[StepAccount | None, StepAccount | None, str | None]:
    """The account of a run, that of its first epoch, and why its spans cannot be true."""
    ranks, metrics, why = record["point"].get("ranks", 1), record.get("metrics") or {}, None
    try:
        account = account_of(samples, record.get("notes") or {}, ranks, run_seconds(record))
    except BadSpansError as error:
        account, why = None, f"no account of its steps: {error}"
    first = first_epoch_account(samples, account, ranks)
    return account or trace_breakdown(metrics, ranks) or profile_account(metrics, ranks), first, why


def _numbers(values: Mapping[str, float | None] | None) -> dict[str, float] | None:
    """Numbers by name, those that are missing left out; None if nothing is left."""
    return {name: float(n) for name, n in (values or {}).items() if n is not None} or None


def _score_rule(record: Mapping[str, Any]) -> list[Any] | None:
    """How MLPerf counts the score of a run's submission; None where its notes do not say it."""
    said = noted(record, "score")
    known = finite(said.get("factor"), said.get("dropped"))
    return [said["factor"], said.get("runs"), said["dropped"]] if known else None


def _stated(metrics: Mapping[str, Any]) -> dict[str, list[float]] | None:
    """[standard deviation, count] by metric, where a published result states both."""
    known = {name: (metric.get("std"), metric.get("count")) for name, metric in metrics.items()}
    return {
        name: [float(std), float(count)]
        for name, (std, count) in known.items()
        if finite(std, count) and std >= 0 and count >= 2
    } or None


def _epochs(record: Mapping[str, Any], samples: Samples) -> dict[str, list[float | None]] | None:
    """Means over the ranks by epoch of the arrays named in ``EPOCH_CURVES``."""
    # A program that times steps keeps its losses by step too.
    if not any(name in samples for name in ACCURACY_CURVES) or "step_times" in samples:
        return None
    curves: dict[str, list[float | None]] = {}
    epochs: dict[int, str] = {}
    for name in EPOCH_CURVES:
        if name in samples:
            means = _rank_means(name, samples[name], record)
            epochs.setdefault(len(means), name)
            if any(value is not None for value in means):
                curves[name] = means
    if len(epochs) > 1:
        lengths = ", ".join(f"{name} {count}" for count, name in epochs.items())
        raise UserError(f"arrays hold different numbers of epochs: {lengths}")
    return curves or None


def _rank_means(name: str, array: NDArray[Any], record: Mapping[str, Any]) -> list[float | None]:
    """Mean over the ranks by epoch; None where a rank has no finite number, or one out of range."""
    ranks = record["point"]["ranks"]
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[0]:
        raise UserError(f"{name} is {array.dtype} of shape {array.shape}, not [epoch, rank]")
    whole = record.get("source") == "imported" and array.shape[1] == 1
    if array.shape[1] != ranks and not whole:
        raise UserError(f"{name} holds {array.shape[1]} ranks, the point has {ranks}")
    with np.errstate(invalid="ignore", over="ignore"):
        means = array.astype(np.float64, copy=False).mean(axis=1).tolist()
    return [value if abs(value) < MAX_NUMBER else None for value in means]


def sweep_of(record: Mapping[str, Any], samples: Samples) -> dict[str, Any] | None:
    """The sweep of a run; None where it is no probe's.

    By value: seconds of the slowest rank, the best, median and worst of the repeats. Raises
    UserError where times and values do not go together.
    """
    note = (record.get("notes") or {}).get("sweep")
    if note is None or SWEEP_SECONDS not in samples:
        return None
    seconds = samples[SWEEP_SECONDS]
    columns = {name: note.get(name) for name in ("values", "amounts")}
    if (
        seconds.ndim != 3
        or not (seconds > 0).all()
        or {len(seconds)} != {len(column or ()) for column in columns.values()}
    ):
        raise UserError(
            f"{SWEEP_SECONDS} does not go with notes.sweep: [value, repeat, rank] in seconds"
        )
    slowest = seconds.max(axis=2)
    times = np.stack([slowest.min(axis=1), np.median(slowest, axis=1), slowest.max(axis=1)], axis=1)
    also = ("by", "unit", "amount_unit", "collective", "moved")
    return {**{name: note.get(name) for name in also}, **columns, "times": times.tolist()}


def exchange_of(record: Mapping[str, Any]) -> Exchange | None:
    """What a run exchanges in a step; None where the record does not say its tensors."""
    said = noted(record, "exchange")
    if said.get("tensor_bytes") is None:
        return None
    known = {name: said.get(name) for name in ("bucket_bytes", "first_bucket_bytes")}
    return Exchange(said["tensor_bytes"], **known, sent=said.get("messages") or None)


def exchanged_by(record: Mapping[str, Any]) -> str | None:
    """What carries the messages of a run: ``torch.distributed over gloo``; None where the record
    does not say."""
    said = noted(record, "exchange")
    words = (said.get("library") or said.get("by"), said.get("backend"))
    return " over ".join(map(str, words)) if all(words) else None


_OF: Mapping[str, Callable[[Mapping[str, Any], Samples], Any]] = {
    "_epochs": _epochs,
    # Seconds and joules by phase.
    "_phases": lambda record, _: _numbers(record.get("phases")),
    "_energy": lambda record, _: _numbers((record.get("energy") or {}).get("phases")),
    # Standard deviation and count of the metrics whose source states them.
    STATED: lambda record, _: _stated(record.get("metrics") or {}),
    # By how much printing may have moved metrics.
    ROUNDED: lambda record, _: _numbers(
        {name: metric.get("rounding") for name, metric in (record.get("metrics") or {}).items()}
    ),
    # [factor, runs that are asked for, runs dropped at either end] of MLPerf's score.
    SCORE_RULE: lambda record, _: _score_rule(record),
    PARTS: lambda record, _: _numbers(record.get("parts")),  # seconds by named part
    SWEEP: sweep_of,  # what a probe measured by size
    FACTS: lambda record, _: run_facts(record),  # where and with what it ran
    LAYERS: layers_of,  # what each layer of a model computes, moves and takes
    LOAD: lambda record, _: load_of(record),  # what others took of the cores
    EXCHANGE: lambda record, _: exchange_of(record),  # what its ranks exchange in a step
    EXCHANGED_BY: lambda record, _: exchanged_by(record),
}
CURVES = (ACCOUNT, FIRST_EPOCH, *_OF)
