"""What is asked of a campaign, with the point of everything that may be measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from scalesweep.adaptive.advice_points import PointOf, Prices
from scalesweep.adaptive.advice_target import Wanted
from scalesweep.analysis.advice.advise import Advice, ChoiceAsked, Options, SeriesAsked
from scalesweep.config.experiment import Experiment
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.tables.comparisons import main_measures
from scalesweep.tables.machine import Machine
from scalesweep.tables.points import ExperimentData, Measure, Point


@dataclass(frozen=True)
class Row:
    """A point that is to be measured: ``measured`` runs so far, ``runs`` more.

    ``node_hours``: of those at most, and of the data set that they are the first to read;
    ``longest_s``: upper bound of the time of one. Widths are
    natural logarithms of the upper over the lower bound: ``now``, ``after`` all of the advice, and
    ``without`` this row of it.
    """

    experiment: str
    point: PointOf
    words: str
    measured: int
    runs: int
    node_hours: float
    longest_s: float
    question: str
    now: float
    without: float
    after: float


@dataclass(eq=False)
class Study:
    """What is asked, and which point each count of a series and each setting of a choice is.

    ``refused``: why nothing is advised for an experiment; ``left_out``: points and why they are not
    among the options, ``stopped`` of these, where a series was stopped; ``notes``: what else is to
    be said.
    """

    series: list[SeriesAsked] = field(default_factory=list)
    choices: list[ChoiceAsked] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _experiments: dict[str, str] = field(default_factory=dict)
    _points: dict[str, dict[float, PointOf]] = field(default_factory=dict)
    _longest: dict[str, Mapping[float, float]] = field(default_factory=dict)
    _pairs: dict[str, tuple[PointOf, PointOf]] = field(default_factory=dict)
    _axes: dict[str, Sequence[str]] = field(default_factory=dict)

    def options(self, budget: float) -> Options:
        """The options for a budget in node-hours. Raises UserError if there is nothing to ask."""
        if not self.series and not self.choices:
            raise UserError("; ".join(self.refused) or "nothing is asked that runs could narrow")
        return Options(self.series, self.choices, budget)

    def rows(self, options: Options, advice: Advice) -> list[Row]:
        """The advice point by point, in the order of the questions."""
        answers = {answer.question: answer for answer in advice.answers}
        rows = []
        for series in self.series:
            label = next(iter(series.questions))
            key = f"{series.name}: {label}"
            priced: dict[float, int] = {}
            for count, runs in sorted(advice.counts.get(series.name, {}).items()):
                left = options.without(advice, series.name, count)
                without = next(answer.after for answer in left if answer.question == key)
                place = np.flatnonzero(series.known.series.ranks == count)
                so_far = series.price(priced)  # a data set counts with the first that reads it
                priced[count] = runs
                rows.append(
                    Row(
                        self._experiments[series.name],
                        self._points[series.name][count],
                        self._words(series.name, self._points[series.name][count]),
                        int(series.known.repeats[place[0]]) if place.size else 0,
                        runs,
                        series.price(priced) - so_far,
                        self._longest[series.name][count],
                        key,
                        answers[key].before,
                        without,
                        answers[key].after,
                    )
                )
        for two in self.choices:
            answer = answers[two.name]
            more = advice.levels.get(two.name, (0, 0))
            for side, point in enumerate(self._pairs[two.name]):
                if runs := more[side]:
                    rows.append(
                        Row(
                            self._experiments[two.name],
                            point,
                            self._words(two.name, point),
                            two.runs[side],
                            runs,
                            runs * two.costs[side],
                            self._longest[two.name][side],
                            two.name,
                            answer.before,
                            answer.before,
                            answer.after,
                        )
                    )
        return rows

    def _words(self, name: str, point: PointOf) -> str:
        return " ".join(f"{axis}={text_of(point[axis])}" for axis in self._axes[name])

    def ask_series(
        self,
        asked: SeriesAsked,
        experiment: Experiment,
        points: dict[float, PointOf],
        longest: Mapping[float, float],
    ) -> None:
        """Take a series in, with the point of each of its counts and the seconds of a run there."""
        self.series.append(asked)
        self._points[asked.name] = points
        self._longest[asked.name] = longest
        self._take(asked.name, experiment)

    def ask_choice(
        self,
        asked: ChoiceAsked,
        experiment: Experiment,
        pair: tuple[PointOf, PointOf],
        longest: tuple[float, float],
    ) -> None:
        """Take a choice in, with the points of its settings and the seconds of a run of each."""
        self.choices.append(asked)
        self._pairs[asked.name] = pair
        self._longest[asked.name] = dict(enumerate(longest))
        self._take(asked.name, experiment)

    def stop(self, text: str) -> None:
        """Say once of a series that was stopped why larger counts are no options."""
        if text not in self.stopped:
            self.stopped.append(text)
            self.left_out.append(text)

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notes:
            self.notes.append(text)

    def _take(self, name: str, experiment: Experiment) -> None:
        self._experiments[name] = experiment.name
        known = experiment.points[0]
        self._axes[name] = [axis for axis in experiment.axes if axis in known]


@dataclass(eq=False)
class Gather:
    """One experiment with its results, as questions about it are gathered into a study.

    ``left_out``: whether the campaign excludes a point; ``stopped``: why its ``stop`` leaves one
    out, empty where it does not; ``machine``: what probes say of it.
    """

    study: Study
    data: ExperimentData
    experiment: Experiment
    prices: Prices
    wanted: Wanted
    budget: float  # node-hours
    left_out: Callable[[PointOf], bool]
    stopped: Callable[[PointOf], str]
    machine: Machine

    def fits(self, point: Point) -> bool:
        """Whether a point has the values that the target names."""
        return all(text_of(point.values.get(n)) == v for n, v in self.wanted.values.items())

    def whole(self, point: Point) -> PointOf:
        """A point of the plan with all parameters, as the campaign has it."""
        return self._whole_points[canonical_json(dict(point.values))]

    @cached_property
    def _whole_points(self) -> Mapping[str, PointOf]:
        wholes = {}
        for point in self.experiment.points:
            scaled = self.experiment.benchmark.scaled(point)
            wholes[canonical_json({axis: scaled[axis] for axis in self.data.axes})] = point
        return wholes

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures of the metric that findings are about, the later epochs first."""
        order = {"later": 0, "first": 1}
        return sorted(main_measures(self.data), key=lambda measure: order.get(measure[1], 2))

    def refuse(self, why: str) -> None:
        """Say why something is not asked."""
        self.study.refused.append(why)
