"""The account of a run from a second one that left out the exchange of gradients.

On a GPU an enqueued kernel is not a finished one, so that no time stamp inside a step can tell
computation from communication. A run without exchange (``<run id>.noexchange``) takes the same
steps, each rank by itself. With C[r] its mean step on rank r, T the mean step of the measured run
and B the time from the last rank's end of an epoch to the end on all ranks, per step:

    T = common input + common computation        the lower median over the ranks of each, alone
      + persistent imbalance                     max C - both of them
      + communication                            T - B - max C: exposed transfer, and waiting that
                                                 alternates between the ranks; not told apart
      + barrier                                  B

Communication may come out below zero by as much as the two runs differ by chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.step_account import (
    NOEXCHANGE,
    StepAccount,
    lower_of,
    steps_per_epoch,
)
from scalesweep.analysis.types import Floats

Samples = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class _Steps:
    """Mean seconds of a step: of each rank, of the slowest one, until all were done; ``input`` of
    each rank, None where it is not known."""

    count: int
    per_epoch: int
    own: Floats
    last: float
    whole: float
    input: Floats | None


def companion_account(
    samples: Samples,
    notes: Mapping[str, Any],
    alone: Samples,
    alone_notes: Mapping[str, Any],
    ranks: int,
) -> StepAccount | None:
    """The account of a measured run, in s per step, against its run without exchange.

    ``samples`` and ``notes`` of the measured one, ``alone`` those without. From ``step_times``, or
    from ``local_times`` and ``global_times`` by epoch, of which the first of several is left out.
    None where one of the two has neither.
    """
    whole, single = _steps(samples, notes, ranks), _steps(alone, alone_notes, ranks)
    if whole is None or single is None:
        return None
    slowest = int(single.own.argmax())
    highest, common = float(single.own[slowest]), lower_of(single.own)
    if not highest > 0 or whole.whole <= 0:
        return None
    reading = None if single.input is None else lower_of(single.input)
    compute = None
    if single.input is not None and reading is not None:
        compute = lower_of(single.own - single.input)
        common = reading + compute
    return StepAccount(
        form=NOEXCHANGE,
        steps=whole.count,
        per_epoch=whole.per_epoch,
        ranks=ranks,
        elapsed=whole.whole,
        input=reading,
        compute=compute,
        busy=common if compute is None else None,
        persistent=highest - common,
        alternating=None,
        transfer=None,
        barrier=whole.whole - whole.last if whole.whole > whole.last else None,
        mean_busy=float(single.own.mean()),
        max_busy=highest,
        busiest=highest,
        slowest=slowest,
        slowest_input=None
        if single.input is None or reading is None
        else float(single.input[slowest]) - reading,
        communication=whole.last - highest,
        variant="",
    )


def _steps(samples: Samples, notes: Mapping[str, Any], ranks: int) -> _Steps | None:
    steps = rank_matrix(samples, "step_times", ranks)
    reading = rank_matrix(samples, "span_input", ranks)
    if steps is not None:
        own, count = steps.mean(axis=0), len(steps)
        per_epoch = steps_per_epoch(notes) or count
        return _made(count, per_epoch, own, float(own.max()), float(own.max()), reading, steps)
    local, total = (rank_matrix(samples, name, ranks) for name in ("local_times", "global_times"))
    per_epoch = steps_per_epoch(notes) or 0
    if local is None or total is None or local.shape != total.shape or not per_epoch:
        return None
    later = slice(1 if len(local) > 1 else 0, None)
    kept = local[later]
    count = len(kept) * per_epoch
    ends = float(total[later].max(axis=1).sum()) / count
    last = float(kept.max(axis=1).sum()) / count
    if reading is not None and reading.shape == local.shape:
        reading = reading[later]
    return _made(count, per_epoch, kept.sum(axis=0) / count, last, ends, reading, kept)


def _made(
    count: int,
    per_epoch: int,
    own: Floats,
    last: float,
    whole: float,
    reading: Floats | None,
    like: Floats,
) -> _Steps | None:
    if not (np.isfinite(own).all() and np.isfinite(whole)):
        return None
    known = reading is not None and reading.shape == like.shape and np.isfinite(reading).all()
    spent = None if reading is None or not known else reading.sum(axis=0) / count
    return _Steps(count, per_epoch, own, last, whole, spent)
