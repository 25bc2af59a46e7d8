"""The verdict on a scaling experiment: up to which scale it is efficient, a line per series.

The one place that says how efficient a scale is: in the phase that runs are compared in the
verdict says it, in other phases a sentence of the rule ``efficiency``.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from scalesweep.analysis.multiple import VERDICTS
from scalesweep.analysis.repeats import LIMIT, more_repeats
from scalesweep.aspects.scaling.efficiencies import (
    Efficiency,
    efficiencies,
)
from scalesweep.aspects.scaling.series_words import series_words
from scalesweep.aspects.scaling.shares import RULE as STATED
from scalesweep.aspects.scaling.shares import stated_efficiency
from scalesweep.core.formatting import PHASES, finite, listed, text_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import (
    ATTENTION,
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Number,
    Rule,
    evidence_of,
    number_of,
)

RULE, OTHER_PHASES = "verdict", "efficiency"
ABOVE, BELOW, UNDECIDED, UNKNOWN = "above", "below", "undecided", "unknown"
# So many series have a line each; of more, those that say the same share one.
EACH, MOST_LINES = 2, 6
IDENTICAL = "identical repeats"
# An interval that lies this close to the bound says that the efficiency is about the bound.
CLOSE = 0.05
# That these change along a series is what scaling means.
GO_WITH_SCALE = frozenset({"nodes", "ranks_per_node", "batch_size", "global_batch_size"})


@dataclass(frozen=True)
class Verdict:
    """What the efficiencies of a series say of the scale to run at.

    ``run`` is the scale to run at: the largest that clearly reaches the target, else the base.
    ``kind``: ABOVE (that is the largest measured scale), BELOW (``cited`` is the first point beyond
    it that is clearly under the target), UNDECIDED (``cited`` is the first whose interval includes
    it, or that has none, or that is ``odd``), UNKNOWN (no point has an interval: ``cited`` is the
    largest). ``dips`` are smaller scales than ``run`` that are clearly under the target.
    """

    series: Series
    measure: Measure
    kind: str
    run: int
    cited: Efficiency
    points: Sequence[Efficiency]
    dips: Sequence[Efficiency] = ()

    @property
    def claims(self) -> list[Claim]:
        """What it rests on: that the cited point lies on its side, and the one to run at on its."""
        counts = {self.run, self.cited.count, *(dip.count for dip in self.dips)}
        return [point.claim for point in self.points if point.count in counts]

    @property
    def close(self) -> bool:
        """Whether the whole interval lies within 5 points of the target: it is about reached
        (equivalence by interval inclusion; Schuirmann, 1987)."""
        point = self.cited
        if point.low is None or point.high is None:
            return False
        return point.low >= point.target - CLOSE and point.high <= point.target + CLOSE

    @property
    def more(self) -> int | None:
        """Repeats to add until the interval of an undecided point is clear of the target; None if
        they are not known, or more than ``LIMIT``."""
        point = self.cited
        if point.low is None or point.high is None or min(point.low, point.value) <= 0:
            return None
        if point.odd:
            return None
        half = math.log(point.high / point.low) / 2
        return more_repeats(half, self.repeats, abs(math.log(point.value / point.target)), LIMIT)

    @property
    def repeats(self) -> int:
        """Of the cited point or the base, whichever has fewer."""
        counts = [row.get("repeats") for row in (self.series.rows[0], self.cited.row)]
        return min(int(count) if finite(count) else 1 for count in counts)

    @property
    def lacks(self) -> str:
        """Why the cited point has no interval (``Measure.without_interval``); empty if it has."""
        if self.cited.low is not None:
            return ""
        phase = self.measure.steady_phase
        rows = (self.series.rows[0], self.cited.row)
        why = [self.measure.without_interval(row, phase) for row in rows]
        return next(filter(None, why), "no interval")


def verdicts(results: ExperimentResults) -> list[Verdict]:
    """A verdict for each series that has efficiencies, in plan order."""
    measure = results.scaled_measure
    if measure is None:
        return []
    verdicts = []
    for series in results.series:
        points = efficiencies(results, series, measure.steady_phase)
        if points:
            verdicts.append(_verdict(results, measure, series, points))
    return verdicts


def _verdict(
    results: ExperimentResults,
    measure: Measure,
    series: Series,
    points: Sequence[Efficiency],
) -> Verdict:
    sides = [point.side for point in points]
    above = [point.count for point, side in zip(points, sides, strict=True) if side == "above"]
    run = above[-1] if above else results.scale_of(series.rows[0])
    under = [point for point, side in zip(points, sides, strict=True) if side == "below"]
    dips = [point for point in under if point.count < run]
    if len(under) > len(dips):
        return Verdict(series, measure, BELOW, run, under[len(dips)], points, dips)
    if sides[-1] == "above":
        return Verdict(series, measure, ABOVE, run, points[-1], points, dips)
    if all(point.low is None for point in points):
        return Verdict(series, measure, UNKNOWN, run, points[-1], points)
    first = next(i for i, side in enumerate(sides) if side not in ("above", "below"))
    return Verdict(series, measure, UNDECIDED, run, points[first], points, dips)


def scaling_verdict(results: ExperimentResults) -> list[Finding]:
    """A sentence per series, or one for all series that say the same where there are many; and that
    every efficiency was held against the target, also those of which nothing is said."""
    every = verdicts(results)
    claims = tuple(point.claim for verdict in every for point in verdict.points)
    tested = [Finding(results.name, RULE, SILENT, claims=claims)] if claims else []
    groups: dict[Hashable, list[Verdict]] = {}
    for place, verdict in enumerate(every):
        dips = tuple(dip.count for dip in verdict.dips)
        key = (verdict.kind, verdict.run, verdict.cited.count, verdict.cited.row["source"], dips)
        groups.setdefault(key if len(every) > EACH else place, []).append(verdict)
    several = sorted(groups.values(), key=lambda group: -len(group))
    findings = [said for group in several[:MOST_LINES] for said in _said(results, group)]
    if left := sum(len(group) for group in several[MOST_LINES:]):
        numbers = (number_of("series", left, "1"),)
        evidence = {"table": "scaling", "key": {}}
        findings.append(Finding(results.name, RULE, NOTE, numbers=numbers, evidence=evidence))
    return [*findings, *tested]


def _said(results: ExperimentResults, group: Sequence[Verdict]) -> list[Finding]:
    """The sentence on series whose verdicts agree, of the lowest of them; and on scales below the
    one to run at that are under the target."""
    lowest = min(group, key=lambda verdict: verdict.cited.value)
    point, phase = lowest.cited, lowest.measure.steady_phase
    base = results.scale_of(lowest.series.rows[0])
    scales = lowest.run != base or lowest.kind == ABOVE
    up_to = f"efficient up to {results.scaled(lowest.run)}" if scales else "does not scale"
    evidence = evidence_of(results, "scaling", point.row)
    evidence["figure"] = f"overview-{phase}" if len(group) > 1 else f"scaling-{phase}"
    made = Finding(
        results.name, RULE, CLEAR if lowest.kind in (ABOVE, BELOW) else OPEN,
        subject=series_words(results, [verdict.series for verdict in group]),
        words={"up_to": up_to, "at": _at(point, len(group)), "base": _relative(results, base)},
        numbers=(number_of("efficient up to", lowest.run, results.scale), _number(point)),
        reason=_why_open(lowest), flags=(*_confounded(results, lowest), *_holes(results, lowest)),
        claims=tuple(claim for verdict in group for claim in verdict.claims), evidence=evidence,
    )  # fmt: skip
    if not (dips := [dip for verdict in group for dip in verdict.dips]):
        return [made]
    dip = min(dips, key=lambda point: point.value)
    words = {"at": dip.at, "base": _relative(results, base)}
    numbers, row = (_number(dip),), evidence_of(results, "scaling", dip.row)
    return [
        made,
        replace(made, state=ATTENTION, words=words, numbers=numbers, reason="", evidence=row),
    ]


def _at(point: Efficiency, series: int) -> str:
    return f"{point.at} (the lowest of {series:,})" if series > 1 else point.at


def _relative(results: ExperimentResults, base: int) -> str:
    return f", relative to {results.scaled(base)}" if base != 1 else ""


def _number(point: Efficiency) -> Number:
    return number_of("efficiency", point.value, "1", *(point.said or (None, None)))


def _confounded(results: ExperimentResults, verdict: Verdict) -> list[str]:
    """That other parameters change with the scale: the efficiency is the effect of all of them."""
    entry = results.entry
    expected = {*entry["scale_parameters"], *entry["work"], *GO_WITH_SCALE}
    first, last = verdict.series.rows[0], verdict.cited.row
    return [
        f"also changed: {name} ({text_of(first[name])} to {text_of(last[name])})"
        for name in results.followers.get(results.scale, [])
        if name not in expected and first.get(name) != last.get(name)
    ]


def _holes(results: ExperimentResults, verdict: Verdict) -> list[str]:
    """Planned scales of a series without a result."""
    holes = [results.scaled(count) for count in sorted(verdict.series.holes)]
    return [f"no result at {listed(holes)}"] if holes else []


def _why_open(verdict: Verdict) -> str:
    """Why it is not clear on which side of the target the cited point is; empty if it is."""
    point = verdict.cited
    if verdict.kind in (ABOVE, BELOW):
        return ""
    if point.odd or verdict.lacks:
        return point.odd or verdict.lacks
    return f"the interval includes {100 * point.target:g} %"


def other_phases(results: ExperimentResults) -> list[Finding]:
    """The lowest efficiency at the largest scale in the phases that the verdict is not about."""
    measure = results.scaled_measure
    phases = [] if measure is None else [p for p in measure.phases if p != measure.steady_phase]
    findings = []
    for phase in phases:
        last: dict[Hashable, list[tuple[Efficiency, Series]]] = {}
        for series in results.series:
            if points := efficiencies(results, series, phase):
                key = (results.scale_of(series.rows[0]), points[-1].count, points[-1].row["source"])
                last.setdefault(key, []).append((points[-1], series))
        findings += [_in_phase(results, phase, pairs) for pairs in last.values()]
    return findings


def _in_phase(
    results: ExperimentResults, phase: str, pairs: Sequence[tuple[Efficiency, Series]]
) -> Finding:
    """The efficiency of one series in a phase, or the lowest of several."""
    low, series = min(pairs, key=lambda pair: pair[0].value)
    clear = CLEAR if low.side in ("above", "below") else OPEN
    straddles = f"the interval includes {100 * low.target:g} %"
    evidence = evidence_of(results, "scaling", low.row)
    evidence["figure"] = f"{'overview' if len(pairs) > 1 else 'scaling'}-{phase}"
    return Finding(
        results.name, OTHER_PHASES, clear if len(pairs) == 1 else NOTE,
        subject=f"{PHASES[phase].capitalize()}{f', {series.label}' if series.label else ''}",
        words={
            "at": _at(low, len(pairs)),
            "base": _relative(results, results.scale_of(series.rows[0])),
        },
        numbers=(_number(low),),
        reason=low.odd or (straddles if low.side == "straddles" else ""),
        claims=tuple(point.claim for point, _ in pairs), evidence=evidence,
    )  # fmt: skip


_FIGURES = ("scaling", "overview-")
RULES = (
    Rule(
        RULE, scaling_verdict, part=VERDICTS, figures=_FIGURES, on_main=True,
        says={
            CLEAR: "{subject}: {up_to}; efficiency at {at}{base}: {efficiency:%}.",
            OPEN: "{subject}: not decided; efficiency at {at}{base}: {efficiency:%}.",
            ATTENTION: "{subject}: larger scales do better than {at}{base}: {efficiency:%}.",
            NOTE: "More series, in the table of scaling: {series}.",
        },
        next={
            OPEN: "add repeats: `repeats` in the campaign; those that are done stay",
            ATTENTION: "find what slows {at} down",
        },
    ),
    Rule(
        OTHER_PHASES, other_phases, part=VERDICTS, figures=_FIGURES, on_main=True,
        says={CLEAR: "{subject}: efficiency at {at}{base}: {efficiency:%}.",
              NOTE: "{subject}: efficiency at {at}{base}: {efficiency:%}."},
    ),
    Rule(STATED, stated_efficiency,
         says={NOTE: "Stated {metric} at the largest scale, {subject}: {efficiency:%}."}),
)  # fmt: skip
