"""Runs without exchange: what they leave of a step, and the table `noexchange`.

A run ``<run id>.noexchange`` takes the steps of its measured run without the exchange of gradients.
It is never averaged with measured runs: here it is compared with its own.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.companion_account import companion_account
from scalesweep.analysis.stats import linear_interval, mean_interval
from scalesweep.analysis.step_account import NOEXCHANGE, STEPS, StepAccount
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.profilers import NOEXCHANGE as KIND
from scalesweep.core.profilers import split_name
from scalesweep.core.status import Status
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import read_arrays

_log = logging.getLogger(__name__)
_MS = 1e3
_ROUNDING = 1e-9


def companion_accounts(data: ExperimentData, runs: Path | None) -> dict[int, StepAccount]:
    """The account of each measured run against its run without exchange, by row of the summary.

    ``runs`` is the folder of the runs. A pair of which one cannot be read is left out, with a line.
    """
    accounts: dict[int, StepAccount] = {}
    for run in data.experiment["profiles"] if runs is not None else ():
        run_id = split_name(run["run_id"])[0]
        row = data.row_of.get(run_id)
        if run["kind"] != KIND or run["status"] != Status.DONE or row is None or runs is None:
            continue
        try:
            measured, samples = read_arrays(runs / run_id)
            alone, without = read_arrays(runs / run["run_id"])
        except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
            data.unread.append(run["run_id"])
            _log.warning("%s: %s: not compared with its run", run["run_id"], error)
            continue
        ranks = int(measured["point"].get("ranks", 1))
        notes, others = measured.get("notes") or {}, alone.get("notes") or {}
        if account := companion_account(samples, notes, without, others, ranks):
            accounts[row] = account
    return accounts


def finer(
    own: Mapping[int, StepAccount], against: Mapping[int, StepAccount]
) -> dict[int, StepAccount]:
    """Of each run the finer account: of its own time stamps, against its run without exchange, or
    what else its record holds."""
    stamped = {row: account for row, account in own.items() if account.form == STEPS}
    return {**own, **against, **stamped}


# Columns of the table, each with its bounds.
_VALUES = ("step_ms", "without_ms", "communication_ms", "communication_share")
_ENDS = ("", "_low", "_high")


def noexchange_column(name: str, axes: Sequence[str]) -> str:
    """Column of the table: its name, unless a varying parameter has it."""
    return f"noexchange_{name}" if name in axes else name


def noexchange_table(
    data: ExperimentData,
    points: Sequence[Point],
    accounts: Mapping[int, StepAccount],
    stamped: Mapping[int, StepAccount],
) -> pd.DataFrame | None:
    """A row per point with runs without exchange; None without any.

    ``accounts`` of ``companion_accounts``, ``stamped`` those of the measured runs' own time stamps,
    by row of the summary. Columns: varying parameters, ``source``, ``pairs`` (runs with a run
    without exchange), ``method``, and means over the pairs with 95 % bounds (``_low``, ``_high``):
    ``step_ms``, ``without_ms`` (a step of the slowest rank without exchange), ``communication_ms``
    (what is exposed of it: the difference, less the barrier) and its share of a step; and
    ``stamped_ms``, the same from time stamps, where the measured runs have any.
    """
    rows = []
    for point in points:
        pairs = [(row, accounts[row]) for row in point.rows.tolist() if row in accounts]
        if not pairs:
            continue
        every = [account for _, account in pairs]
        exposed = np.array([float(account.communication or 0.0) for account in every])
        steps = np.array([account.elapsed for account in every])
        values = {
            "step_ms": steps * _MS,
            "without_ms": np.array([account.max_busy for account in every]) * _MS,
            "communication_ms": exposed * _MS,
            "communication_share": exposed / steps,
        }
        row: dict[str, Any] = {"source": point.source, "pairs": len(pairs), "method": NOEXCHANGE}
        for name in _VALUES:
            row |= _with_bounds(name, values[name])
        own = [stamped[place] for place, _ in pairs if place in stamped]
        row["stamped_ms"] = _stamped(own) if len(own) == len(pairs) else None
        named = {noexchange_column(name, data.axes): value for name, value in row.items()}
        rows.append({**point.values, **named})
    if not rows:
        return None
    frame = pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in rows[0]})
    for name in (*(f"{value}{end}" for value in _VALUES for end in _ENDS), "stamped_ms"):
        title = noexchange_column(name, data.axes)
        frame[title] = frame[title].astype(np.float64)
    frame.attrs["units"] = {}
    return frame


def _with_bounds(name: str, values: Floats) -> dict[str, float]:
    signed = name.startswith("communication")
    bounds = linear_interval(values) if signed else mean_interval(values)
    return {name: float(values.mean()), f"{name}_low": bounds.low, f"{name}_high": bounds.high}


def _stamped(accounts: Sequence[StepAccount]) -> float | None:
    """Exposed communication by time stamps, ms per step: transfer, and waiting that alternates."""
    if any(account.form != STEPS for account in accounts):
        return None
    parts = [(account.transfer or 0.0) + (account.alternating or 0.0) for account in accounts]
    difference = float(np.mean(parts))
    # What rounding leaves of nothing is nothing.
    return difference * _MS if difference > _ROUNDING * accounts[0].elapsed else 0.0
