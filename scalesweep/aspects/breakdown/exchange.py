"""What a step exchanges, and what the network would take for it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scalesweep.analysis.profile import bus_factor
from scalesweep.analysis.roofline import share_interval
from scalesweep.analysis.stats import mean_interval
from scalesweep.analysis.step_account import STEPS, StepAccount
from scalesweep.tables.machine import Machine, whole_point
from scalesweep.tables.machine_terms import Least, sent_in_a_step
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.sweeps import ALLREDUCE

_MS = 1e3


def exchange_rows(
    data: ExperimentData,
    points: Sequence[Point],
    machine: Machine,
    accounts: Mapping[int, StepAccount],
) -> list[dict[str, Any]]:
    """The columns of a row per point that exchanges gradients over a network that was measured.

    ``accounts`` are those of the records, by row of the summary.
    """
    return [row for point in points if (row := _row(data, point, machine, accounts))]


def _row(
    data: ExperimentData, point: Point, machine: Machine, every: Mapping[int, StepAccount]
) -> dict[str, Any] | None:
    """The row of a point: the exchange of a mean step (bytes, ms, bytes/s) next to what networks
    can do.

    None where no run has times of its steps, an exchange that takes time, or a network to compare
    with.
    """
    known = [every[row] for row in point.rows.tolist() if row in every]
    accounts = [account for account in known if account.form == STEPS]
    sent = sent_in_a_step(data, point, machine) if accounts else None
    transfers = np.array([account.transfer or 0.0 for account in accounts], np.float64)
    if sent is None or not transfers.min() > 0:
        return None
    exchange, as_one = sent.exchange, sent.as_one
    seconds, shares = mean_interval(transfers * _MS), as_one.value / (transfers * _MS)
    factor = bus_factor(ALLREDUCE, Layout.of(whole_point(data, point)).ranks) or math.nan
    rates = factor * exchange.total
    rate, share = mean_interval(rates / transfers), share_interval(shares, as_one.reach)
    values = {
        "message_bytes": exchange.total, "tensors": len(exchange.tensor_bytes),
        "messages": len(exchange.messages), "largest_bytes": max(exchange.messages),
        "bucket_bytes": exchange.bucket_bytes,
        "cycle_ms": math.nan if exchange.cycle_s is None else exchange.cycle_s * _MS,
        "transfer_ms": float(transfers.mean()) * _MS, "transfer_low": seconds.low,
        "transfer_high": seconds.high, "rate": float((rates / transfers).mean()),
        "rate_low": rate.low, "rate_high": rate.high, **_bounds("fused", sent.as_fused),
        **_bounds("one", as_one), "of_network": float(shares.mean()), "of_network_low": share.low,
        "of_network_high": share.high, "machine_from": as_one.where,
    }  # fmt: skip
    return {"point": point.values, "source": point.source, "repeats": len(accounts), **values}


def _bounds(name: str, least: Least) -> dict[str, float]:
    return {f"{name}_ms": least.value, f"{name}_low": least.low, f"{name}_high": least.high}
