"""Whether two sides ran on the same machine with the same software, and where they did not."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.compare.sides import Pair, Point, Side
from scalesweep.judge.facts import Difference, differences, facts_of, machine_moved, other_hosts
from scalesweep.tables.bookkeeping import CANARY, CANARY_WORDS
from scalesweep.tables.provenance import FACTS, GIT, PROGRAM, STUDY, RunFacts, read_facts


@dataclass(frozen=True)
class Surroundings:
    """What differs around the runs that are compared; ``alike``: facts that are the same;
    ``shared``: runs that both sides have, which are one and the same.

    ``subject``: the commit of the measured program, if the sides differ in it.
    """

    differences: list[Difference]
    alike: int
    shared: int
    sources: dict[str, list[str]]
    subject: Difference | None


def surroundings(pairs: Sequence[Pair], base: Side, new: Side) -> Surroundings:
    """Compare where and with what the runs of joined points ran."""
    both = [(pair.base, pair.new) for pair in pairs if pair.base and pair.new]
    rows = [sorted({row for points in both for row in points[n].rows}) for n in (0, 1)]
    facts = [_facts(side, own) for side, own in zip((base, new), rows, strict=True)]
    known = [[facts_of(run) for run in side] for side in facts]
    unlike = differences(known[0], known[1])
    hosts = other_hosts(*[[set(run.hosts) for run in side] for side in facts])
    every = {name for side in known for run in side for name in run}
    moved = [_moved(kind, both, base, new) for kind in CANARY_WORDS]
    subject = _subject(unlike, every)
    unlike = [*(d for d in (*moved, hosts) if d), *unlike]
    runs = [
        {key for key in side.summary.iloc[own][["run_id", "started"]].itertuples(index=False)
         if key[1] not in ("", "None", None)}
        for side, own in zip((base, new), rows, strict=True)
    ]  # fmt: skip
    sources = {
        side.role: sorted({str(side.summary["source"].tolist()[row]) for row in own})
        for side, own in zip((base, new), rows, strict=True)
    }
    alike = len(every) - sum(d.fact in every for d in unlike)
    return Surroundings(unlike, alike, len(runs[0] & runs[1]), sources, subject)


def _facts(side: Side, rows: Sequence[int]) -> list[RunFacts]:
    """Facts of these runs; runs that recorded nothing are left out."""
    if FACTS not in side.summary:
        return []
    frame = side.summary.iloc[list(rows)]
    return list(read_facts(frame["run_id"].tolist(), frame[FACTS].tolist()).values())


def _subject(unlike: Sequence[Difference], recorded: set[str]) -> Difference | None:
    """The difference in the commit of the measured program: of an external one its repository's,
    else the study's or scalesweep's, in which the shipped benchmarks are."""
    names = (PROGRAM,) if PROGRAM in recorded else (STUDY, GIT)
    known = {difference.fact: difference for difference in unlike if difference.known}
    return next((known[name] for name in names if name in known), None)


def _moved(
    kind: str, both: Sequence[tuple[Point, Point]], base: Side, new: Side
) -> Difference | None:
    """That the machine's own speed changed, by the canaries of points that have it on both sides;
    each point counts relative to its own mean, as ranks and nodes differ between points."""
    sides: tuple[list[float], list[float]] = ([], [])
    means = []
    for points in both:
        rates = [
            _rates(kind, side, point.rows) for side, point in zip((base, new), points, strict=True)
        ]
        if all(rates):
            middle = math.exp(sum(math.log(r) for r in rates[0]) / len(rates[0]))
            means.append(middle)
            for own, several in zip(sides, rates, strict=True):
                own.extend(rate / middle for rate in several)
    if not means:
        return None
    level = sum(means) / len(means)
    return machine_moved(kind, [r * level for r in sides[0]], [r * level for r in sides[1]])


def _rates(kind: str, side: Side, rows: Sequence[int]) -> list[float]:
    """Rates of a kind of canary of these runs: of a run the geometric mean over its looks."""
    if CANARY not in side.summary:
        return []
    rates = []
    texts = side.summary[CANARY].tolist()
    for text in (texts[row] for row in rows):
        looks = json.loads(text).values() if isinstance(text, str) else ()
        logs = [math.log(float(look[kind][1])) for look in looks if kind in look]
        if logs:
            rates.append(math.exp(sum(logs) / len(logs)))
    return rates
