"""The table ``comparisons``: which points of an experiment compare, question by question.

Of each group ``compare`` gives the ratio of every value to the reference, and that of the best to
each other one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from scalesweep.analysis.factors import layout_followers
from scalesweep.analysis.metrics import EPOCH_PHASES, NEVER, SAME_TRAINING, compared
from scalesweep.analysis.stats import Ratio, ratio_of
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import BENCHMARK, parameters_at
from scalesweep.core.plan_format import parameter_of
from scalesweep.tables.comparisons import (
    BEST,
    ENERGY,
    FRAMEWORK,
    INPUT,
    PHASE,
    SCALING,
    SETTING,
    TARGET,
    THREADS,
    Choice,
    Comparison,
    base_value,
    choice_groups,
    choice_of,
    compared_parameters,
    comparison,
    main_measures,
    mean_of,
    mean_ratio,
    values_of,
)
from scalesweep.tables.file_rates import DUMMY
from scalesweep.tables.making import Maker
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.scaling import scaling_rows, series_of

# The final results of training, of which the first that there is is compared.
FINAL = ("final_validation_accuracy", "test_accuracy", "final_accuracy", "final_validation_mae",
         "final_mae", "final_validation_loss", "final_loss")  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Points that differ in one choice only, by its value, in the order of the plan."""

    question: str
    names: Choice
    points: Mapping[str, Point]
    reference: str | None
    ranked: bool = True  # whether one is called the best
    lacking: Sequence[str] = ()  # planned values without a result


def comparison_rows(data: ExperimentData, points: Sequence[Point]) -> Iterator[Comparison]:
    """The rows of the table."""
    study = _Study(data, points)
    yield from scaling_rows(data, points)
    for group, measure in study.groups():
        yield from compare(data, group, measure)
    yield from study.phases()
    yield from study.pairs()


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
    return comparison(
        data, group.question, group.names, measure, (top, bottom),
        data.compare(top, bottom, measure),
        value=values[0], base_value=values[1], among=len(means),
        lacking=", ".join(group.lacking) or None,
    )  # fmt: skip


class _Study:
    """The questions of an experiment: which of its points compare."""

    def __init__(self, data: ExperimentData, points: Sequence[Point]) -> None:
        self.data, self.points = data, points
        self.experiment = data.experiment
        self.leaders = data.leaders
        self.main = main_measures(data)
        self.workload = [name for name in self.leaders if self._says(name, "workload")]

    def _says(self, name: str, what: str) -> Any:
        return parameter_of(self.experiment, name).get(what)

    def learns(self, point: Point) -> bool:
        """Whether the input of a point can be learned from."""
        return parameters_at(self.experiment, point.values).get(INPUT) not in DUMMY

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
            if not point.rows.size or point.cut:
                key = canonical_json([point.values[name] for name in rest])
                lacking.setdefault(key, {})[text_of(choice_of(names, point.values))] = None
        for group in choice_groups(points, among, names):
            whole = [p for p in group.values() if not p.cut] or [*group.values()]
            read = [point for point in whole if self.learns(point)] or whole
            kept = [*group.values()] if names == (INPUT,) else read
            values = {text_of(choice_of(names, point.values)): point for point in kept}
            key = canonical_json([kept[0].values[name] for name in rest])
            missing = lacking.get(key, {}) if kept[0].source == "measured" else {}
            yield Group(
                question, names, values, None if base is None else text_of(base),
                lacking=[value for value in missing if value not in values],
            )  # fmt: skip

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
            whole = [p for p in points if not p.cut
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
                yield comparison(
                    self.data, PHASE, (PHASE,), (metric, "later"), (point, point),
                    ratio_of(later[kept] / first[kept]),
                    value="later", base_value="init", base_mean=float(first[kept].mean()),
                )  # fmt: skip

    def pairs(self) -> Iterator[Comparison]:
        """What each value of a parameter changes over the base value on average, over all pairs of
        points that are otherwise equal, if two parameters or more vary."""
        follow = layout_followers(self.experiment)
        leaders = [name for name in self.leaders if name not in follow]
        for name in leaders if len(leaders) > 1 else ():
            base = base_value(self.experiment, (name,))
            others = [value for value in values_of(self.experiment, (name,)) if value != base]
            by_source: dict[str | None, list[dict[Any, Point]]] = {}
            for group in choice_groups(self.points, leaders, (name,)):
                by_source.setdefault(next(iter(group.values())).source, []).append(group)
            for of, value, measure in product(by_source.values(), others, self.main):
                both = [(group[value], group[base]) for group in of if {value, base} <= {*group}]
                yield from self._average(name, measure, both, (value, base))

    def _average(
        self,
        name: str,
        measure: Measure,
        among: Sequence[tuple[Point, Point]],
        values: tuple[Any, Any],
    ) -> Iterator[Comparison]:
        """The mean and the median of the ratios of two values, with their range."""
        pairs = [pair for pair in among if all(mean_of(self.data, p, measure) > 0 for p in pair)]
        if not pairs:
            return
        ratios = [
            mean_of(self.data, top, measure) / mean_of(self.data, bottom, measure)
            for top, bottom in pairs
        ]
        both = {
            "mean": mean_ratio(self.data, pairs, measure),
            "median": Ratio(float(np.median(ratios)), how="a median has none"),
        }
        for statistic, ratio in both.items():
            yield comparison(
                self.data, SCALING if name == self.data.scale else SETTING, (name,), measure,
                (None, None), ratio, statistic=statistic, source=pairs[0][0].source,
                value=text_of(values[0]), base_value=text_of(values[1]),
                pairs=len(pairs), least=min(ratios), most=max(ratios),
            )  # fmt: skip


MAKERS = (Maker(Comparison, lambda i: comparison_rows(i.data, i.points)),)
