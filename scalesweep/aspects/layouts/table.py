"""The tables ``best_layouts`` and ``layouts``."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.best_of_many import Ahead, ahead_of_next, behind_best
from scalesweep.analysis.metrics import Quantity, is_memory
from scalesweep.analysis.stats import LogError
from scalesweep.analysis.types import Floats
from scalesweep.aspects.layouts.effects import MAKER as EFFECTS
from scalesweep.aspects.layouts.study import LayoutStudy, study_of
from scalesweep.core.files import canonical_json
from scalesweep.core.status import Status
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.comparisons import main_measures
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Measure, Point

_UTILISATION = re.compile(r"(?:^|_)mfu(?:_|$)")


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
    value: Estimate | None = column("its mean over the runs of the best layout")
    runs_failed: int = column("runs of the best layout that failed", "1")
    ran: int = column("layouts with a result", "1")
    tried: int = column("layouts that are planned", "1")
    failed: int = column("layouts of which every run failed", "1")
    causes: str = column("how many of them by cause, out of memory first")
    next_layout: str | None = column("the next best layout")
    next_value: Estimate | None = column("its mean")
    ahead: float | None = column("best over next (of times next over best), as measured", "1")
    ahead_apart: Estimate | None = column(
        "the same from repeats that had no part in the choice of both; the interval is over all "
        "layouts of the scale",
        "1",
    )
    alone: bool = column("whether each layout that ran has one run")
    p: float | None = column("largest p value of the best against each other layout", "1")
    median: float = column("median over the layouts that ran of their share of the best", "1")
    carried_from: int | None = column("the next smaller scale at which a layout ran", "1")
    carried: str | None = column(
        "the best layout of that scale here: its axes but the data-parallel ones, and as many "
        "other parameters as layouts that ran have"
    )
    carried_changes: str = column("other parameters in which it differs from there")
    carried_fails: str = column("why the same layout has no result here; empty if it has one")
    carried_loss: float | None = column("1 - its share of the best, as measured", "1")
    carried_loss_apart: Estimate | None = column(
        "the same from repeats that had no part in the choice of the best", "1"
    )
    carried_p: float | None = column("p value of its being as good as the best", "1")
    memory_metric: str | None = column("the metric of the memory of a rank")
    memory: float | None = column("memory of the best layout, in the metric's unit")
    memory_most: float | None = column("the most memory of a layout that ran")
    utilisation_metric: str | None = column("the metric of the utilisation (MFU)")
    utilisation: float | None = column("utilisation of the best layout, in the metric's unit")


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


# Layouts of one scale that compute the same, with their values.
@dataclass(frozen=True)
class _Group:
    scale: int
    points: Sequence[Point]  # with a positive mean, the best first
    planned: Sequence[Point]


def layout_rows(inputs: TableInputs) -> Iterator[BestLayout | LayoutPoint]:
    """Rows of both tables for every scale, what is computed, and source."""
    data = inputs.data
    study = study_of(data.experiment)
    measures = main_measures(data)
    if study is None or not measures:
        return
    measure = next((m for m in measures if m[1] == "later"), measures[0])
    sources = dict.fromkeys(point.source for point in inputs.points if point.source)
    for source in sources:
        yield from _Source(data, study, measure, source, inputs.points).rows()


class _Source:
    """The layouts of one source."""

    def __init__(
        self,
        data: ExperimentData,
        study: LayoutStudy,
        measure: Measure,
        source: str,
        points: Sequence[Point],
    ) -> None:
        self.data, self.study, self.measure, self.source = data, study, measure, source
        self.points = [point for point in points if point.source in (source, None)]
        quantity = data.quantities[measure[0]]
        self.better = quantity.better
        self.sign = 1 if quantity.better == "higher" else -1
        self.total = quantity.scope == "total" and quantity.unit.endswith("/s")
        names = dict.fromkeys(name for name, _ in data.measures)
        known = {name: data.quantities[name] for name in names}
        self.memory = next((n for n, q in known.items() if _is_memory(q)), None)
        self.mfu = next((n for n in known if _UTILISATION.search(n)), None)
        self.failures = _failures(data)
        self.ends = _ends(data, self.failures)

    def rows(self) -> Iterator[BestLayout | LayoutPoint]:
        """Settings in the order of the plan, each from the smallest scale to the largest."""
        settings: dict[str, dict[int, list[Point]]] = {}
        for point in self.points:
            scales = settings.setdefault(canonical_json(self.study.setting(point.values)), {})
            scales.setdefault(self.study.scale(point.values), []).append(point)
        for scales in settings.values():
            before: _Group | None = None
            for scale in sorted(scales):
                group = self._group(scale, scales[scale])
                yield self._best(group, before)
                yield from self._layouts(group)
                before = group if group.points else before

    def _group(self, scale: int, planned: Sequence[Point]) -> _Group:
        ran = [(mean, point) for point in planned if (mean := self._mean(point)) is not None]
        ran.sort(key=lambda item: -self.sign * item[0])
        return _Group(scale, [point for _, point in ran], planned)

    def _mean(self, point: Point) -> float | None:
        """The mean of a point; None where there is none, or a value is not positive."""
        repeats = self.data.repeats(point, self.measure)
        return float(repeats.mean()) if repeats.size and (repeats > 0).all() else None

    def _number(self, point: Point, metric: str | None) -> float | None:
        """The mean of another metric of a point's runs; None where none has a positive one."""
        if metric is None:
            return None
        phase = next(phase for name, phase in self.data.measures if name == metric)
        repeats = self.data.repeats(point, (metric, phase))
        return float(repeats.mean()) if repeats.size and repeats.mean() > 0 else None

    def _estimate(self, point: Point) -> Estimate:
        interval = self.data.interval(point, self.measure)
        return Estimate.of(self._mean(point) or math.nan, interval.low, interval.high)

    def _share(self, point: Point, best: Point) -> float:
        ratio = (self._mean(point) or math.nan) / (self._mean(best) or math.nan)
        return ratio if self.sign > 0 else 1 / ratio

    def _layouts(self, group: _Group) -> Iterator[LayoutPoint]:
        memories = [self._number(point, self.memory) for point in group.points]
        least = math.inf
        for place, (point, memory) in enumerate(zip(group.points, memories, strict=True), 1):
            front = None if memory is None else memory < least
            least = least if memory is None else min(least, memory)
            value = self._mean(point) or math.nan
            yield LayoutPoint(
                **point_columns(point), scale=group.scale,
                setting=self.study.setting_text(point.values),
                layout=self.study.text(point.values), phase=self.measure[1], value=value,
                per_rank=value / group.scale if self.total else value,
                share=self._share(point, group.points[0]), place=place, memory=memory, front=front,
                utilisation=self._number(point, self.mfu),
            )  # fmt: skip

    def _best(self, group: _Group, before: _Group | None) -> BestLayout:
        failed = [self.ends[key] for p in group.planned if (key := _key(p)) in self.ends]
        counts = Counter(failed)
        first = group.planned[0]
        shared: dict[str, Any] = {
            "scale": group.scale, "setting": self.study.setting_text(first.values),
            "phase": self.measure[1], "metric": self.measure[0], "better": self.better,
            "ran": len(group.points), "tried": len({_key(p) for p in group.planned}),
            "failed": len(failed), "causes": _counts(counts), "memory_metric": self.memory,
            "utilisation_metric": self.mfu,
        }  # fmt: skip
        shared["alone"] = all(point.rows.size == 1 for point in group.points)
        if not group.points:
            known = {
                self.data.scale,
                *self.data.experiment["scale_parameters"],
                *self.study.workload,
            }
            values = {name: v if name in known else None for name, v in first.values.items()}
            return BestLayout(
                point=values, source=self.source, repeats=0, planned=0, layout=None, value=None,
                runs_failed=0,
                next_layout=None, next_value=None, ahead=None, ahead_apart=None, p=None,
                median=math.nan, carried_from=None, carried=None, carried_changes="",
                carried_fails="", carried_loss=None, carried_loss_apart=None, carried_p=None,
                memory=None, memory_most=None, utilisation=None, **shared,
            )  # fmt: skip
        best = group.points[0]
        second = group.points[1] if len(group.points) > 1 else None
        repeats = [self.data.repeats(point, self.measure) for point in group.points]
        margin = ahead_of_next(repeats, self._errors(group.points), self.data.level, self.sign)
        memories = [m for p in group.points if (m := self._number(p, self.memory)) is not None]
        chances = [self.data.compare(best, other, self.measure).p for other in group.points[1:]]
        return BestLayout(
            **point_columns(best), layout=self.study.text(best.values),
            value=self._estimate(best), runs_failed=len(self.failures.get(_key(best), ())),
            next_layout=self.study.text(second.values) if second else None,
            next_value=self._estimate(second) if second else None,
            ahead=math.exp(margin.measured) if margin else None,
            ahead_apart=_apart(margin) if margin else None,
            p=_largest(chances),
            median=float(np.median([self._share(point, best) for point in group.points])),
            memory=self._number(best, self.memory), memory_most=max(memories, default=None),
            utilisation=self._number(best, self.mfu),
            **self._carried(group, before, repeats), **shared,
        )  # fmt: skip

    def _errors(self, points: Sequence[Point]) -> Any:
        def error(top: int, bottom: int) -> LogError | None:
            return self.data.log_error(points[top], points[bottom], self.measure)

        return error

    def _carried(
        self, group: _Group, before: _Group | None, values: Sequence[Floats]
    ) -> dict[str, Any]:
        """What becomes of the best layout of the next smaller scale: the layout here with the same
        axes but the data-parallel ones, of several the one with the most other parameters alike,
        of these the best."""
        nothing = {
            "carried_from": None, "carried": None, "carried_changes": "", "carried_fails": "",
            "carried_loss": None, "carried_loss_apart": None, "carried_p": None,
        }  # fmt: skip
        if before is None:
            return nothing
        study, old = self.study, before.points[0].values
        alike = [p for p in group.planned if study.kept(p.values) == study.kept(old)]
        ran = {_key(point): place for place, point in enumerate(group.points)}
        exact = [p for p in alike if not study.changes(old, p.values)]
        fails = "" if any(_key(p) in ran for p in exact) else self._why(exact)
        there = [p for p in alike if _key(p) in ran]
        known = nothing | {"carried_from": before.scale, "carried_fails": fails}
        if not there:
            return known | {"carried": study.text(old)}
        taken = min(there, key=lambda p: (len(study.changes(old, p.values)), ran[_key(p)]))
        best = group.points[0]
        known |= {
            "carried": study.text(taken.values),
            "carried_changes": ", ".join(study.changes(old, taken.values)),
            "carried_loss": 1 - self._share(taken, best),
        }
        if taken is best or len(group.points) < 2:
            return known
        errors, place = self._errors(group.points), ran[_key(taken)]
        loss = behind_best(values, place, errors, self.data.level, self.sign)
        p = self.data.compare(taken, best, self.measure).p
        among = len(group.points) - 1  # the best was chosen among them
        chance = None if math.isnan(p) else min(1.0, among * p)
        return known | {
            "carried_loss_apart": _loss(loss) if loss else None, "carried_p": chance
        }  # fmt: skip

    def _why(self, exact: Sequence[Point]) -> str:
        """Why none of these points has a result."""
        causes = [self.ends[_key(point)] for point in exact if _key(point) in self.ends]
        return causes[0] if causes else "no result" if exact else "not planned"


