"""How fast input pipelines hand over samples when nothing trains on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from scalesweep.analysis.best_rate import BestRate, best_rate
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import Plan
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.read_ceilings import reads_files

_RATE = "total_throughput"


@dataclass(frozen=True)
class Loader:
    """The best point that loads such samples on such ranks: samples/s of all ranks."""

    layout: Layout
    bytes_per_sample: float  # of its files
    best: BestRate
    where: str


def sample_bytes(data: ExperimentData, point: Point) -> float | None:
    """Bytes of the files that a sample takes; None where the runs do not note it, or differ."""
    if not {"bytes", "samples"} <= set(data.summary.columns):
        return None
    rows = data.summary.iloc[point.rows]
    sizes = {
        float(size) / float(count)
        for size, count in zip(rows["bytes"], rows["samples"], strict=True)
        if not (pd.isna(size) or pd.isna(count))
    }
    return sizes.pop() if len(sizes) == 1 else None


def loaders_of(summary: pd.DataFrame, plan: Plan) -> Sequence[Loader]:
    """The points of a campaign that read files and train on nothing."""
    loaders = []
    for experiment in plan["experiments"]:
        if not reads_files(experiment) or "input" in {*experiment["fixed"], *experiment["axes"]}:
            continue
        data = ExperimentData(summary, experiment)
        for point in data.points():
            every = parameters_at(experiment, point.values)
            size = sample_bytes(data, point)
            values = data.repeats(point, (_RATE, "later"))
            values = values if values.size else data.repeats(point, (_RATE, "init"))
            usable = size is not None and values.size and not every.get("step_gflop")
            if usable and size is not None and point.source == "measured":
                best = best_rate(values)
                loaders.append(Loader(Layout.of(every), size, best, experiment["name"]))
    return loaders
