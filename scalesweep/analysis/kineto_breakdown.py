"""The breakdown of a step from the traces of a run's ranks, as their import keeps it.

Means over the ranks, which all take the same steps:

    T = mean computation
      + persistent imbalance        largest - mean computation, but no more than what is exposed:
                                    the others wait that long in the exchange
      + communication               exposed, without that
      + unattributed                copies and idle: neither computation nor exchange

The imbalance is known where the traces of all ranks are. Traces without steps have no breakdown.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.step_account import TRACE, StepAccount
from scalesweep.core.formatting import finite


def trace_breakdown(metrics: Mapping[str, Any], ranks: int) -> StepAccount | None:
    """The account from the metrics of imported traces, in s per step; None of other metrics."""
    names = ("runtime", "computation", "exposed_communication", "steps", "load_balance")
    window, computation, exposed, steps, balance = (_value(metrics.get(name)) for name in names)
    if window is None or computation is None or exposed is None or not steps:
        return None
    if min(window, computation) <= 0 or exposed < 0 or steps < 1:
        return None
    mean = computation / steps
    largest = mean / balance if balance is not None and 0 < balance <= 1 else mean
    exchange = exposed / steps
    waited = min(largest - mean, exchange)
    terms = {"compute": mean, "persistent": waited, "communication": exchange - waited}
    return StepAccount(
        TRACE, int(steps), ranks, window / steps, terms, mean, largest, per_epoch=int(steps)
    )


def _value(metric: Any) -> float | None:
    value = metric.get("value") if isinstance(metric, Mapping) else None
    return float(value) if finite(value) else None
