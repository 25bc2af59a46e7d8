"""How well larger counts of published series are foretold, beside a line in log2 of the ranks.

Each series of tests/published/scaling_series.csv is predicted from its smaller half, with half of
the other series of its program. ``left out``: what intervals hold on the machines of one source
after they were made as wide as those of the other sources need.

    python -m bench.prediction [--series N]
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.prediction import LEVELS, Series, predict, refusal, refusals

PUBLISHED = Path(__file__).parents[1] / "tests" / "published" / "scaling_series.csv"
SCALINGS = ("weak", "strong")


class Foretold(NamedTuple):
    """A count that was not known: logarithm of measured over predicted, over the bound of the
    interval of 95 % on that side; relative errors of the prediction and of a line."""

    scaling: str
    source: str
    away: float
    error: float
    line: float


def published() -> Iterator[tuple[str, str, Series]]:
    """Machine, program and series of costs."""
    with PUBLISHED.open(newline="") as file:
        for row in csv.DictReader(file):
            ranks = np.array([float(word) for word in row["ranks"].split()])
            values = np.array([float(word) for word in row["values"].split()])
            cost = values if row["unit"] == "s" else ranks / values
            node = int(row["ranks_per_node"])
            yield (
                row["cluster"],
                row["program"],
                Series(ranks, cost, row["scaling"], node=node if node > 1 else 0),
            )


def foretold(every: Sequence[tuple[str, str, Series]]) -> Iterator[Foretold]:
    """Every count that was left out and is not refused."""
    for fold in range(2):
        for place, (source, program, series) in enumerate(every):
            like = [
                (i, s) for i, (machine, name, s) in enumerate(every)
                if (machine, name, s.node) == (source, program, series.node) and i != place
            ]  # fmt: skip
            half = max((len(series.ranks) + 1) // 2, 3)
            if place % 2 != fold or half == len(series.ranks):
                continue
            cut = [s.first(max((len(s.ranks) + 1) // 2, 3)) if i % 2 == fold else s
                   for i, s in like]  # fmt: skip
            known = Series(
                series.ranks[:half], series.cost[:half], series.scaling, node=series.node,
                others=[(s.ranks, s.cost) for s in cut],
            )  # fmt: skip
            if not refusal(known):
                yield from _scored(source, known, series, half)


def _scored(source: str, known: Series, series: Series, half: int) -> Iterator[Foretold]:
    targets, costs = series.ranks[half:], series.cost[half:]
    said = predict(known, targets)
    low, high = said.interval()
    fit = np.polyfit(np.log2(known.ranks), known.cost, 1)
    straight = np.polyval(fit, np.log2(targets))
    for i, why in enumerate(refusals(known, targets)):
        if not why:
            off = np.log(costs[i] / said.cost[i])
            bound = np.log((high if off > 0 else low)[i] / said.cost[i])
            error, plain = abs(said.cost[i] / costs[i] - 1), abs(straight[i] / costs[i] - 1)
            yield Foretold(known.scaling, source, float(off / bound), float(error), float(plain))


def _left_out(rows: Sequence[Foretold], level: float) -> float:
    """Share held, each source by intervals as wide as the others need."""
    held = []
    for source in {row.source for row in rows}:
        others = [row.away for row in rows if row.source != source]
        if others:
            need = float(np.quantile(others, level))
            held += [row.away <= need for row in rows if row.source == source]
    return 100 * float(np.mean(held or [True]))


def measure(series: int = 0) -> Iterator[dict[str, Any]]:
    """Of so many series of each kind of scaling; 0: of all."""
    for scaling in SCALINGS:
        every = [each for each in published() if each[2].scaling == scaling]
        rows = list(foretold(every[: 2 * series] if series else every))
        if not rows:
            continue
        error = 100 * float(np.median([row.error for row in rows]))
        plain = 100 * float(np.median([row.line for row in rows]))
        yield figure(f"{scaling}: median error", error, "%")
        yield figure(f"{scaling}: median error of a line", plain, "%")
        for level, factor in LEVELS.items():
            held = 100 * float(np.mean([row.away <= factor for row in rows]))
            name = f"{scaling}: intervals of {100 * level:g} % hold"
            yield figure(name, held, "%")
            yield figure(f"{name}, left out", _left_out(rows, level), "%")


if __name__ == "__main__":
    run(measure)
