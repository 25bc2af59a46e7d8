"""The accounts of runs that other tools measured: imported profiles, and traces of ranks.

Profiles in the terms of POP (modelfactors, TALP, mpitrace) know neither steps nor input. With u the
useful time of a rank, T the run time and T' that of a replay on an ideal network:

    T = mean u                    computation
      + (max u - mean u)          persistent imbalance
      + (T - max u)               communication; with a replay it is split into
            (T' - max u)          serialisation, and
            (T - T')              transfer

These are the losses of POP's additive form (numericalalgorithmsgroup/pypop, pypop/metrics/mpi.py),
times T.

Traces of ranks know steps. Means over the ranks, which all take the same steps:

    T = mean computation
      + persistent imbalance        largest - mean computation, but no more than what is exposed:
                                    the others wait that long in the exchange
      + communication               exposed, without that
      + unattributed                copies and idle: neither computation nor exchange

The imbalance is known where the traces of all ranks are. Traces without steps have no account.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.step_account import PROFILE, TRACE, StepAccount
from scalesweep.core.formatting import finite

# Two decimals of three factors.
_AGREE = 0.02
IDEAL_RUNTIME = "ideal_runtime"


def profile_account(metrics: Mapping[str, Any], ranks: int) -> StepAccount | None:
    """The account from the metrics of an imported profile, in s per run.

    None where run time, parallel efficiency, load balance or communication efficiency is missing,
    or parallel efficiency is not the product of the other two (of ranks with several threads it
    holds their losses too).
    """
    names = (
        "runtime", "parallel_efficiency", "load_balance", "communication_efficiency", IDEAL_RUNTIME,
    )  # fmt: skip
    runtime, parallel, balance, communication, ideal = (_value(metrics.get(name)) for name in names)
    if runtime is None or parallel is None or balance is None or communication is None:
        return None
    if min(runtime, parallel, balance, communication) <= 0:
        return None
    if abs(parallel - balance * communication) > _AGREE or communication > 1 or balance > 1:
        return None
    mean, highest = parallel * runtime, communication * runtime
    replayed = None if ideal is None or not highest <= ideal <= runtime else ideal
    terms = {"compute": mean, "persistent": highest - mean}
    if replayed is None:
        terms["communication"] = runtime - highest
    else:
        terms |= {"alternating": replayed - highest, "transfer": runtime - replayed}
    return StepAccount(PROFILE, 1, ranks, runtime, terms)


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
    return StepAccount(TRACE, int(steps), ranks, window / steps, terms, int(steps))


def _value(metric: Any) -> float | None:
    value = metric.get("value") if isinstance(metric, Mapping) else None
    return float(value) if finite(value) else None
