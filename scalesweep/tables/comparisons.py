"""Which is better, and by how much: all ratios of an experiment in one table.

Points compare that differ in one choice only. Of each group ``compare`` gives the ratio of every
value to the reference, and that of the best to each other one; interval and p value have one error
(``analysis.blocks``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from scalesweep.analysis.factors import fold_axes, layout_followers, planned_points
from scalesweep.analysis.metrics import EPOCH_PHASES, NEVER, SAME_TRAINING, compared
from scalesweep.analysis.multiple import LEVELS, VERDICTS, holm_cut
from scalesweep.analysis.stats import (
    LogError,
    Ratio,
    joined,
    ratio_of,
    ratio_of_means,
    stated_ratio_error,
)
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import BENCHMARK, parameters_at
from scalesweep.core.layouts import LAYOUT, laid_out
from scalesweep.core.plan_format import PlanExperiment, parameter_of, target_efficiency
from scalesweep.core.status import Status
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.file_rates import DUMMY
from scalesweep.tables.points import ExperimentData, Measure, Point, point_id
from scalesweep.tables.scaling import against_base, scaled_measures, series_of

# Parameters that are compared as one.
Choice = tuple[str, ...]
THREADS = "threads"  # unit of their parameters, and what the question is called
SETTING, FRAMEWORK, LAYOUTS, INPUT, SITE = "setting", "framework", "layout", "input", "site"
PHASE, ENERGY, TARGET, SCALING = "phase", "energy", "time to target", "scaling"
REFERENCE, BEST = "reference", "best"
RATIO, EFFICIENCY, SPEEDUP = "ratio", "efficiency", "speedup"
# The final results of training, of which the first that there is is compared.
FINAL = ("final_validation_accuracy", "test_accuracy", "final_accuracy", "final_validation_mae",
         "final_mae", "final_validation_loss", "final_loss")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Comparison(DeclaredRow, table="comparisons"):
    """A value over another one, all else being equal."""

    experiment: str = column("its name")
    question: str = column(
        "setting, threads, layout, framework, input, site, phase, scaling, energy or time to target"
    )
    parameter: str = column("the parameter, or those compared as one; what follows changes with it")
    value: str = column("its value")
    base_value: str = column("the value it is compared with")
    against: str = column(
        "reference (the default, the smallest scale, this site), or best: the best of a group over "
        "each other one"
    )
    quantity: str = column("ratio, efficiency or speedup")
    metric: str = column("what is compared")
    phase: str = column("init (first epoch), later, or run")
    better: str = column("whether higher or lower values of the metric are better")
    source: str | None = column("measured, simulated or imported")
    series_id: str | None = column("the scaling series of both points", if_known=True, default=None)
    point_id: str | None = column(
        "of the point; empty: a mean or median over pairs of points", default=None
    )
    base_id: str | None = column("of the point it is compared with", default=None)
    mean: float | None = column("mean of the metric at the point", default=None)
    base_mean: float | None = column("the same at the other point", default=None)
    ratio: Estimate | None = column(
        "the ratio of the means, or the efficiency", "1", ends=("low", "high")
    )
    null: float = column(
        "the ratio it is tested against: 1, or the target efficiency", "1", default=1.0
    )
    se: float | None = column("standard error of its logarithm", "1", default=None)
    df: float | None = column("degrees of freedom of that", "1", default=None)
    p: float | None = column("two-sided p value of the ratio being `null`", "1", default=None)
    decides_low: float | None = column(
        "lower end of the interval that decides on which side of the target it is",
        "1",
        if_known=True,
        default=None,
    )
    decides_high: float | None = column("upper end of it", "1", if_known=True, default=None)
    how: str = column("repeats or stated; else why there is no interval", default="")
    n: int | None = column("runs of the point", "1", default=None)
    base_n: int | None = column("runs of the other point", "1", default=None)
    among: int | None = column("values that compare in its group", "1", default=None)
    lacking: str | None = column(
        "planned values of the group without a result", if_known=True, default=None
    )
    pairs: int | None = column("pairs of points that are otherwise equal", "1", default=None)
    statistic: str | None = column("mean (geometric) or median of them", default=None)
    least: float | None = column("the lowest ratio of a pair", "1", if_known=True, default=None)
    most: float | None = column("the highest ratio of a pair", "1", if_known=True, default=None)
    higher: int | None = column("pairs whose ratio is above 1", "1", if_known=True, default=None)
    without: int | None = column("planned pairs without a ratio", "1", if_known=True, default=None)


@dataclass(frozen=True)
class Group:
    """Points that differ in one choice only, by its value, in the order of the plan."""

    question: str
    names: Choice
    points: Mapping[str, Point]
    reference: str | None
    ranked: bool = True  # whether one is called the best
    lacking: Sequence[str] = ()  # planned values without a result


def main_measures(data: ExperimentData) -> list[Measure]:
    """The phases of the metric that an experiment is about: the one that the benchmark names,
    else the total throughput, else the first."""
    metrics = list(dict.fromkeys(metric for metric, _ in data.measures))
    wanted = (data.experiment["main_metric"], "total_throughput")
    main = next((metric for metric in wanted if metric in metrics), next(iter(metrics), None))
    return [measure for measure in data.measures if measure[0] == main]


def compared_parameters(experiment: PlanExperiment) -> list[Choice]:
    """Independent varying parameters whose values are names or switches, and that say how
    something is computed, not what (``workload`` in benchmark.yaml); linked ones together."""
    points = planned_points(experiment)
    names = [
        name
        for name in fold_axes(experiment)[0]
        if name != experiment["scale"]
        and not parameter_of(experiment, name).get("workload")
        and all(isinstance(point[name], str | bool | None) for point in points)
    ]
    linked = tuple(name for name in names if name in experiment["linked"])
    choices: list[Choice] = [(name,) for name in names if name not in linked]
    return [linked, *choices] if linked else choices


def choice_of(names: Choice, point: Mapping[str, Any]) -> Any:
    """A point's value of a choice: of one parameter its own, of several all in one text."""
    values = [point[name] for name in names]
    if len(values) != 1 or isinstance(values[0], list | dict):
        return ", ".join(map(text_of, values))
    return values[0]


