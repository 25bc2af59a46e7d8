"""Ways to spend node-hours on a scaling series, so that its largest count is predicted well.

A ``Machine`` is a series that can be measured: a law with noise between runs, or a published series
whose runs scatter as little as those that predictions are calibrated on. Each way is asked which
run comes next, and is charged its cost: ranks times time.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bench.lib.prediction_laws import STRONG, law
from bench.lib.prediction_series import PublicSeries
from scalesweep.adaptive.advice_points import LEVEL, MOST_COUNTS
from scalesweep.analysis.advice.advise import Options, SeriesAsked
from scalesweep.analysis.advice.widths import Known, Target, cost_bounds
from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.types import Floats

# Relative scatter of single runs of published series, which state their means only.
SCATTER = 0.01
# Extra-P's rule: so many counts of a parameter, and runs of each.
COUNTS, REPEATS = 5, 5


@dataclass(eq=False)
class Machine:
    """``counts`` that can be measured, true ``costs`` (rank-seconds of a unit of work), the largest
    of which is to be predicted; ``doubling``: those of a doubling grid."""

    name: str
    scaling: str
    counts: Floats
    costs: Floats
    noise: float
    doubling: Floats

    @property
    def target(self) -> float:
        """The count that is asked for."""
        return float(self.counts[-1])

    @property
    def truth(self) -> float:
        """Its true cost."""
        return float(self.costs[-1])

    def price(self, count: float) -> float:
        """What a run costs: ranks times its time."""
        return self.charge(count, float(self.costs[self.counts == count][0]))

    def charge(self, count: float, cost: float) -> float:
        """The same of a run of such a cost: work grows with the ranks in weak scaling."""
        return cost * count if self.scaling == "weak" else cost

    def grid_price(self) -> float:
        """What one run of each count of the doubling grid below the target costs."""
        return sum(map(self.price, self.doubling.tolist()))

    def run(self, count: float, repeat: int) -> float:
        """The cost that a run measures; the same each time it is asked for."""
        seed = zlib.crc32(f"{self.name} {count} {repeat}".encode())
        draw = np.random.default_rng(seed).standard_normal()
        return float(self.costs[self.counts == count][0] * np.exp(self.noise * draw))


def simulated(kind: str, seed: int) -> Machine:
    """A machine with a law of a kind; its counts are powers of two and 1.25, 1.5 and 1.75 of
    these."""
    random = np.random.default_rng(seed)
    doubling = 2.0 ** np.arange(int(random.integers(7, 10)))
    parts = np.outer(doubling[2:-1], [1.25, 1.5, 1.75]).ravel()
    counts = np.unique([*doubling, *parts])
    costs = law(kind, counts, random)
    noise = float(np.exp(random.uniform(np.log(0.002), np.log(0.03))))
    scaling = "strong" if kind in STRONG else "weak"
    return Machine(f"{kind} {seed}", scaling, counts, costs, noise, doubling[:-1])


def published(public: PublicSeries) -> Machine:
    """A machine that gives what was published at the counts that were."""
    series = public.series()
    name = f"{public.program} {public.name}"
    return Machine(name, "weak", series.ranks, series.cost, SCATTER, series.ranks[:-1])


@dataclass(eq=False)
class Spent:
    """What was bought on a machine: costs of the runs by count, and their price together."""

    machine: Machine
    budget: float
    runs: dict[float, list[float]] = field(default_factory=dict)
    price: float = 0.0

    def buy(self, count: float) -> bool:
        """Run a count once more, if the budget lasts; whether it did."""
        price = self.machine.price(count)
        if self.price + price > self.budget * (1 + 1e-9):
            return False
        values = self.runs.setdefault(count, [])
        values.append(self.machine.run(count, len(values)))
        self.price += price
        return True

    def series(self) -> Series:
        """What is known: means of runs with their errors."""
        counts = np.array(sorted(self.runs))
        values = [np.array(self.runs[count]) for count in counts.tolist()]
        errors = [np.log(v).std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else np.nan for v in values]
        means = np.array([v.mean() for v in values])
        return make_series(counts, means, self.machine.scaling, np.array(errors))

    def repeats(self) -> Floats:
        """Runs behind each point of ``series``."""
        return np.array([len(self.runs[count]) for count in sorted(self.runs)], np.float64)


@dataclass(frozen=True)
class Result:
    """Of the prediction at the target: width (log of upper over lower bound of 95 %), error
    (relative), whether the interval held, and what was paid."""

    width: float
    error: float
    held: bool
    price: float


def result(spent: Spent) -> Result | None:
    """What the prediction is worth; None where there are too few counts."""
    series = spent.series()
    if refusal(series):
        return None
    machine = spent.machine
    prediction = predict(series, [machine.target])
    low, high = (float(bound[0]) for bound in prediction.interval())
    error = abs(float(prediction.cost[0]) / machine.truth - 1)
    return Result(float(np.log(high / low)), error, low <= machine.truth <= high, spent.price)


def grid(machine: Machine, repeats: int = 1) -> Iterator[float]:
    """Counts that double, from the smallest, so many runs of each."""
    for count in machine.doubling.tolist():
        yield from [count] * repeats


def doubling(machine: Machine, budget: float, repeats: int = 1) -> Spent:
    """The doubling grid as far as the budget lasts."""
    spent = Spent(machine, budget)
    for count in grid(machine, repeats):
        if not spent.buy(count):
            break
    return spent


def extra_p(machine: Machine, budget: float) -> Spent:
    """Five neighbouring counts of the doubling grid, the largest that can be paid, five runs of
    each; where not even the smallest can be, as many runs of them as the budget lasts for."""
    counts = machine.doubling.tolist()
    best = counts[:COUNTS]
    for first in range(len(counts) - COUNTS + 1):
        chosen = counts[first : first + COUNTS]
        if REPEATS * sum(map(machine.price, chosen)) <= budget:
            best = chosen
    spent = Spent(machine, budget)
    for _ in range(REPEATS):
        for count in best:
            spent.buy(count)
    return spent


def at_random(machine: Machine, budget: float, seed: int = 0) -> Spent:
    """Counts drawn at random, runs too, until none of them can be paid."""
    random = np.random.default_rng(seed)
    spent = Spent(machine, budget)
    there = machine.counts[machine.counts < machine.target]
    for count in random.choice(there, 200).tolist():
        spent.buy(count)
    return spent


def advised(machine: Machine, budget: float) -> Spent:
    """Three counts of the doubling grid; then what is advised, the cheapest half of it, and so on
    with what is left."""
    spent = Spent(machine, budget)
    for count in first_counts(machine, budget):
        spent.buy(count)
    while spent.runs and not refusal(spent.series()):
        left, series = budget - spent.price, spent.series()
        there = [
            float(count)
            for count in machine.counts[:-1]
            if count > series.ranks[-1] / 2 and count not in series.ranks
        ]
        costs = {
            count: machine.charge(count, cost_bounds(series, count, LEVEL)[1])
            for count in [*series.ranks.tolist(), *there]
        }
        new = [count for count in there if costs[count] <= left][-MOST_COUNTS:]
        asked = SeriesAsked(
            "s", Known(series, spent.repeats()), {"t": Target(machine.target)}, costs, new
        )
        plan = Options([asked], [], left).advise().counts.get("s", {}) if left > 0 else {}
        order = sorted(plan, key=lambda count: (costs[count], count))
        paid = spent.price
        for count in order[: (len(order) + 1) // 2]:
            for _ in range(plan[count]):
                spent.buy(count)
        if spent.price == paid:
            break
    return spent


def first_counts(machine: Machine, budget: float) -> list[float]:
    """The first three counts of a study.

    In weak scaling the smallest, which cost little; in strong scaling, where all cost about the
    same, the smallest and the two largest neighbours that can be paid with it.
    """
    counts: list[float] = machine.doubling.tolist()
    if machine.scaling == "weak":
        return counts[:3]
    for pair in reversed(list(pairwise(counts[1:]))):
        three = [counts[0], *pair]
        if sum(map(machine.price, three)) <= budget:
            return three
    return counts[:5:2]


METHODS: Mapping[str, Callable[[Machine, float], Spent]] = {
    "advice": advised,
    "doubling grid": doubling,
    "doubling grid, 3 runs": lambda machine, budget: doubling(machine, budget, 3),
    "Extra-P's rule": extra_p,
    "random": at_random,
}
