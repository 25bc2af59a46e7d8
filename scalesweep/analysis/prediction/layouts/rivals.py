"""Ways to say how fast a layout will be at another scale: the cost model, and plain rivals of it.

Each is made of what was measured and gives logarithms of rank-seconds a sample, which perfect
scaling keeps.
"""

from collections.abc import Callable, Mapping

import numpy as np

from scalesweep.analysis.prediction.layouts.cost import fit_cost
from scalesweep.analysis.prediction.layouts.runs import Columns, Layout, Measured
from scalesweep.analysis.types import Floats

Forecaster = Callable[[tuple[Layout, ...]], Floats]
COST, CARRY, NEAREST = "cost model", "carry over", "nearest neighbours"
NEIGHBOURS = 3
# Doublings of the ranks that make two layouts as different as any other.
SCALE = 2.0
# What a layout is charged for every doubling of the micro-batch that its counterpart differs by.
AWAY = 0.05


def _work(layouts: tuple[Layout, ...]) -> Floats:
    """Logarithms of samples of a step over ranks."""
    return np.log(np.array([layout.global_batch / layout.ranks for layout in layouts], np.float64))


def cost_model(measured: Measured) -> Forecaster:
    """By the fitted sum of terms."""
    model = fit_cost(measured)
    return lambda layouts: np.log(model.seconds(layouts)) - _work(layouts)


def carry_over(measured: Measured) -> Forecaster:
    """A layout is as fast as its counterpart at the largest scale: the same tp, pp, cp, ep and
    sharding, fewer replicas, the micro-batch nearest to its own; without one it comes last."""
    last = measured.where(measured.ran & (measured.scale == measured.scales[-1]))
    costs = np.log(last.seconds) - _work(last.layouts)
    known: dict[tuple[object, ...], list[tuple[float, float]]] = {}
    for layout, cost in zip(last.layouts, costs, strict=True):
        known.setdefault(_split(layout), []).append((np.log2(layout.micro_batch), float(cost)))
    slowest = float(costs.max())

    def forecast(layouts: tuple[Layout, ...]) -> Floats:
        values = []
        for layout in layouts:
            size = np.log2(layout.micro_batch)
            there = known.get(_split(layout), [])
            away = [(abs(size - own), cost) for own, cost in there]
            # Without a counterpart: behind all that have one.
            distance, cost = min(away, default=(0.0, slowest + 1.0))
            values.append(cost + AWAY * distance)
        return np.array(values, np.float64)

    return forecast


def _split(layout: Layout) -> tuple[object, ...]:
    return layout.tp, layout.pp, layout.cp, layout.ep, layout.sharded


def nearest(measured: Measured) -> Forecaster:
    """The mean of the nearest layouts that ran at any scale."""
    there = measured.where(measured.ran)
    costs = np.log(there.seconds) - _work(there.layouts)
    known = with_scale(there.layouts)

    def forecast(layouts: tuple[Layout, ...]) -> Floats:
        away = ((with_scale(layouts)[:, None] - known[None]) ** 2).sum(axis=2)
        closest = np.argsort(away, axis=1, kind="stable")[:, :NEIGHBOURS]
        return np.asarray(costs[closest].mean(axis=1), np.float64)

    return forecast


def with_scale(layouts: tuple[Layout, ...]) -> Floats:
    """``[layout, axis]``: where layouts lie, in doublings, their number of ranks too."""
    columns = Columns(layouts)
    return np.column_stack([columns.places, np.log2(columns.ranks) / SCALE])


METHODS: Mapping[str, Callable[[Measured], Forecaster]] = {
    COST: cost_model,
    NEAREST: nearest,
    CARRY: carry_over,
}
