"""The order in which runs start, so that drift does not look like an effect.

Repeat 0 of every point comes in a random order, then repeat 1 of every point in another one, and so
on: randomised complete blocks (Montgomery, Design and Analysis of Experiments, chapter 4). A run's
position depends on the campaign and the seed alone, not on what is done already.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

from scalesweep.config.campaign import Campaign
from scalesweep.core.profilers import NOEXCHANGE, NONE

# Fractional part of the golden ratio: of its multiples (modulo 1) any first few lie evenly spread.
GOLDEN = (math.sqrt(5) - 1) / 2


def positions(campaign: Campaign) -> dict[str, int]:
    """Position of each run of a campaign in the order of start, from 1.

    Runs without exchange are compared with the measured ones, so they are in the same blocks.
    """
    control = {run.run_id: run for e in campaign.experiments if e.control for run in e.runs}
    runs = {i: run for i, (_, run) in campaign.unique_runs().items() if i not in control}
    repeats = {i: it.repeat for i, it in runs.items() if it.profile in (NONE, NOEXCHANGE)}
    profiled = [run_id for run_id in runs if run_id not in repeats]
    order = arranged(repeats, campaign.keys.seed, [*control], profiled, _stages(campaign))
    return {run_id: place for place, run_id in enumerate(order, 1)}


def _stages(campaign: Campaign) -> dict[str, int]:
    """By how many counts of an experiment with a stop each run waits for, 0 for most."""
    stages: dict[str, int] = {}
    for each in campaign.experiments:
        stops, scale_of = each.keys.stop_below is not None, each.benchmark.scale_of
        counts = sorted({scale_of(run.point) for run in each.runs}) if stops else []
        for run in each.runs:
            place = counts.index(scale_of(run.point)) if stops else 0
            stages[run.run_id] = min(place, stages.get(run.run_id, place))
    return stages


def arranged(
    runs: Mapping[str, int],
    seed: int | None,
    control: Sequence[str] = (),
    profiled: Sequence[str] = (),
    stages: Mapping[str, int] | None = None,
) -> list[str]:
    """Run ids in the order in which they are to be started.

    ``runs``: run id -> repeat, in the order of the campaign file, which is kept if ``seed`` is
    None; ``control``: runs of the control point by repeat, which come between; ``profiled`` come
    last. ``stages``: the number of runs that wait for those of smaller numbers; else 0.
    """
    ids = list(runs)
    if seed is not None:
        ids.sort(key=lambda run_id: (runs[run_id], _drawn(seed, run_id)))
        profiled = sorted(profiled, key=lambda run_id: _drawn(seed, run_id))
    ids.sort(key=lambda run_id: (stages or {}).get(run_id, 0))  # keeps the order of equals
    return [*_with_control(ids, control), *profiled]


def _drawn(seed: int, run_id: str) -> bytes:
    """The place that chance gives a run in its block."""
    return hashlib.blake2b(f"{seed}/{run_id}".encode(), digest_size=8).digest()


def _with_control(others: Sequence[str], control: Sequence[str]) -> list[str]:
    """The control's runs spread evenly among the others, the first and the last being control runs.

    Any first few of its repeats (those that an experiment shares) are spread over the campaign too.
    """
    if not control:
        return list(others)
    spread = sorted(range(len(control)), key=lambda repeat: repeat * GOLDEN % 1)
    gaps = max(len(control) - 1, 1)
    ends = [round(len(others) * place / gaps) for place in range(len(control) + 1)]
    parts = zip(spread, pairwise(ends), strict=True)
    return list(chain.from_iterable([control[n], *others[a:b]] for n, (a, b) in parts))
