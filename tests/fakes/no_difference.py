"""Campaigns in which nothing is there, and how often a sentence on them is clear all the same.

Every mode and number of threads is as fast as the others, the first epoch as the later ones, and
the efficiency is 80 % to the digit at each count, so that neither above nor below is true.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, Finding
from tests.fakes import noise
from tests.fakes.campaigns import Campaign

RATE, CV = 100.0, 0.05
# Independent noise of three kinds; a machine that is in another state in each block of runs; noise
# that grows tenfold from the smallest count to the largest; a state that fades from run to run.
STATES, GROWING, FADING = "states", "growing", "fading"
# Noise that grows from the smallest count to the largest: by how much, of which kind, and by how
# much the state of a block scatters, over the noise in the middle.
GROWTHS: dict[str, tuple[float, str, float]] = {
    GROWING: (10, noise.NORMAL, 0),
    "growing 3": (3, noise.NORMAL, 0),
    "growing 30": (30, noise.NORMAL, 0),
    "growing heavy": (10, noise.HEAVY, 0),
    "growing skewed": (10, noise.SKEWED, 0),
    "growing outliers": (10, noise.OUTLIERS, 0),
    "growing states": (10, noise.NORMAL, 1.5),
}
# Two runs in five are in a slow state, in all their epochs, which costs more the larger the scale.
TWO_STATES, _SLOW, _COSTS, _WITHIN = "two states", 0.4, (0.1, 0.4), 0.005
KINDS = (*noise.KINDS, STATES, GROWING, FADING, *list(GROWTHS)[1:], noise.OUTLIERS, TWO_STATES)
# Experiments by what varies in them.
SCALING = {"ranks": [1, 2, 4, 8], "mode": ["a", "b"]}
GRID = {"ranks": [1], "mode": ["a", "b", "c", "d"], "threads": [1, 2, 4]}
SERIES = {"ranks": [1, 2, 4, 8, 16]}
EXPERIMENTS: dict[str, dict[str, Any]] = {"scaling": SCALING, "grid": GRID, "series": SERIES}
_PARAMETERS = {
    "mode": {"default": "a"}, "threads": {"default": 1, "unit": "threads"}, "ranks": {"default": 1},
}  # fmt: skip


def _factors(generator: np.random.Generator, kind: str, points: int, repeats: int) -> Any:
    """What chance makes of each run's rate, ``[point, repeat]``, of mean 1."""
    shape = (points, repeats)
    growth, of, drift = GROWTHS.get(kind, (1, kind, 1.5 if kind == STATES else 0))
    own = noise.draw(generator, of, shape)
    own *= np.geomspace(growth**-0.5, growth**0.5, points)[:, None]
    own += drift * generator.normal(size=repeats)
    if kind == FADING:
        steps = generator.normal(size=points * repeats)
        state = np.zeros(points * repeats)
        for place in range(1, state.size):
            state[place] = 0.6 * state[place - 1] + 0.8 * steps[place]
        # Blocks run one after the other, each with its points in random order.
        order = generator.permuted(np.tile(np.arange(points)[:, None], repeats), axis=0)
        own = state[order + points * np.arange(repeats)]
    return np.maximum(1 + CV * own, 0.2)


def _both(generator: np.random.Generator, kind: str, points: int, repeats: int) -> dict[str, Any]:
    """The same of the first epoch and of later ones."""
    phases = ("init", "later")
    if kind != TWO_STATES:
        return {phase: _factors(generator, kind, points, repeats) for phase in phases}
    slow = generator.random((points, repeats)) < _SLOW
    state = 1 - slow * np.linspace(*_COSTS, points)[:, None]
    return {phase: state * (1 + generator.normal(0, _WITHIN, slow.shape)) for phase in phases}


def study(name: str, kind: str, repeats: int, seed: int) -> ExperimentResults:
    """An experiment of EXPERIMENTS, through the real tables."""
    generator = np.random.default_rng((seed, repeats, KINDS.index(kind)))
    axes = EXPERIMENTS[name]
    grids = np.meshgrid(*[np.arange(len(values)) for values in axes.values()], indexing="ij")
    points = [
        {axis: values[place] for (axis, values), place in zip(axes.items(), places, strict=True)}
        for places in zip(*[grid.ravel() for grid in grids], strict=True)
    ]
    rates = _both(generator, kind, len(points), repeats)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    runs = []
    for place, point in enumerate(points):
        ideal = RATE * point["ranks"] * (0.8 if point["ranks"] > 1 else 1.0)
        for repeat in range(repeats):
            began = begin + timedelta(minutes=repeat * len(points) + place)
            row: dict[str, Any] = {"repeat": repeat, "started": began.isoformat()}
            for phase, factors in rates.items():
                row[f"total_throughput_mean_{phase}"] = ideal * factors[place, repeat]
            runs.append((point, row))
    entry = {"scaling": "weak" if name != "grid" else "none", "main_metric": "total_throughput"}
    varying = {axis: _PARAMETERS[axis] for axis, values in axes.items() if len(values) > 1}
    fixed = {axis: values[0] for axis, values in axes.items() if len(values) == 1}
    campaign = Campaign().add("e", runs, parameters={**varying, "ranks": {"default": 1}}, **entry)
    campaign.experiments[0].update(axes=list(varying), fixed=fixed)
    for planned, (_, row) in zip(campaign.experiments[0]["runs"], runs, strict=True):
        planned["repeat"] = row["repeat"]
    return campaign.study("e")


def false_sentences(name: str, kind: str, repeats: int, campaigns: int) -> Iterator[list[Finding]]:
    """Of each campaign the clear sentences, all of which are false."""
    for seed in range(campaigns):
        yield [
            one for one in find(study(name, kind, repeats, seed))
            # Of a single series the most ranks do have the highest rate.
            if one.level == CONFIRMED and (name, one.rule) != ("series", "best")
        ]  # fmt: skip


def share(name: str, kind: str, repeats: int, campaigns: int) -> float:
    """Share of campaigns with a false clear sentence."""
    found = false_sentences(name, kind, repeats, campaigns)
    return float(np.mean([bool(sentences) for sentences in found]))