def values_of(experiment: PlanExperiment, names: Choice) -> list[Any]:
    """The values of a choice in the order of the plan; numbers without a default by size."""
    values = list(dict.fromkeys(choice_of(names, point) for point in planned_points(experiment)))
    numbers = all(type(value) in (int, float) for value in values)
    default = parameter_of(experiment, names[0])["default"]
    return sorted(values) if numbers and default is None else values


def base_value(experiment: PlanExperiment, names: Choice) -> Any:
    """What the values of a choice are compared with: the smallest scale; else the default if it is
    planned, else the first of them."""
    values = values_of(experiment, names)
    if names == (experiment["scale"],):
        return min(values)
    default = choice_of(names, {name: parameter_of(experiment, name)["default"] for name in names})
    return default if default in values else values[0]


def choice_groups(
    points: Sequence[Point], leaders: Sequence[str], names: Choice
) -> Iterator[dict[Any, Point]]:
    """Finished points that differ in one choice only, by its value, in plan order."""
    groups: dict[str, dict[Any, Point]] = {}
    for point in points:
        if point.rows.size:
            rest = [point.values[other] for other in leaders if other not in names]
            group = groups.setdefault(canonical_json([point.source, rest]), {})
            group.setdefault(choice_of(names, point.values), point)
    return (group for group in groups.values() if len(group) > 1)


def comparison_rows(
    data: ExperimentData,
    points: Sequence[Point],
    elsewhere: Mapping[str, ExperimentData] | None = None,
    site: str = "",
) -> Iterator[Comparison]:
    """The rows of the table. ``elsewhere``: what other sites than ``site`` have of these runs."""
    study = _Study(data, points)
    yield from study.scaling()
    for group, measure in study.groups():
        yield from compare(data, group, measure)
    yield from study.phases()
    yield from study.pairs()
    yield from study.sites(elsewhere or {}, site)


def compare(data: ExperimentData, group: Group, measure: Measure) -> Iterator[Comparison]:
    """Each value of a group over its reference; then its best over each other one, if one of them
    is to be called the best. A ratio of what may be negative is none."""
    means = {
        value: float(repeats.mean())
        for value, point in group.points.items()
        if (repeats := data.repeats(point, measure)).size
    }
    base = group.reference
    if base in means and means[base] > 0:
        for value, mean in means.items():
            if value != base and mean >= 0:
                yield _over(data, group, measure, (value, base), means)
    if group.ranked and len(means) > 1:
        sign = 1 if data.quantities[measure[0]].better == "higher" else -1
        best, *rest = sorted(means, key=lambda value: -sign * means[value])
        for value in rest:
            if means[value] > 0:
                row = _over(data, group, measure, (best, value), means)
                yield replace(row, against=BEST)


