"""The order in which a campaign's runs are started, so that drift does not look like an effect.

A machine that slows down over a campaign (other users, heat, a file system that fills) makes
whatever ran last look slow. So the repeats of all points are interleaved: repeat 0 of every point
in a random order, then repeat 1 of every point in another one, and so on. These are randomised
complete blocks (Montgomery, Design and Analysis of Experiments, chapter 4); drift slower than a
block adds to the spread of all points equally. A control point, one point measured again and again
between all the others, shows the drift itself (``scalesweep.analysis.drift``).

Standard library only. A run's position depends on the campaign and the seed alone, not on what
is done already; which of two runs comes first (control runs apart) stays when others are added.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from types import MappingProxyType

# Fractional part of the golden ratio: of its multiples (modulo 1) any first few lie evenly spread.
GOLDEN = (math.sqrt(5) - 1) / 2


def arranged(
    runs: Mapping[str, int],
    seed: int | None,
    control: Sequence[str] = (),
    profiled: Sequence[str] = (),
    stages: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Run ids in the order in which they are to be started.

    ``runs``: run id -> repeat, in the order of the campaign file, which is kept if ``seed`` is
    None; ``control``: runs of the control point by repeat, which ``runs`` does not hold;
    ``profiled`` come last. ``stages``: runs that wait until those of smaller numbers are over (0
    for all others): each stage has blocks of its own.
    """
    ids = list(runs)
    if seed is not None:
        ids.sort(key=lambda run_id: (runs[run_id], _drawn(seed, run_id)))
        profiled = sorted(profiled, key=lambda run_id: _drawn(seed, run_id))
    if stages:
        # A sort keeps the order of what is equal.
        ids.sort(key=lambda run_id: stages.get(run_id, 0))
    return [*_with_control(ids, control), *profiled]


def _drawn(seed: int, run_id: str) -> bytes:
    """The place that chance gives a run in its block: sorting by it is a random permutation."""
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
