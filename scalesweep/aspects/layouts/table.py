"""The tables ``best_layouts`` and ``layouts``."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.factors import fold_axes, layout_followers, planned_points
from scalesweep.analysis.metrics import is_memory
from scalesweep.analysis.stats import Ratio
from scalesweep.analysis.types import Floats
from scalesweep.config.shapes import Mesh, planned
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.layouts import LAYOUT, laid_out
from scalesweep.core.plan_format import PlanExperiment, parameter_of
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.comparisons import main_measures
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Measure, Point

_UTILISATION = re.compile(r"(?:^|_)mfu(?:_|$)")
Values = Mapping[str, Any]
# What says of a transformer what is computed, where it is a parameter by itself.
_WORKLOAD = ("parameters", "layers", "width", "sequence", "vocabulary", "global_batch")


@dataclass(frozen=True)
class LayoutStudy:
    """An experiment whose points of one scale split their ranks in several ways.

    ``workload``: independent parameters that say what is computed: layouts compare where they and
    the scale are the same. ``free``: the other independent ones, without what they leave no choice
    of (``layout_followers``).
    """

    entry: PlanExperiment
    mesh: Mesh
    workload: Sequence[str]
    free: Sequence[str]

    def at(self, values: Values) -> dict[str, Any]:
        """Every parameter of the point whose varying ones have these values."""
        return parameters_at(self.entry, values)

    def scale(self, values: Values) -> int:
        """What the point is a study over: ranks, or devices."""
        return int(self.at(values)[self.entry["scale"]])

    def setting_text(self, values: Values) -> str:
        """``model 8B, gbs 256``; empty where all points compute the same."""
        return ", ".join(f"{name} {text_of(values[name])}" for name in self.workload)

    def mesh_at(self, values: Values) -> Mapping[str, int]:
        """The ranks along each axis of the mesh."""
        return self.mesh.at(self.at(values)) or {}

    @cached_property
    def roles(self) -> list[str]:
        """The axes of the mesh that are not 1 everywhere."""
        sizes = [self.mesh_at(point) for point in planned_points(self.entry)]
        return [role for role in self.mesh.fields if any(of.get(role, 1) != 1 for of in sizes)]

    @cached_property
    def others(self) -> list[str]:
        """Free parameters of which the mesh does not tell."""
        return [name for name in self.free if name not in self.mesh.names]

    def text(self, values: Values) -> str:
        """``dp 32 x tp 8 x pp 1, zero 0, mbs 8``, or the name that the benchmark gives a layout."""
        if LAYOUT in self.others:
            sizes = text_of(values[LAYOUT])
        else:
            mesh = self.mesh_at(values)
            sizes = " x ".join(f"{role} {text_of(mesh.get(role))}" for role in self.roles)
        words = [f"{name} {text_of(values[name])}" for name in self.others if name != LAYOUT]
        return ", ".join(filter(None, [sizes, *words]))


def study_of(entry: PlanExperiment) -> LayoutStudy | None:
    """The study of layouts that an experiment is.

    None where its benchmark declares no mesh, or all points of a scale that compute the same have
    the same one.
    """
    mesh = planned(entry).mesh
    if mesh is None:
        return None
    texts = entry.get("transformer", {})
    named = {str(texts[key]) for key in _WORKLOAD if key in texts}
    inside = {*laid_out(entry), *layout_followers(entry), *entry["scale_parameters"]}
    leaders = [name for name in fold_axes(entry)[0] if name != entry["scale"]]
    workload = [n for n in leaders if parameter_of(entry, n)["workload"] or n in named]
    free = [name for name in leaders if name not in inside and name not in workload]
    meshes: dict[Any, set[Any]] = {}
    for point in planned_points(entry):
        key = (point.get(entry["scale"]), *(point.get(name) for name in workload))
        meshes.setdefault(key, set()).add(tuple((mesh.at(point) or {}).values()))
    several = any(len(sizes) > 1 for sizes in meshes.values())
    return LayoutStudy(entry, mesh, workload, free) if several else None


@dataclass(frozen=True, kw_only=True)
class BestLayout(PointRow, table="best_layouts"):
    """The best layout of one scale and one thing that is computed; of a scale at which none ran,
    the parameters of the layout are missing."""

    scale: int = column("ranks, or devices where ranks have several", "1")
    setting: str = column("what is computed: parameters that say so; empty where they do not vary")
    layout: str | None = column("the axes of its mesh, and the other parameters that vary")
    phase: str = column("init (first epoch), later, or run")
    metric: str = column("the main metric")
    better: str = column("whether higher or lower values of it are better")
    value: Estimate | None = column("its mean over the runs of the best layout", default=None)
    runs_failed: int = column("runs of the best layout that failed", "1", default=0)
    ran: int = column("layouts with a result", "1")
    tried: int = column("layouts that are planned", "1")
    failed: int = column("layouts of which every run failed", "1")
    causes: str = column("how many of them by cause, out of memory first")
    next_layout: str | None = column("the next best layout", default=None)
    ahead: Estimate | None = column(
        "best over next (of times next over best); the interval is over all layouts of the scale",
        "1", default=None,
    )  # fmt: skip
    p: float | None = column(
        "largest p value of the best against each other layout", "1", default=None
    )
    median: float = column(
        "median over the layouts that ran of their share of the best", "1", default=math.nan
    )
    memory_metric: str | None = column("the metric of the memory of a rank")
    memory: float | None = column("memory of the best layout, in the metric's unit", default=None)
    utilisation_metric: str | None = column("the metric of the utilisation (MFU)")
    utilisation: float | None = column(
        "utilisation of the best layout, in the metric's unit", default=None
    )


@dataclass(frozen=True, kw_only=True)
class LayoutPoint(PointRow, table="layouts"):
    """A layout that ran."""

    scale: int = column("ranks, or devices where ranks have several", "1")
    setting: str = column("what is computed: parameters that say so; empty where they do not vary")
    layout: str = column("the axes of its mesh, and the other parameters that vary")
    phase: str = column("init (first epoch), later, or run")
    value: float = column("mean of the main metric over its runs")
    per_rank: float = column("the same of one rank, or device, where the metric is of all")
    share: float = column("its share of the best of its scale (of times best over it)", "1")
    place: int = column("its place among those of its scale", "1")
    memory: float | None = column("memory of a rank, in the metric's unit")
    front: bool | None = column("whether no other layout of its scale is better with less memory")
    utilisation: float | None = column("utilisation (MFU), in the metric's unit")


class _Ran(NamedTuple):
    """A layout with a result: ``share`` of the best of its scale."""

    point: Point
    repeats: Floats
    share: float
    memory: float | None
    utilisation: float | None


class _Group(NamedTuple):
    """Layouts of one scale that compute the same; those that ran, the best first."""

    scale: int
    ran: Sequence[_Ran]
    planned: Sequence[Point]


def layout_rows(inputs: TableInputs) -> Iterator[BestLayout | LayoutPoint]:
    """Rows of both tables for every source and what is computed, in the order of the plan, from the
    smallest scale to the largest."""
    data = inputs.data
    study, measures = study_of(data.experiment), main_measures(data)
    if study is None or not measures:
        return
    measure = next((m for m in measures if m[1] == "later"), measures[0])
    for source in dict.fromkeys(point.source for point in inputs.points if point.source):
        settings: dict[str, dict[int, list[Point]]] = {}
        for point in inputs.points:
            if point.source in (source, None):
                scales = settings.setdefault(study.setting_text(point.values), {})
                scales.setdefault(study.scale(point.values), []).append(point)
        of_source = _Source(data, study, measure, source)
        for scales in settings.values():
            for scale in sorted(scales):
                group = of_source.group(scale, scales[scale])
                yield of_source.best(group)
                yield from of_source.layouts(group)


class _Source:
    """The layouts of one source."""

    def __init__(
        self, data: ExperimentData, study: LayoutStudy, measure: Measure, source: str
    ) -> None:
        self.data, self.study, self.measure, self.source = data, study, measure, source
        self.quantity = data.quantities[measure[0]]
        self.sign = 1 if self.quantity.better == "higher" else -1
        names = dict.fromkeys(name for name, _ in data.measures)
        units = {name: data.quantities[name].unit for name in names}
        self.memory = next((name for name in names if is_memory(name, units[name])), None)
        self.mfu = next((name for name in names if _UTILISATION.search(name)), None)
        # By point the causes of its runs that failed; of those without a result the first cause.
        self.failures: dict[str, list[str]] = {}
        done = set()
        for run in data.experiment["runs"]:
            key = canonical_json({name: run["point"][name] for name in data.axes})
            if run["status"] == Status.FAILED:
                self.failures.setdefault(key, []).append(run["cause"])
            elif run["status"] == Status.DONE:
                done.add(key)
        self.ends = {key: of[0] for key, of in self.failures.items() if key not in done}

    def group(self, scale: int, planned: Sequence[Point]) -> _Group:
        """The layouts of a scale; one with a value that is not positive did not run."""
        repeats = [(self.data.repeats(point, self.measure), point) for point in planned]
        known = [(of, point) for of, point in repeats if of.size and (of > 0).all()]
        known.sort(key=lambda each: -self.sign * float(each[0].mean()))
        best = float(known[0][0].mean()) if known else 1.0
        ran = [
            _Ran(
                point, of, (float(of.mean()) / best) ** self.sign,
                self._number(point, self.memory), self._number(point, self.mfu),
            )
            for of, point in known
        ]  # fmt: skip
        return _Group(scale, ran, planned)

    def _number(self, point: Point, metric: str | None) -> float | None:
        """The mean of another metric of a point's runs; None where none has a positive one."""
        if metric is None:
            return None
        phase = next(phase for name, phase in self.data.measures if name == metric)
        repeats = self.data.repeats(point, (metric, phase))
        return float(repeats.mean()) if repeats.size and repeats.mean() > 0 else None

    def layouts(self, group: _Group) -> Iterator[LayoutPoint]:
        """A row for each layout that ran."""
        least = math.inf
        total = self.quantity.scope == "total" and self.quantity.unit.endswith("/s")
        for place, ran in enumerate(group.ran, 1):
            front = None if ran.memory is None else ran.memory < least
            least = min(least, ran.memory or math.inf)
            value = float(ran.repeats.mean())
            yield LayoutPoint(
                **point_columns(ran.point), scale=group.scale, place=place, front=front,
                setting=self.study.setting_text(ran.point.values),
                layout=self.study.text(ran.point.values), phase=self.measure[1], value=value,
                per_rank=value / group.scale if total else value, share=ran.share,
                memory=ran.memory, utilisation=ran.utilisation,
            )  # fmt: skip

    def best(self, group: _Group) -> BestLayout:
        """The row of the best layout of a scale, or of a scale at which none ran."""
        failed = [self.ends[key] for p in group.planned if (key := _key(p)) in self.ends]
        first, ran = group.planned[0], group.ran
        shared: dict[str, Any] = {
            "scale": group.scale, "setting": self.study.setting_text(first.values),
            "phase": self.measure[1], "metric": self.measure[0], "better": self.quantity.better,
            "ran": len(ran), "tried": len({_key(p) for p in group.planned}),
            "failed": len(failed), "causes": _counts(failed), "memory_metric": self.memory,
            "utilisation_metric": self.mfu,
        }  # fmt: skip
        if not ran:
            scale = {self.data.scale, *self.data.experiment["scale_parameters"]}
            known = scale | {*self.study.workload}
            values = {name: v if name in known else None for name, v in first.values.items()}
            return BestLayout(
                point=values, source=self.source, repeats=0, planned=0, layout=None, **shared
            )
        best = ran[0].point
        ratios = [self._over(best, other.point) for other in ran[1:]]
        tested = all(ratio.known for ratio in ratios)
        return BestLayout(
            **point_columns(best), **shared,
            layout=self.study.text(best.values),
            value=self.data.mean(best, self.measure),
            runs_failed=len(self.failures.get(_key(best), ())),
            next_layout=self.study.text(ran[1].point.values) if len(ran) > 1 else None,
            ahead=ahead_of(ratios) if ratios else None,
            p=max((ratio.chance for ratio in ratios), default=None) if tested else None,
            median=float(np.median([each.share for each in ran])),
            memory=ran[0].memory, utilisation=ran[0].utilisation,
        )  # fmt: skip

    def _over(self, better: Point, other: Point) -> Ratio:
        """How many times as good a layout is as another one."""
        pair = (better, other) if self.quantity.better == "higher" else (other, better)
        return self.data.compare(*pair, self.measure)