def _over(
    data: ExperimentData,
    group: Group,
    measure: Measure,
    values: tuple[str, str],
    means: Mapping[str, float],
) -> Comparison:
    """The row of one value over another one."""
    top, bottom = (group.points[value] for value in values)
    return _row(
        data, group.question, group.names, measure, (top, bottom),
        data.compare(top, bottom, measure),
        value=values[0], base_value=values[1], among=len(means),
        lacking=", ".join(group.lacking) or None,
    )  # fmt: skip


def _row(
    data: ExperimentData,
    question: str,
    names: Choice,
    measure: Measure,
    points: tuple[Point | None, Point | None],
    ratio: Ratio,
    **more: Any,
) -> Comparison:
    """A row on a ratio of two points, or on one of many pairs of points."""
    top, bottom = points
    about: dict[str, Any] = {"against": REFERENCE, "quantity": RATIO}
    if top is not None and bottom is not None:
        about |= {
            "source": top.source, "point_id": point_id(top), "base_id": point_id(bottom),
            "mean": _mean(data, top, measure), "base_mean": _mean(data, bottom, measure),
            "n": data.repeats(top, measure).size, "base_n": data.repeats(bottom, measure).size,
        }  # fmt: skip
    return Comparison(
        point={name: None if top is None else top.values[name] for name in data.leaders},
        experiment=data.experiment["name"], question=question, parameter=", ".join(names),
        metric=measure[0], phase=measure[1], better=data.quantities[measure[0]].better,
        ratio=Estimate.of(*ratio[:3]) if math.isfinite(ratio.value) else None,
        se=_known(ratio.se), df=_known(ratio.df), p=_known(ratio.p), how=ratio.how,
        **{**about, **more},
    )  # fmt: skip


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


