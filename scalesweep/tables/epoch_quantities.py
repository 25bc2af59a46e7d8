"""Means and deviations of times per epoch and rank, and what they say against the warm-up.

Runs of equal shape are worked out together: NumPy takes as long to begin with an array as to add up
some thousand numbers. Each row is added up in the order in which it would be alone, so a run's
numbers do not depend on which others it was read with.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.metrics import EPOCH_METRICS, EPOCH_PHASES, column
from scalesweep.analysis.stats import epoch_stats
from scalesweep.analysis.steady_state import steady_states
from scalesweep.analysis.types import Floats

EPOCH_COLUMNS = tuple(
    column(metric, stat, phase)
    for metric in EPOCH_METRICS
    for phase in EPOCH_PHASES
    for stat in ("mean", "std")
)
_TOGETHER = 1 << 16  # numbers; more would not stay in a processor's cache


class Timed(NamedTuple):
    """What was timed in a run: ``local_times`` and ``global_times`` [epoch, rank] in seconds, both
    of one shape, one of them or none; and the work of an epoch."""

    times: Mapping[str, Floats]
    samples: int | None
    bytes: int | None


class EpochQuantities(NamedTuple):
    """Of a run: ``EPOCH_COLUMNS``, NaN where missing, and what the steady-state test says against
    keeping exactly the first epoch apart (None: nothing)."""

    values: dict[str, float]
    warning: str | None


def alike(runs: Sequence[Timed]) -> Iterator[list[int]]:
    """Places of runs that ``epoch_quantities`` can take together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, run in enumerate(runs):
        shapes = tuple([(name, array.shape) for name, array in run.times.items()])
        groups.setdefault((shapes, run.samples is None, run.bytes is None), []).append(place)
    for places in groups.values():
        size = sum(array.size for array in runs[places[0]].times.values())
        several = max(1, _TOGETHER // max(1, size))
        yield from (places[at : at + several] for at in range(0, len(places), several))


def epoch_quantities(runs: Sequence[Timed]) -> list[EpochQuantities]:
    """Quantities of runs that are ``alike``.

    Raises ValueError where a quantity is not finite, OverflowError where work is no float64.
    """
    quantities = [dict.fromkeys(EPOCH_COLUMNS, math.nan) for _ in runs]
    times = {name: np.stack([run.times[name] for run in runs]) for name in runs[0].times}
    values = _quantities(times, runs)
    if not values:
        return [EpochQuantities(each, None) for each in quantities]
    whole = np.stack(list(values.values()), axis=1)  # [run, metric, epoch, rank]
    for phase, epochs in zip(EPOCH_PHASES, (slice(0, 1), slice(1, None)), strict=True):
        if (taken := whole[:, :, epochs]).size:
            for stat, numbers in zip(("mean", "std"), epoch_stats(taken), strict=True):
                names = [column(metric, stat, phase) for metric in values]
                for each, row in zip(quantities, numbers.tolist(), strict=True):
                    each.update(zip(names, row, strict=True))
    warnings = _warnings(times.get("global_times", times.get("local_times")), len(runs))
    return [EpochQuantities(*each) for each in zip(quantities, warnings, strict=True)]


def _quantities(times: Mapping[str, Floats], runs: Sequence[Timed]) -> dict[str, Floats]:
    values: dict[str, Floats] = {}
    samples = _column([run.samples for run in runs])
    size = _column([run.bytes for run in runs])
    if (local := times.get("local_times")) is not None:
        values["local_time"] = local
        if samples is not None:
            values["local_throughput"] = samples / (local.shape[-1] * local)
    if (total := times.get("global_times")) is not None:
        values["total_time"] = total
        if samples is not None:
            values["total_throughput"] = samples / total
        if size is not None:
            values["read_rate"] = size / total
    return values


def _column(counts: Sequence[int | None]) -> Floats | None:
    """``[run, 1, 1]``; None where no run has any."""
    numbers = [float(count) for count in counts if count is not None]
    return np.array(numbers).reshape(-1, 1, 1) if numbers else None


def _warnings(times: Floats | None, runs: int) -> list[str | None]:
    if times is None or times.shape[1] < 2:
        return [None] * runs
    states = steady_states(times, declared=1)
    advice = "raise epochs, so that those before weigh less"
    return [
        None if state.agrees else f"{state.message.replace('values', 'epochs')}; {advice}"
        for state in states
    ]
