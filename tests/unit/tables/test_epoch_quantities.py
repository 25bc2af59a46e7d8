"""Quantities of runs that are worked out together are exactly those of each alone."""

import math
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.stats import epoch_stats
from scalesweep.analysis.steady_state import steady_state
from scalesweep.tables.epoch_quantities import EPOCH_COLUMNS, Timed, alike, epoch_quantities


def made(epochs: int, ranks: int, seed: int, **changes: Any) -> Timed:
    """A run whose first epoch may be slow, and sometimes the second too."""
    draw = np.random.default_rng(seed)
    local = draw.lognormal(1, 0.3, (epochs, ranks))
    local[: seed % 3] *= 4
    times = {"local_times": local, "global_times": local.max(axis=1, keepdims=True) + 0 * local}
    told = {"times": times, "samples": 320 * ranks + seed, "bytes": 10**12 + seed}
    return Timed(**{**told, **changes})


def alone(run: Timed) -> tuple[dict[str, float], str | None]:
    """As the quantities are defined, without any other run."""
    found = dict.fromkeys(EPOCH_COLUMNS, math.nan)
    local, total = run.times.get("local_times"), run.times.get("global_times")
    values = {"local_time": local, "total_time": total}
    if local is not None and run.samples is not None:
        values["local_throughput"] = run.samples / (local.shape[1] * local)
    if total is not None and run.samples is not None:
        values["total_throughput"] = run.samples / total
    if total is not None and run.bytes is not None:
        values["read_rate"] = run.bytes / total
    for metric, array in values.items():
        for phase, taken in (("init", slice(0, 1)), ("later", slice(1, None))):
            if array is not None and array[taken].size:
                mean, std = epoch_stats(array[taken])
                found[f"{metric}_mean_{phase}"], found[f"{metric}_std_{phase}"] = mean, std
    array = total if total is not None else local
    if array is None or len(array) < 2:
        return found, None
    said = steady_state(array, 1).message.replace("values", "epochs")
    return found, f"{said}; raise epochs, so that those before weigh less" if said else None


@pytest.mark.parametrize("epochs", [1, 2, 3, 5, 30])
@pytest.mark.parametrize("ranks", [1, 2, 7, 8, 9, 129, 1024])
def test_together_as_alone(epochs: int, ranks: int) -> None:
    runs = [made(epochs, ranks, seed) for seed in range(12)]
    runs += [made(epochs, ranks, 5, samples=None), made(epochs, ranks, 6, bytes=None)]
    runs += [made(epochs, ranks + 1, 7), made(epochs, ranks, 8, times={})]
    runs += [made(epochs, ranks, 9, times={"local_times": runs[0].times["local_times"]})]
    done: set[int] = set()
    warned = 0
    for places in alike(runs):
        for place, found in zip(places, epoch_quantities([runs[n] for n in places]), strict=True):
            values, warning = alone(runs[place])
            np.testing.assert_array_equal(list(found.values.values()), list(values.values()))
            assert list(found.values) == list(values) and found.warning == warning
            warned += warning is not None
        done.update(places)
    assert done == set(range(len(runs))) and (warned > 0 or epochs < 5)


def test_few_large_runs_are_taken_together() -> None:
    sizes = [len(places) for places in alike([made(5, 1024, seed) for seed in range(20)])]
    assert sum(sizes) == 20 and max(sizes) < 20
    assert [len(places) for places in alike([made(5, 4, seed) for seed in range(20)])] == [20]
