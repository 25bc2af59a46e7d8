"""What to measure next with so many node-hours: the options, and the best choice among them.

Of a scaling series sets of up to ``TOGETHER`` new rank counts are options, of which one is chosen:
two counts near each other teach little more than one, so each set is judged as a whole. Larger sets
are made of those smaller ones that no other set beats for the same or a lower cost. Further runs of
a count, new or measured, are steps that add to that, each after the one before it. Two settings
that are compared get further runs together, one step for each level.

The gain of an option is the expected fall of an interval's width over the width it has now, summed
over what is asked: a question counts as much as any other, whatever its unit. The choice is then
judged as a whole: counts that add nothing to the others are left out, and the width after is that
of all runs together.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from scalesweep.analysis.advice.choice import Choice, Item, choose, thrifty
from scalesweep.analysis.advice.widths import (
    Additions,
    Known,
    Question,
    expected_widths,
    ratio_width,
    widths,
)
from scalesweep.analysis.cbc import SECONDS, THRIFT

# New counts of a series in one choice.
TOGETHER = 3
# New counts of all series together, so that many series take no longer than a few; of each at least
# ``LEAST_NEW``, the largest that can be paid.
MOST_NEW, LEAST_NEW = 64, 4
# Further runs of one count.
MORE = 4
# Levels of repeats to which two compared settings may be raised.
LEVELS = 12


@dataclass(frozen=True, eq=False)
class SeriesAsked:
    """A scaling series, what is asked of it, and the node-hours of a run at each count that may be
    measured (measured ones too); ``new``: those of them that have not been, of which ``least`` runs
    are made if any.

    ``once``: what has to be made before the first run of a new count, by name, with its node-hours:
    counts that name the same share it.
    """

    name: str
    known: Known
    questions: Mapping[str, Question]
    costs: Mapping[float, float]
    new: Sequence[float]
    least: int = 1
    once: Mapping[float, tuple[str, float]] = field(default_factory=dict)

    def price(self, added: Additions) -> float:
        """Node-hours of these runs, and of what has to be made before them."""
        made = {self.once[count] for count in added if count in self.once}
        runs = (runs * self.costs[count] for count, runs in added.items())
        return math.fsum([*runs, *(hours for _, hours in made)])


@dataclass(frozen=True)
class ChoiceAsked:
    """Two settings at one point, of which it is asked which is better.

    ``spread``: relative standard deviation of a run; ``runs``: of each so far; ``costs``:
    node-hours of a run of each; ``width``: of the ratio's interval now, NaN where it has none.
    """

    name: str
    spread: float
    runs: tuple[int, int]
    costs: tuple[float, float]
    width: float = math.nan

    def width_of(self, runs: tuple[int, int]) -> float:
        """How wide the interval of the ratio is expected to be after so many runs of each."""
        now = ratio_width(self.spread, self.runs)
        factor = 1.0 if math.isnan(self.width) else self.width / now
        return ratio_width(self.spread, runs) * factor

    def raised(self, level: int) -> tuple[int, int]:
        """The runs of each at a level: so many more than the one with fewer has."""
        least = min(self.runs) + level
        return max(least, self.runs[0]), max(least, self.runs[1])


@dataclass(frozen=True)
class Answer:
    """How wide the interval of what is asked is now, and is expected to be after."""

    question: str
    before: float
    after: float


@dataclass(frozen=True)
class Advice:
    """What to measure: ``counts``: further runs by series and count; ``levels``: further runs of
    both settings by choice. ``cost`` in node-hours; ``gap`` as in ``Choice``."""

    budget: float
    counts: Mapping[str, Additions]
    levels: Mapping[str, tuple[int, int]]
    cost: float
    gap: float
    answers: tuple[Answer, ...]


# What buying an item adds to a choice: (series, count) or (choice, level).
_Bought = tuple[str, tuple[float, ...]]


class Options:
    """Everything that may be measured, with costs and gains; asked for any budget up to the one
    that it was made for."""

    def __init__(
        self, series: Sequence[SeriesAsked], choices: Sequence[ChoiceAsked], budget: float
    ) -> None:
        """Take in what is asked; gains are worked out when they are needed. ``budget`` in
        node-hours, above 0."""
        self._series = {series.name: series for series in series}
        self._choices = {choice.name: choice for choice in choices}
        self._budget = budget
        self._before = {
            series.name: widths(series.questions.values(), series.known.series) for series in series
        }
        self._places: list[Item] = []
        self._bought: list[_Bought] = []

    @cached_property
    def items(self) -> Sequence[Item]:
        """What the integer programme chooses among."""
        for series in self._series.values():
            self._add_series(series)
        for two in self._choices.values():
            self._add_choice(two)
        return tuple(self._places)

    @property
    def beyond(self) -> float | None:
        """Node-hours of the cheapest new count, or further run, that the budget does not pay for;
        None where it pays for each."""
        series = (
            series.price({count: series.least if count in set(series.new) else 1})
            for series in self._series.values()
            for count in series.costs
        )
        choices = (sum(two.costs) for two in self._choices.values())
        return min((cost for cost in (*series, *choices) if cost > self._budget), default=None)

    @property
    def now(self) -> tuple[Answer, ...]:
        """What is asked, if nothing more is measured."""
        return self._answers({}, {})

    def advise(self, budget: float | None = None, seconds: float = SECONDS) -> Advice:
        """The best choice for a budget (None: that of the options)."""
        limit = self._budget if budget is None else budget
        best = choose(self.items, limit, seconds)
        counts, levels = self._content(best)
        saved = 0.0
        for name, added in counts.items():
            kept = self._worth(self._series[name], added, limit)
            saved += self._series[name].price(added) - self._series[name].price(kept)
            counts[name] = kept
        answers = self._answers(counts, levels)
        return Advice(limit, counts, levels, max(best.cost - saved, 0.0), best.gap, answers)

    def _worth(self, series: SeriesAsked, added: Additions, budget: float) -> dict[float, int]:
        """What is left of an advice without the counts that add nothing to the others: gains of
        further runs were added up, and may be none next to new counts."""
        kept = dict(added)
        gain = self._gain(series, kept)
        for count in sorted(added):
            rest = {other: runs for other, runs in kept.items() if other != count}
            without = self._gain(series, rest)
            if gain - without <= THRIFT * (series.price(kept) - series.price(rest)) / budget:
                kept, gain = rest, without
        return kept

    def without(self, advice: Advice, name: str, count: float) -> tuple[Answer, ...]:
        """What is asked, if a count of a series is left out of an advice."""
        left = {c: runs for c, runs in advice.counts[name].items() if c != count}
        return self._answers({**advice.counts, name: left}, advice.levels)

    def curve(self, parts: int = 10) -> list[Advice]:
        """The advice for 1, 2, ... ``parts`` equal parts of the budget."""
        return [self.advise(self._budget * part / parts) for part in range(1, parts + 1)]

    def _content(
        self, best: Choice
    ) -> tuple[dict[str, dict[float, int]], dict[str, tuple[int, int]]]:
        counts: dict[str, dict[float, int]] = {}
        levels: dict[str, int] = {}
        for name, parts in (self._bought[place] for place in best.places):
            if name in self._choices:
                levels[name] = levels.get(name, 0) + 1
                continue
            asked = self._series[name]
            for count in parts:
                runs = counts.setdefault(name, {})
                first = asked.least if count in asked.new else 1
                runs[count] = runs[count] + 1 if count in runs else first
        more = {}
        for name, level in levels.items():
            choice = self._choices[name]
            top, bottom = choice.raised(level)
            more[name] = top - choice.runs[0], bottom - choice.runs[1]
        return counts, more

    def _answers(
        self, counts: Mapping[str, Additions], levels: Mapping[str, tuple[int, int]]
    ) -> tuple[Answer, ...]:
        answers = []
        for name, series in self._series.items():
            after = expected_widths(series.questions.values(), series.known, counts.get(name, {}))
            rows = zip(series.questions, self._before[name].tolist(), after.tolist(), strict=True)
            answers += [Answer(f"{name}: {label}", old, new) for label, old, new in rows]
        for name, two in self._choices.items():
            more = levels.get(name, (0, 0))
            runs = two.runs[0] + more[0], two.runs[1] + more[1]
            answers.append(Answer(name, two.width_of(two.runs), two.width_of(runs)))
        return tuple(answers)

    def _gain(self, series: SeriesAsked, added: Additions) -> float:
        """The sum of the relative falls of width that these runs are expected to give."""
        before = self._before[series.name]
        after = expected_widths(series.questions.values(), series.known, added)
        return float((1 - after[before > 0] / before[before > 0]).sum())

    def _add_series(self, series: SeriesAsked) -> None:
        """Add what may be bought in a series: sets of new counts, and further repeats of measured
        ones.

        Sets of more than two counts grow from the thrifty ones only. A count may have repeats only
        once a set that holds it is bought.
        """
        gains: dict[tuple[float, ...], float] = {}
        costs: dict[tuple[float, ...], float] = {}
        there = [
            count
            for count in sorted(series.new)
            if series.price({count: series.least}) <= self._budget
        ]
        there = there[-max(LEAST_NEW, MOST_NEW // len(self._series)) :]
        sets = {(count,) for count in there} | set(combinations(there, 2))
        for size in range(2, TOGETHER + 1):
            for counts in sorted(sets):
                cost = series.price(dict.fromkeys(counts, series.least))
                if cost <= self._budget and counts not in gains:
                    costs[counts] = cost
                    gains[counts] = self._gain(series, dict.fromkeys(counts, series.least))
            alike = {counts: cost for counts, cost in costs.items() if len(counts) == size}
            grown = thrifty(alike, gains)
            sets = {
                tuple(sorted((*counts, more)))
                for counts in grown
                for more in there
                if more not in counts
            }
        homes: dict[float, list[int]] = {}
        for counts in thrifty(costs, gains):
            for count in counts:
                homes.setdefault(count, []).append(len(self._places))
            self._add(Item(costs[counts], gains[counts], group=series.name), (series.name, counts))
        measured = [count for count in series.costs if count not in set(series.new)]
        for count in [*sorted(homes), *measured]:
            start = series.least + 1 if count in homes else 1
            base = gains.get((count,), 0.0)
            self._add_chain(
                (series.name, (count,)),
                series.costs[count],
                (
                    self._gain(series, {count: start + more}) - base
                    for more in range(MORE if series.known.spread > 0 else 0)
                ),
                tuple(homes.get(count, ())),
            )

    def _add_choice(self, two: ChoiceAsked) -> None:
        before = two.width_of(two.runs)
        runs, after = two.runs, None
        for level in range(1, LEVELS + 1):
            raised = two.raised(level)
            cost = sum(
                (new - old) * each for new, old, each in zip(raised, runs, two.costs, strict=True)
            )
            fall = two.width_of(runs) - two.width_of(raised)
            item = Item(cost, fall / before, after=after)
            after = self._add(item, (two.name, (float(level),)))
            runs = raised

    def _add_chain(
        self, bought: _Bought, cost: float, totals: Iterable[float], needs: tuple[int, ...]
    ) -> None:
        """Steps whose gains add up to ``totals``; none gains more than the one before it."""
        so_far, least, after = 0.0, float("inf"), None
        for total in totals:
            gain = min(max(total - so_far, 0.0), least)
            if gain <= 0 or cost > self._budget:
                return
            item = Item(cost, gain, after=after, needs=() if after is not None else needs)
            after = self._add(item, bought)
            so_far, least = so_far + gain, gain

    def _add(self, item: Item, bought: _Bought) -> int:
        self._places.append(item)
        self._bought.append(bought)
        return len(self._places) - 1
