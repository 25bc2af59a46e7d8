"""What points reach by themselves, of all ranks: plain reads of files, input pipelines that nothing
trains on, and training on dummy input that costs nothing to read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.best_rate import best_rate
from scalesweep.analysis.stats import Estimate
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import Plan
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.rank_layout import Layout

FILES, LOADING, TRAINING = "files", "loading", "training"
COLD, WARM = "cold", "warm"
# Inputs that hold nothing to read or to learn: what a model makes of them says nothing.
DUMMY = ("dummy",)
# Parameters of benchmarks that say whether files come from the page cache.
_OF_PROBE, _STATE, _DROPS = "cache", "page_cache", "drop_page_cache"
# Of the epochs that have warmed up, or of the only one.
_RATES: tuple[Measure, ...] = (("total_throughput", "later"), ("total_throughput", "init"))


@dataclass(frozen=True)
class Rate:
    """What a point reaches, of each repeat: bytes/s of plain reads (``FILES``), else samples/s.

    ``point`` has all its parameters. ``state``: what the page cache held, cold or warm; None where
    it is not known. ``bytes_per_sample`` of its files.
    """

    kind: str
    point: Mapping[str, Any]
    source: str | None
    values: tuple[float, ...]
    where: str  # its experiment
    state: str | None = None
    bytes_per_sample: float | None = None

    @cached_property
    def layout(self) -> Layout:
        """How its ranks lie on nodes."""
        return Layout.of(self.point)

    @cached_property
    def best(self) -> Estimate:
        """The best of the repeats with its 95 % interval."""
        return best_rate(np.array(self.values)).rate


def fastest(rates: Sequence[Rate]) -> Rate | None:
    """The one with the best run: of those that were measured, where there are any."""
    key = lambda rate: (rate.source == "measured", rate.best.value)  # noqa: E731
    return max(rates, key=key, default=None)


def file_rates(summary: pd.DataFrame, plan: Plan) -> list[Rate]:
    """The rates of all three kinds in a campaign."""
    return [
        rate
        for experiment in plan["experiments"]
        if not experiment.get("control")
        for rate in _rates(ExperimentData(summary, experiment))
    ]


def _rates(data: ExperimentData) -> Iterator[Rate]:
    """The rates of an experiment of one of the kinds."""
    entry = data.experiment
    named = {*entry["fixed"], *data.axes}
    plain = entry.get("ceiling") == FILES and entry["main_metric"]
    if not (plain or "input" in named or reads_files(entry)):
        return
    for point in data.points():
        every = parameters_at(entry, point.values)
        measures: Sequence[Measure] = [(str(entry["main_metric"]), "run")] if plain else _RATES
        rates = (data.repeats(point, measure) for measure in measures)
        values = next((each for each in rates if each.size), np.zeros(1))
        if not values.mean() > 0:
            continue
        rate = Rate(FILES, every, point.source, tuple(values.tolist()), where_of(data, point))
        if plain and every.get("pattern") != "random":
            state = every.get(_OF_PROBE)
            yield replace(rate, state=str(state) if state in (COLD, WARM) else None)
        elif every.get("input") in DUMMY:
            yield replace(rate, kind=TRAINING)
        elif not plain and "input" not in named and not every.get("step_gflop"):
            yield replace(rate, kind=LOADING, bytes_per_sample=sample_bytes(data, point))


def where_of(data: ExperimentData, point: Point) -> str:
    """What measured a point, in words."""
    mark = "" if point.source == "measured" else f" ({point.source})"
    return data.experiment["name"] + mark


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


def only_reads(experiment: Mapping[str, Any]) -> bool:
    """Whether an experiment reads files and nothing trains on what it reads."""
    of_one = experiment.get("fixed_of", {}).values()
    names = {*experiment["fixed"], *experiment["axes"], *chain.from_iterable(of_one)}
    return reads_files(experiment) and "input" not in names


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
