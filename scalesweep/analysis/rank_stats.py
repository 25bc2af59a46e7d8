"""What the times of a run's ranks say of each rank: quantiles, slowness, and what chance makes.

Arrays are ``[step, rank]`` in seconds; a step is an epoch where a program keeps no steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.stats import SEED, t_quantile
from scalesweep.analysis.types import Floats, Places
from scalesweep.core.record_check import MAX_NUMBER

# Whose time it is. WORK: of the rank alone. INPUT: waiting for batches. STEP and EPOCH: as the
# program timed them, which may hold waiting for other ranks. In an epoch, or in a step.
WORK, INPUT, STEP, EPOCH = "work", "input", "step", "epoch"
STEP_WORK, STEP_INPUT = "step-work", "step-input"
OF_STEPS = frozenset({STEP, STEP_WORK, STEP_INPUT})
ALONE, READING = frozenset({WORK, STEP_WORK}), frozenset({INPUT, STEP_INPUT})
QUANTILES = {"median": 0.5, "p05": 0.05, "p25": 0.25, "p75": 0.75, "p95": 0.95, "max": 1.0}
# Steps of a run are taken together to at most so many blocks: their medians leave out what is
# short-lived, and hardly depend on each other where single steps do.
BLOCKS = 8
# Of all runs of a point together, or one a run.
UNITS = 24
SHUFFLES = 399
# Extra time below this share of a step is not worth a name.
NOTABLE = 0.05


def own_times(samples: Mapping[str, NDArray[Any]], ranks: int) -> dict[str, tuple[Floats, Floats]]:
    """The times by rank that the arrays of a run hold, by whose time it is, each with whole steps'.

    Steps without those of the warm-up, else epochs without the first where there are more. Where a
    program reports its own work (``span_compute``, with ``span_input``), or all of its epoch is
    input, that is WORK; else ``span_input`` is INPUT; STEP_WORK and STEP_INPUT where it reports
    them for each of its steps. Left out: arrays that are not positive, do
    not have a column for each rank, or were timed by one clock for all ranks.
    """
    names = ("local_times", "step_times", "span_compute", "span_input")
    local, steps, compute, reading = (_times(samples, name, ranks) for name in names)
    times_of: dict[str, Floats | None] = {INPUT: reading}
    if compute is not None:
        whole = reading is not None and reading.shape == compute.shape
        times_of = {WORK: compute + reading if whole and reading is not None else compute}
    elif local is not None and reading is not None and np.array_equal(local, reading):
        times_of, local = {WORK: local}, None
    whole_steps = None
    if steps is not None:
        own = compute if compute is not None else reading
        if own is not None and len(own) >= len(steps) - 1:
            names_of_steps = {WORK: STEP_WORK, INPUT: STEP_INPUT}
            times_of = {names_of_steps[kind]: times for kind, times in times_of.items()}
            whole_steps = steps[-len(own) :]
        times_of[STEP] = steps
    else:
        times_of[EPOCH] = local
    whole_times = {WORK: local, INPUT: local, STEP_WORK: whole_steps, STEP_INPUT: whole_steps}
    return {
        kind: (times, times if (spent := whole_times.get(kind)) is None else spent)
        for kind, times in times_of.items()
        if times is not None and times.min() > 0 and (times != times[:, :1]).any()
    }


def rank_matrix(samples: Mapping[str, NDArray[Any]], name: str, ranks: int) -> Floats | None:
    """An array [step, rank] of a run's samples as float64; None if there is none of this shape."""
    if name not in samples:
        return None
    array = samples[name]
    shaped = array.ndim == 2 and array.shape[1] == ranks and array.size > 0
    return array.astype(np.float64, copy=False) if shaped and array.dtype.kind in "fiu" else None


def _times(samples: Mapping[str, NDArray[Any]], name: str, ranks: int) -> Floats | None:
    """An array [step, rank] of finite numbers; of epochs without the first."""
    values = rank_matrix(samples, name, ranks)
    if values is None:
        return None
    values = values[1:] if name != "step_times" and len(values) > 1 else values
    # A minimum or maximum of which one is NaN fails the comparison too.
    return values if values.min() > -MAX_NUMBER and values.max() < MAX_NUMBER else None


