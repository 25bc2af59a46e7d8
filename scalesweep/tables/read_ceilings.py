"""What the machine gives to plain reads of files, by nodes and state of the page cache.

The ceiling is the best point of the campaign's experiments whose benchmark.yaml says ``ceiling:
files``. Rates are bytes/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.best_rate import BestRate, best_rate
from scalesweep.analysis.roofline import Reach, reach_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import Plan
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.rank_layout import Layout

FILES = "files"
COLD, WARM = "cold", "warm"
# Parameters of benchmarks that say whether files come from the page cache.
_OF_PROBE = "cache"
_STATE, _DROPS = "page_cache", "drop_page_cache"


@dataclass(frozen=True)
class ReadCeiling:
    """The most that plain reads reach on a number of nodes, all together."""

    state: str | None  # cold | warm: what the page cache held; None where that is not known
    nodes: int
    values: tuple[float, ...]  # bytes/s, of each repeat
    where: str  # the experiment

    @cached_property
    def best(self) -> BestRate:
        """The best of the repeats with its 95 % interval, in bytes/s."""
        return best_rate(np.array(self.values))

    @property
    def least(self) -> Reach:
        """How far the least time of a read that it stands for reaches."""
        reach = reach_of(self.best.value, self.best.low, self.best.high)
        return Reach(reach.above, reach.below)


def read_ceilings(summary: pd.DataFrame, plan: Plan) -> list[ReadCeiling]:
    """What a campaign's runs measured of reading: by state and nodes the best point.

    One that was imported or simulated counts only where none was measured.
    """
    best_of: dict[tuple[str | None, int], tuple[tuple[bool, float], ReadCeiling]] = {}
    for experiment in plan["experiments"]:
        if experiment.get("ceiling") != FILES or not experiment["main_metric"]:
            continue
        data = ExperimentData(summary, experiment)
        for point in data.points():
            values = data.repeats(point, (str(experiment["main_metric"]), "run"))
            every = parameters_at(experiment, point.values)
            if not values.size or every.get("pattern") == "random":
                continue
            where = experiment["name"]
            where += "" if point.source == "measured" else f" ({point.source})"
            kept = tuple(values.tolist())
            state = every.get(_OF_PROBE)
            ceiling = ReadCeiling(
                str(state) if state in (COLD, WARM) else None, Layout.of(every).nodes, kept, where
            )
            rank = (point.source == "measured", ceiling.best.value)
            key = (ceiling.state, ceiling.nodes)
            if key not in best_of or best_of[key][0] < rank:
                best_of[key] = (rank, ceiling)
    return [ceiling for _, ceiling in best_of.values()]


def state_of(every: Mapping[str, Any], phase: str) -> str | None:
    """What the page cache holds of the files in a phase: cold or warm; None if not known.

    ``page_cache`` says it of all epochs, ``drop_page_cache`` of the first: what was read once is
    in the cache unless it is larger than that.
    """
    if _STATE in every:
        return str(every[_STATE])
    if _DROPS not in every:
        return None
    return WARM if phase == "later" else COLD if every[_DROPS] else None


def reads_files(experiment: Mapping[str, Any]) -> bool:
    """Whether an experiment is of a benchmark of which the state of the page cache is known."""
    return not {_STATE, _DROPS}.isdisjoint({*experiment["fixed"], *experiment["axes"]})
