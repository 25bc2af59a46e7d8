"""What a run keeps in its row of the summary beside numbers: the columns ``CURVES``.

``_epochs``: means over the ranks by epoch of the arrays named in ``EPOCH_CURVES``; ``_phases``:
seconds by phase; ``_energy``: joules by phase;
``_account``: where the time of a step went (``StepAccount``), ``_first_epoch``:
that of the first of several epochs; ``_parts``: seconds by named part;
``_stated``: standard deviation and count of the metrics whose source states them; ``_rounded``: by
how much printing may have moved metrics; ``_sweep``: what a probe measured by size; ``_facts``:
where and with what it ran; ``_layers``: what each layer of a model computes, moves and takes;
``_load``: what others took of the cores; ``_exchange``, ``_exchanged_by``: what its ranks exchange
in a step, and how; ``_score_rule``: how MLPerf counts the score of an imported run's submission.
Missing (None) where a record has none. In the summary they are JSON text (``as_text``), which
``ExperimentData.notes`` reads back.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from scalesweep.analysis.exchange import Exchange
from scalesweep.analysis.metrics import ACCURACY_CURVES, EPOCH_CURVES
from scalesweep.analysis.profile_account import profile_account, trace_breakdown
from scalesweep.analysis.step_account import (
    StepAccount,
    account_of,
    first_epoch_account,
    span_problem,
)
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import finite
from scalesweep.core.record_check import MAX_NUMBER
from scalesweep.tables.layers import LAYERS, layers_of
from scalesweep.tables.machine_load import LOAD, load_of
from scalesweep.tables.provenance import FACTS, kept_facts

ACCOUNT = "_account"
FIRST_EPOCH = "_first_epoch"
STATED = "_stated"
ROUNDED = "_rounded"
# [factor, runs that are asked for, runs dropped at either end] of MLPerf's score (imported runs).
SCORE_RULE = "_score_rule"
PARTS = "_parts"
_SPREAD = ("std", "count")
SWEEP, SWEEP_SECONDS = "_sweep", "sweep_seconds"  # the latter an array [value, repeat, rank]
EXCHANGE, EXCHANGED_BY = "_exchange", "_exchanged_by"
CURVES = (
    *("_epochs", "_phases", "_energy", ACCOUNT, FIRST_EPOCH, STATED, ROUNDED, SCORE_RULE),
    *(PARTS, SWEEP, FACTS, LAYERS, LOAD, EXCHANGE, EXCHANGED_BY),
)


def as_text(value: Any) -> str | None:
    """What the summary holds of a value: JSON; None of None."""
    return None if value is None else orjson.dumps(value).decode()


def curves_of(
    record: Mapping[str, Any],
    samples: Mapping[str, NDArray[Any]],
    machines: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The columns ``CURVES`` of a record's row.

    ``samples`` are its arrays ``[epoch, rank]``; of an imported run one column may represent all
    ranks. ``machines`` as for ``run_facts``. Raises
    UserError where an array is not [epoch, rank], arrays differ in their epochs, or the record's
    numbers are none.
    """
    energy = record.get("energy") or {}
    return {
        "_epochs": _epochs(record, samples),
        "_phases": _numbers(record.get("phases"), "phases"),
        "_energy": _numbers(energy.get("phases"), "energy.phases") if energy else None,
        ACCOUNT: _account(record, samples),
        FIRST_EPOCH: _first_epoch(record, samples),
        STATED: _stated(record.get("metrics") or {}),
        ROUNDED: _rounded(record.get("metrics") or {}),
        SCORE_RULE: _score_rule(record.get("notes") or {}),
        PARTS: _numbers(record.get("parts"), "parts"),
        SWEEP: sweep_of(record, samples),
        FACTS: kept_facts(record, machines),
        LAYERS: layers_of(record, samples),
        LOAD: load_of(record),
        EXCHANGE: exchange_of(record),
        EXCHANGED_BY: exchanged_by(record),
    }