@dataclass(frozen=True)
class Spread:
    """The times of one run's ranks, reduced: arrays ``[rank]`` and medians ``[block, rank]``."""

    steps: int
    quantiles: Mapping[str, Floats]  # s
    blocks: Floats  # s
    slow: Floats  # median over that of all ranks
    low: Floats  # bounds of `slow` over the steps, NaN for one block
    high: Floats
    excess: Floats  # what median and mean both have more than those of all ranks, in whole steps


def spread_of(times: Floats, whole: Floats) -> Spread:
    """Reduce ``times[step, rank]``; ``whole`` are the times of whole steps.

    ``slow`` has a 95 % interval over the blocks: Student's t on the logarithms of the blocks'
    ratios to the median over the ranks.
    """
    levels = list(QUANTILES.values())
    quantiles = dict(zip(QUANTILES, np.quantile(times, levels, axis=0), strict=True))
    medians = quantiles["median"]
    middle = float(np.median(medians))
    blocks = np.stack([np.median(part, axis=0) for part in _parts(times, BLOCKS)])
    slow = medians / middle
    factor = _factor(relative(blocks))
    means = times.mean(axis=0)
    # Where steps wait for all ranks, medians may differ, but means cannot by much.
    more = np.minimum(medians - middle, means - float(np.median(means)))
    excess = more / float(np.median(whole))
    return Spread(len(times), quantiles, blocks, slow, slow / factor, slow * factor, excess)


def _parts(rows: Floats, most: int) -> list[Floats]:
    """The rows in their order, in as many equal parts as there may be."""
    return np.array_split(rows, min(len(rows), most))


def relative(blocks: Floats) -> Floats:
    """Logarithm of each time over the median over the ranks in its block."""
    return np.asarray(np.log(blocks / np.median(blocks, axis=1, keepdims=True)), np.float64)


def _factor(logs: Floats) -> Floats:
    """Half width of the 95 % interval of the mean of ``logs[block, rank]``, as a factor."""
    if len(logs) < 2:
        return np.full(logs.shape[1], np.nan)
    error = logs.std(axis=0, ddof=1) / np.sqrt(len(logs))
    return np.asarray(np.exp(t_quantile(len(logs) - 1) * error), np.float64)


def chances(blocks: Sequence[Floats], places: Sequence[Places], count: int) -> Floats:
    """How often chance makes any of ``count`` ranks (or hosts) as slow as each of them was.

    ``blocks`` holds medians ``[block, column]`` of each run, ``places`` which rank (or host) each
    column is. If none is special, every order of the columns in a block is as likely: the largest
    mean logarithm of the relative time over all of them, in 399 random orders of every block, is
    what that of each one is held against (a permutation test of the maximum, so that the choice
    of the slowest among many is paid for). Blocks of all runs count equally. NaN for those that
    less than half of the blocks know.
    """
    most = max(1, UNITS // len(blocks))
    units = [
        np.stack([part.mean(axis=0) for part in _parts(relative(block), most)]) for block in blocks
    ]
    known = np.zeros(count)
    for unit, columns in zip(units, places, strict=True):
        known[columns] += len(unit)
    usual = known * 2 >= sum(map(len, units))

    def means(rows: Sequence[Floats]) -> Floats:
        total = np.zeros(count)
        for values, columns in zip(rows, places, strict=True):
            total[columns] += values.sum(axis=0)
        return total[usual] / known[usual]

    chances = np.full(count, np.nan)
    seen = means(units)
    draw = np.random.default_rng(SEED)
    highest = [
        means([draw.permuted(unit, axis=1) for unit in units]).max() for _ in range(SHUFFLES)
    ]
    beaten = (np.array(highest)[:, None] >= seen[None, :] - 1e-12).sum(axis=0)
    chances[usual] = (1 + beaten) / (1 + SHUFFLES)
    return chances


def by_host(blocks: Floats, hosts: Sequence[str]) -> tuple[list[str], Floats]:
    """Hosts in the order of their first rank, and the median over each one's ranks by block."""
    ranks: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    if len(ranks) == len(hosts):
        return list(ranks), blocks
    columns = [np.median(blocks[:, own], axis=1) for own in ranks.values()]
    return list(ranks), np.stack(columns, axis=1)
