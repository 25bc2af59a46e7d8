"""A run's trace beside its own time stamps: the same steps of a rank, by two clocks.

The windows of a trace are no steps of the stamps' numbering: windows in which ranks met are left
out, and steps that warm up have windows too. So the windows are shifted along the stamped steps to
where their lengths differ the least (median), which tells where one step in a thousand agrees with
no other; windows that fit nowhere are compared with nothing.

What the two call computation is not the same. Stamps count all as computation that waits for
nobody: what lies between two operations (Python, the profiler itself) too, which a trace has as
rest. Stamps begin to wait at the last gradient of a rank; a trace counts all time in which an
exchange runs and no operation does.
"""

from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.torch_trace import TorchTrace, torch_account
from scalesweep.analysis.trace_account import COMMUNICATION, COMPUTATION, REST
from scalesweep.analysis.types import Floats

# Of the shorter of both, so many steps must lie beside each other, and their lengths differ by no
# more than this (median).
_LEAST_SHARE, _MOST_APART = 0.5, 0.05
FEWEST = 5


@dataclass(frozen=True)
class StampedSteps:
    """Seconds of a rank's steps by its stamps, ``[step]``: the step with the time to the next one,
    its computation, and its wait for others."""

    step: Floats
    compute: Floats
    exchange: Floats


@dataclass(frozen=True)
class SideBySide:
    """Means over the same ``steps`` in seconds, by the trace and by the stamps; ``trace_rest`` is
    time in which it shows nothing."""

    steps: int
    trace_step: float
    trace_compute: float
    trace_rest: float
    trace_exchange: float
    step: float
    compute: float
    exchange: float


def side_by_side(trace: TorchTrace, stamps: StampedSteps) -> SideBySide | None:
    """A rank's trace beside its stamps; None where they show no same steps."""
    lengths = trace.windows[:, 1] - trace.windows[:, 0] if len(trace.windows) else np.zeros(0)
    place = _same_steps(lengths, stamps.step)
    if place is None:
        return None
    first, begin, count = place
    account = torch_account(replace(trace, windows=trace.windows[first : first + count]))
    if account is None:
        return None
    shares = {name: share or 0.0 for name, share in account.shares.items()}
    known = slice(begin, begin + count)
    compute, exchange = shares[COMPUTATION], shares[COMMUNICATION]
    return SideBySide(
        steps=count,
        trace_step=account.step_s,
        trace_compute=compute * account.step_s,
        trace_rest=shares[REST] * account.step_s,
        trace_exchange=exchange * account.step_s,
        step=float(stamps.step[known].mean()),
        compute=float(stamps.compute[known].mean()),
        exchange=float(stamps.exchange[known].mean()),
    )


def _same_steps(windows: Floats, steps: Floats) -> tuple[int, int, int] | None:
    """Where windows and steps begin to lie beside each other, and how many do."""
    shorter = min(len(windows), len(steps))
    best: tuple[float, tuple[int, int, int]] | None = None
    for shift in range(-len(steps) + 1, len(windows)):
        first, begin = max(shift, 0), max(-shift, 0)
        count = min(len(windows) - first, len(steps) - begin)
        if count < max(FEWEST, _LEAST_SHARE * shorter):
            continue
        own, other = windows[first : first + count], steps[begin : begin + count]
        apart = float(np.median(np.abs(own - other) / np.maximum(other, 1e-12)))
        if best is None or apart < best[0]:
            best = apart, (first, begin, count)
    return best[1] if best is not None and best[0] <= _MOST_APART else None