def span_warning(record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]) -> str | None:
    """Why the spans of a run's steps cannot be true; None where they can."""
    ranks, notes = record["point"].get("ranks", 1), record.get("notes") or {}
    notes = notes if isinstance(notes, dict) else {}
    return span_problem(samples, notes, ranks, run_seconds(record))


def run_seconds(record: Mapping[str, Any]) -> float | None:
    """Seconds of a run that its steps are a part of: what it timed (``phases.timed``), else all of
    it, by its own phases or the clock outside of it; None where its record has neither.

    What a program states that only computes its times may be longer than it ran.
    """
    phases, wall = record.get("phases"), record.get("wall_s")
    known = phases if isinstance(phases, dict) else {}
    if finite(timed := known.get("timed")) and timed > 0:
        return float(timed)
    whole = math.fsum(seconds for seconds in known.values() if finite(seconds))
    return max(whole, wall if finite(wall) else 0.0) or None


def _account(record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]) -> StepAccount | None:
    ranks, notes = record["point"].get("ranks", 1), record.get("notes") or {}
    notes = notes if isinstance(notes, dict) else {}
    account = account_of(samples, notes, ranks, run_seconds(record))
    account = account or trace_breakdown(record.get("metrics") or {}, ranks)
    return account or profile_account(record.get("metrics") or {}, ranks)


def _first_epoch(
    record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]
) -> StepAccount | None:
    ranks, notes = record["point"].get("ranks", 1), record.get("notes") or {}
    return first_epoch_account(samples, notes if isinstance(notes, dict) else {}, ranks)


def _numbers(values: Any, name: str) -> dict[str, float] | None:
    """Numbers by name, those that are missing left out; None if nothing is left."""
    if not values:
        return None
    if not isinstance(values, dict):
        raise UserError(f"{name} is not a mapping")
    numbers = {key: _finite(value, f"{name}.{key}") for key, value in values.items()}
    return {key: value for key, value in numbers.items() if value is not None} or None


def _score_rule(notes: Mapping[str, Any]) -> list[Any] | None:
    """How MLPerf counts the score of a run's submission; None where its notes do not say it."""
    said = notes.get("score")
    if not isinstance(said, Mapping) or not finite(said.get("factor"), said.get("dropped")):
        return None
    return [said["factor"], said.get("runs"), said["dropped"]]


def _stated(metrics: Mapping[str, Any]) -> dict[str, list[float]] | None:
    """[standard deviation, count] by metric, where a published result states both."""
    stated = {}
    for name, metric in metrics.items():
        std, count = (_finite(metric.get(key), f"metric '{name}': {key}") for key in _SPREAD)
        if std is not None and count is not None and std >= 0 and count >= 2:
            stated[name] = [std, count]
    return stated or None


def _rounded(metrics: Mapping[str, Any]) -> dict[str, float] | None:
    """By how much printing with few digits may have moved a value, by metric."""
    halves = {
        name: half
        for name, metric in metrics.items()
        if (half := _finite(metric.get("rounding"), f"metric '{name}': rounding"))
    }
    return halves or None


def _finite(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{name} is {value!r}, not a number")
    return float(value) if math.isfinite(value) else None


def _epochs(
    record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]
) -> dict[str, list[float | None]] | None:
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


def sweep_of(
    record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]
) -> dict[str, Any] | None:
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
    said = (record.get("notes") or {}).get("exchange") or {}
    if said.get("tensor_bytes") is None:
        return None
    return Exchange(
        by=str(said.get("by")),
        tensor_bytes=said["tensor_bytes"],
        bucket_bytes=said.get("bucket_bytes"),
        cycle_s=said.get("cycle_s"),
        first_bucket_bytes=said.get("first_bucket_bytes"),
        sent=said.get("messages") or None,
    )


def exchanged_by(record: Mapping[str, Any]) -> str | None:
    """What carries the messages of a run: ``torch.distributed over gloo``; None where the record
    does not say."""
    said = (record.get("notes") or {}).get("exchange") or {}
    words = (said.get("library") or said.get("by"), said.get("backend"))
    return " over ".join(map(str, words)) if all(words) else None