def _key(point: Point) -> str:
    return canonical_json(dict(point.values))


def _failures(data: ExperimentData) -> dict[str, list[str]]:
    """By point the causes of its runs that failed, in their order."""
    causes: dict[str, list[str]] = {}
    for run in data.experiment["runs"]:
        if run["status"] == Status.FAILED:
            key = canonical_json({name: run["point"][name] for name in data.axes})
            causes.setdefault(key, []).append(run["cause"])
    return causes


def _ends(data: ExperimentData, failures: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """By point the cause of failure of those without a result of which a run failed."""
    done = {
        canonical_json({name: run["point"][name] for name in data.axes})
        for run in data.experiment["runs"]
        if run["status"] == Status.DONE
    }
    return {key: causes[0] for key, causes in failures.items() if key not in done}


def _counts(causes: Mapping[str, int]) -> str:
    """``OUT_OF_MEMORY 12, HANG 1``: out of memory first, then by number."""
    order = sorted(causes.items(), key=lambda item: ("MEMORY" not in item[0], -item[1], item[0]))
    return ", ".join(f"{cause} {count}" for cause, count in order)


def _is_memory(quantity: Quantity) -> bool:
    """Whether a metric is the memory that a rank, or its device, has in use."""
    return is_memory(quantity.name, quantity.unit)


def _largest(chances: Sequence[float]) -> float | None:
    return None if not chances or any(map(math.isnan, chances)) else max(chances)


def _apart(margin: Ahead) -> Estimate | None:
    """A margin as a ratio: from repeats that did not choose, with its bounds."""
    if margin.apart is None or margin.low is None or margin.high is None:
        return None
    low, high = min(margin.low, margin.apart), max(margin.high, margin.apart)
    return Estimate(math.exp(margin.apart), math.exp(low), math.exp(high))


def _loss(behind: Ahead) -> Estimate | None:
    share = _apart(behind)
    if share is None or share.low is None or share.high is None:
        return None
    return Estimate(1 - share.value, 1 - share.high, 1 - share.low)


MAKERS = (Maker((BestLayout, LayoutPoint), layout_rows), EFFECTS)
