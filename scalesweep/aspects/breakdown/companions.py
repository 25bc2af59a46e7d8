"""Runs without exchange: what they leave of a step.

A run ``<run id>.noexchange`` takes the steps of its measured run without the exchange of gradients.
It is never averaged with measured runs: here it is compared with its own.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.companion_account import companion_account
from scalesweep.analysis.stats import linear_interval, mean_interval
from scalesweep.analysis.step_account import NOEXCHANGE, STEPS, StepAccount
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


def noexchange_rows(
    points: Sequence[Point],
    accounts: Mapping[int, StepAccount],
    stamped: Mapping[int, StepAccount],
) -> list[dict[str, Any]]:
    """The columns of a row per point with runs without exchange.

    ``accounts`` of ``companion_accounts``, ``stamped`` those of the measured runs' own time stamps,
    by row of the summary.
    """
    rows = []
    for point in points:
        pairs = [(row, accounts[row]) for row in point.rows.tolist() if row in accounts]
        if not pairs:
            continue
        every = [account for _, account in pairs]
        exposed = np.array([float(account.communication or 0.0) for account in every])
        steps = np.array([account.elapsed for account in every])
        own = [stamped[place] for place, _ in pairs if place in stamped]
        rows.append(
            {
                "point": point.values,
                "source": point.source,
                "pairs": len(pairs),
                "method": NOEXCHANGE,
                **_with_bounds("step_ms", steps * _MS),
                **_with_bounds(
                    "without_ms", np.array([account.max_busy for account in every]) * _MS
                ),
                **_with_bounds("communication_ms", exposed * _MS),
                **_with_bounds("communication_share", exposed / steps),
                "stamped_ms": _stamped(own) if len(own) == len(pairs) else None,
            }
        )
    return rows


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