def ahead_of(ratios: Sequence[Ratio]) -> Estimate:
    """The best over the next one, with bounds on its being ahead of all others (multiple
    comparisons with the best: Hsu, J. Am. Stat. Assoc. 79, 1984)."""
    low, high = (
        None if any(end is None for end in ends) else min(map(float, ends))
        for ends in zip(*((ratio.low, ratio.high) for ratio in ratios), strict=True)
    )
    return Estimate(min(ratio.value for ratio in ratios), low, high)


def _key(point: Point) -> str:
    return canonical_json(dict(point.values))


def _counts(causes: Sequence[str]) -> str:
    """``OUT_OF_MEMORY 12, HANG 1``: out of memory first, then by number."""
    counts = Counter(causes).items()
    order = sorted(counts, key=lambda item: ("MEMORY" not in item[0], -item[1], item[0]))
    return ", ".join(f"{cause} {count}" for cause, count in order)


MAKERS = (Maker((BestLayout, LayoutPoint), layout_rows),)


def best_layouts(results: ExperimentResults) -> Mapping[str, list[BestLayout]]:
    """By what is computed the rows of its scales: measured ones where there are any."""
    settings: dict[str, list[BestLayout]] = {}
    for row in results.of(BestLayout):
        if row.source == _source(results):
            settings.setdefault(row.setting, []).append(row)
    return settings


def layouts_that_ran(results: ExperimentResults) -> list[LayoutPoint]:
    """Layouts with a result, of the same source."""
    return [row for row in results.of(LayoutPoint) if row.source == _source(results)]


def _source(results: ExperimentResults) -> str | None:
    return "measured" if "measured" in results.sources else next(iter(results.sources), None)