class _Study:
    """The questions of an experiment: which of its points compare."""

    def __init__(self, data: ExperimentData, points: Sequence[Point]) -> None:
        self.data, self.points = data, points
        self.experiment = data.experiment
        self.leaders = data.leaders
        self.main = main_measures(data)
        self.workload = [name for name in self.leaders if self._says(name, "workload")]
        cut = {
            canonical_json({name: run["point"][name] for name in data.axes})
            for run in self.experiment["runs"]
            if run["status"] == Status.UNFINISHED
        }
        self.unfinished = {id(p) for p in points if cut and canonical_json(p.values) in cut}
        # Whose input cannot be learned from.
        self.dummy = {
            id(p) for p in points if parameters_at(self.experiment, p.values).get(INPUT) in DUMMY
        }

    def _says(self, name: str, what: str) -> Any:
        return parameter_of(self.experiment, name).get(what)

    def learns(self, point: Point) -> bool:
        """Whether the input of a point can be learned from."""
        return id(point) not in self.dummy

    def groups(self) -> Iterator[tuple[Group, Measure]]:
        """All groups of points that compare, each with what is compared."""
        for names, question in self._choices().items():
            base = base_value(self.experiment, names)
            for group in self._groups(question, names, self.leaders, self.points, base):
                for measure in self.main:
                    yield group, measure
        yield from self._inputs()
        yield from self._of_training("time_to_target", TARGET)
        yield from self._of_training("energy", ENERGY)
        yield from self._final()

    def _choices(self) -> dict[Choice, str]:
        """What is compared: parameters of names, numbers of threads, and all settings at once."""
        choices = dict.fromkeys(compared_parameters(self.experiment), SETTING)
        if (BENCHMARK,) in choices:
            choices[BENCHMARK,] = FRAMEWORK
        if (LAYOUT,) in choices and laid_out(self.experiment):
            choices[LAYOUT,] = LAYOUTS
        threads = tuple(
            name
            for name in self.leaders
            if name != self.data.scale
            and self._says(name, "unit") == THREADS
            and all(isinstance(v, int | None) for v in values_of(self.experiment, (name,)))
        )
        if threads:
            choices[threads] = THREADS
        fixed = {*self.workload, *([self.data.scale] if self._by_scale() else [])}
        whole = tuple(name for name in self.leaders if name not in fixed)
        # Layouts compete in a table of their own.
        if whole and not {*self.experiment.get("mesh", {}).values()} & {*self.data.axes}:
            choices.setdefault(whole, SETTING)
        return choices

    def _by_scale(self) -> bool:
        """Whether points of one scale compare: more ranks have more to do, or it is a share."""
        sources = {point.source for point in self.points if point.source}
        unit = self.data.quantities[self.main[0][0]].unit if self.main else ""
        published = sources == {"imported"} and self.experiment["scaling"] == "none"
        return self.experiment["scaling"] == "weak" or published or unit in ("", "1")

    def _groups(
        self,
        question: str,
        names: Choice,
        among: Sequence[str],
        points: Sequence[Point],
        base: Any = None,
    ) -> Iterator[Group]:
        """Groups of finished ``points`` that agree in all parameters ``among`` but ``names``.

        What reads nothing or has unfinished runs is no rival of what reads and is whole.
        """
        rest = [name for name in among if name not in names]
        lacking: dict[str, dict[str, None]] = {}
        for point in self.points:
            if not point.rows.size or self._cut(point):
                key = canonical_json([point.values[name] for name in rest])
                lacking.setdefault(key, {})[text_of(choice_of(names, point.values))] = None
        for group in choice_groups(points, among, names):
            whole = [p for p in group.values() if not self._cut(p)] or [*group.values()]
            read = [point for point in whole if self.learns(point)] or whole
            kept = [*group.values()] if names == (INPUT,) else read
            values = {text_of(choice_of(names, point.values)): point for point in kept}
            key = canonical_json([kept[0].values[name] for name in rest])
            missing = lacking.get(key, {}) if kept[0].source == "measured" else {}
            yield Group(
                question, names, values, None if base is None else text_of(base),
                lacking=[value for value in missing if value not in values],
            )  # fmt: skip

    def _cut(self, point: Point) -> bool:
        """Whether runs of a point were cut or aborted."""
        return id(point) in self.unfinished

    def _inputs(self) -> Iterator[tuple[Group, Measure]]:
        """What reading costs: epochs with an input over those with dummy input."""
        if INPUT not in self.data.axes:
            return
        for phase in ("init", "later"):
            measure = ("total_time", phase)
            if measure in self.data.measures:
                for group in choice_groups(self.points, self.data.axes, (INPUT,)):
                    values = {text_of(value): point for value, point in group.items()}
                    base = next((value for value in values if value in DUMMY), None)
                    yield Group(INPUT, (INPUT,), values, base, ranked=False), measure

    def _of_training(self, metric: str, question: str) -> Iterator[tuple[Group, Measure]]:
        """Points that are to learn the same (energy: by as much work), if all of their runs have
        the metric: of the time to a target, if all of them met it."""
        measure = (metric, "run")
        if measure not in self.data.measures:
            return
        fixed = [name for name in self.data.axes
                 if name.startswith("target_") or self._says(name, "workload")]  # fmt: skip
        names = tuple(name for name in self.leaders if name not in fixed)
        alike: dict[str, list[Point]] = {}
        for point in self.points:
            if point.rows.size and self.learns(point):
                work = point.work if question == ENERGY else None
                key = [point.source, work, *(point.values[name] for name in fixed)]
                alike.setdefault(canonical_json(key), []).append(point)
        for points in alike.values():
            whole = [p for p in points if not self._cut(p)
                     and self.data.repeats(p, measure).size == p.rows.size]  # fmt: skip
            if len(whole) < len(points) and question == ENERGY:
                continue
            named = {text_of(choice_of(names, point.values)): point for point in points}
            values = {value: point for value, point in named.items() if point in whole}
            missed = [value for value in named if value not in values]
            yield Group(question, names, values, None, lacking=missed), measure

    def _final(self) -> Iterator[tuple[Group, Measure]]:
        """The final accuracy, error or loss at the largest scale of a series over the smallest."""
        metric = next((name for name in FINAL if (name, "run") in self.data.measures), None)
        declared, main = self.experiment.get("compare", {}), self.experiment["main_metric"]
        how = NEVER if metric is None else compared(metric, declared, main)
        if metric is None or how == NEVER or self.data.scale not in self.data.axes:
            return
        measure = (metric, "run")
        for series in self.series:
            ran = [p for p in series if self.learns(p) and self.data.repeats(p, measure).size]
            if len(ran) < 2 or (how == SAME_TRAINING and not self._same_training(ran[0], ran[-1])):
                continue
            values = {text_of(p.values[self.data.scale]): p for p in (ran[0], ran[-1])}
            yield Group(SCALING, (self.data.scale,), values, next(iter(values)), False), measure

    def _same_training(self, point: Point, other: Point) -> bool:
        """Whether both points train to a target, or on as many samples."""
        targets = [any(v is not None for v in self.data.targets(p)) for p in (point, other)]
        work = [p.samples if p.work is None else p.work for p in (point, other)]
        return all(targets) or work[0] == work[1]

    @cached_property
    def series(self) -> list[list[Point]]:
        """Points that differ in the scale alone, by scale."""
        return [[self.points[i] for i in group] for group in series_of(self.data, self.points)]

    def phases(self) -> Iterator[Comparison]:
        """Later epochs over the first one, run by run."""
        metric = self.main[0][0] if self.main else ""
        if not {(metric, phase) for phase in EPOCH_PHASES} <= {*self.data.measures}:
            return
        for point in self.points:
            first, later = (
                self.data.numbers(metric, "mean", phase)[point.rows] for phase in EPOCH_PHASES
            )
            kept = (first > 0) & (later > 0)
            if kept.any():
                yield _row(
                    self.data, PHASE, (PHASE,), (metric, "later"), (point, point),
                    ratio_of(later[kept] / first[kept]),
                    value="later", base_value="init", base_mean=float(first[kept].mean()),
                )  # fmt: skip

    def scaling(self) -> Iterator[Comparison]:
        """Efficiency and speedup of each point, against the smallest scale of its series."""
        target = target_efficiency(self.experiment)
        rows: list[tuple[Comparison, Ratio]] = []
        for series in self.series if self.data.scale in self.data.axes else ():
            ran = [point for point in series if point.rows.size]
            for measure, _, quantity in scaled_measures(self.data):
                for against in against_base(self.data, measure, ran, quantity, target)[1:]:
                    for kind, ratio, null in (
                        (EFFICIENCY, against.efficiency, target), (SPEEDUP, against.speedup, 1.0)
                    ):  # fmt: skip
                        if ratio is not None:
                            row = _row(
                                self.data, SCALING, (self.data.scale,), measure,
                                (against.point, ran[0]), ratio, quantity=kind, null=null,
                                value=text_of(against.point.values[self.data.scale]),
                                base_value=text_of(ran[0].values[self.data.scale]),
                                series_id=point_id(ran[0]),
                            )  # fmt: skip
                            rows.append((row, ratio))
        return self._decided(rows)

    def _decided(self, rows: Sequence[tuple[Comparison, Ratio]]) -> Iterator[Comparison]:
        """The rows, with the interval that decides where efficiencies are judged: those of the
        metric that says how the experiment scales, in its steady phase; of other phases the largest
        scale of each series (Holm over all of these)."""
        shares = [row for row, _ in rows if row.quantity == EFFICIENCY]
        order = [self.experiment["main_metric"], "total_throughput", *self.experiment["metrics"]]
        metric = min(
            dict.fromkeys(row.metric for row in shares),
            key=lambda name: order.index(name) if name in order else len(order), default="",
        )  # fmt: skip
        steady = "later" if (metric, "later") in self.data.measures else "run"
        last = {(row.series_id, row.phase): row.point_id for row in shares if row.metric == metric}
        judged = {
            (row.point_id, row.phase): 1.0 if row.p is None else row.p
            for row in shares
            if row.metric == metric
            and (row.phase == steady or last[row.series_id, row.phase] == row.point_id)
        }
        cut = holm_cut([*judged.values()], LEVELS[VERDICTS])
        for row, ratio in rows:
            mine = row.metric == metric and (row.point_id, row.phase) in judged
            if row.quantity == EFFICIENCY and ratio.known and mine:
                bounds = ratio.excluding(cut, self.data.level)
                yield replace(row, decides_low=bounds.low, decides_high=bounds.high)
            else:
                yield row

    def pairs(self) -> Iterator[Comparison]:
        """What each value of a parameter changes on average, over all pairs of points that are
        otherwise equal, if two parameters or more vary."""
        follow = layout_followers(self.experiment)
        leaders = [name for name in self.leaders if name not in follow]
        for name in leaders if len(leaders) > 1 else ():
            by_source: dict[str | None, list[dict[Any, Point]]] = {}
            planned: dict[str, set[Any]] = {}
            for point in self.points:
                rest = canonical_json([point.values[other] for other in leaders if other != name])
                planned.setdefault(rest, set()).add(choice_of((name,), point.values))
            for group in choice_groups(self.points, leaders, (name,)):
                by_source.setdefault(next(iter(group.values())).source, []).append(group)
            for source, groups in by_source.items():
                for measure in self.main:
                    yield from self._of_pairs(name, source, groups, planned, measure)

    def _of_pairs(
        self,
        name: str,
        source: str | None,
        groups: Sequence[Mapping[Any, Point]],
        planned: Mapping[str, set[Any]],
        measure: Measure,
    ) -> Iterator[Comparison]:
        """Rows of a parameter: each value over the base value; then the value that is the best on
        average over each other one, over the groups that have them all."""
        values, base = values_of(self.experiment, (name,)), base_value(self.experiment, (name,))
        logs = [
            {
                value: math.log(mean) for value, point in group.items()
                if (mean := mean_of(self.data, point, measure)) > 0
            }
            for group in groups
        ]  # fmt: skip

        def row(top: Any, bottom: Any, full: bool) -> Iterator[Comparison]:
            among = [
                place for place, known in enumerate(logs)
                if (len(known) == len(values) if full else {top, bottom} <= known.keys())
            ]  # fmt: skip
            if not among:
                return
            ratios = np.exp([logs[place][top] - logs[place][bottom] for place in among])
            pairs = [(groups[place][top], groups[place][bottom]) for place in among]
            wanted = sum({top, bottom} <= there for there in planned.values())
            about: dict[str, Any] = {
                "value": text_of(top), "base_value": text_of(bottom), "source": source,
                "against": BEST if full else REFERENCE, "among": len(values), "pairs": len(pairs),
                "least": float(ratios.min()), "most": float(ratios.max()),
                "higher": int((ratios > 1).sum()), "without": wanted - len(pairs),
            }  # fmt: skip
            mean = mean_ratio(self.data, pairs, measure)
            median = Ratio(float(np.median(ratios)), how="a median has none")
            for statistic, ratio in (("mean", mean), ("median", median)):
                yield _row(
                    self.data, SCALING if name == self.data.scale else SETTING, (name,), measure,
                    (None, None), ratio, statistic=statistic, **about,
                )  # fmt: skip

        for value in values:
            if value != base:
                yield from row(value, base, full=False)
        full = [known for known in logs if len(known) == len(values)]
        if not full or name == self.data.scale or self._says(name, "workload"):
            return
        sign = 1 if self.data.quantities[measure[0]].better == "higher" else -1
        best = max(values, key=lambda value: sign * sum(known[value] for known in full))
        for value in values:
            if value != best:
                yield from (
                    each for each in row(best, value, full=True) if each.statistic == "mean"
                )

    def sites(self, others: Mapping[str, ExperimentData], site: str) -> Iterator[Comparison]:
        """Other sites over this one, at the points that both have measured."""
        twins: dict[str, list[tuple[str, ExperimentData, Point]]] = {}
        for name, other in others.items():
            for twin in other.points():
                if twin.rows.size:
                    twins.setdefault(canonical_json(twin.values), []).append((name, other, twin))
        for point in self.points:
            for name, other, twin in twins.get(canonical_json(point.values), ()):
                for measure in self.main:
                    here, there = self.data.repeats(point, measure), other.repeats(twin, measure)
                    if not here.size or not there.size or here.mean() <= 0 or there.mean() < 0:
                        continue
                    error = stated_ratio_error(there, here)
                    yield _row(
                        self.data, SITE, (SITE,), measure, (point, point),
                        ratio_of_means(there, here, error, self.data.level),
                        value=name, base_value=site, source=twin.source,
                        mean=float(there.mean()), n=there.size,
                    )  # fmt: skip


def _mean(data: ExperimentData, point: Point, measure: Measure) -> float | None:
    repeats = data.repeats(point, measure)
    return float(repeats.mean()) if repeats.size else None


def mean_of(data: ExperimentData, point: Point, measure: Measure) -> float:
    """The mean of a point; 0 where it has none, or none that a ratio can be taken of."""
    repeats = data.repeats(point, measure)
    return max(0.0, float(repeats.mean())) if repeats.size else 0.0


def mean_ratio(
    data: ExperimentData, pairs: Sequence[tuple[Point, Point]], measure: Measure
) -> Ratio:
    """Geometric mean of the ratios of pairs; its interval from the errors of all of them.

    The mean of n logarithms with errors e_i has the error sqrt(sum e_i^2) / n. As points share
    their variance, all together have no more degrees of freedom than the one with the fewest.
    """
    logs = [
        math.log(mean_of(data, top, measure) / mean_of(data, bottom, measure))
        for top, bottom in pairs
    ]
    errors = [data.log_error(top, bottom, measure) for top, bottom in pairs]
    known = [error for error in errors if error is not None]
    value = math.exp(sum(logs) / len(logs))
    if len(known) < len(errors):
        return Ratio(value, how="a pair has no interval")
    degrees = min(error.degrees for error in known)
    return Ratio.of(value, LogError(joined(known).error / len(pairs), degrees), data.level)
