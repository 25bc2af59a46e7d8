"""The verdict on a scaling experiment: up to which scale it is efficient, a line per series.

The one place that says how efficient a scale is: in the phase that runs are compared in the
verdict says it, in other phases a sentence of the rule ``efficiency``.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from scalesweep.analysis.multiple import VERDICTS
from scalesweep.analysis.repeats import LIMIT, more_repeats
from scalesweep.aspects.scaling.efficiencies import (
    Efficiency,
    efficiencies,
    efficiency_columns,
)
from scalesweep.aspects.scaling.series_words import common_and_own, series_words
from scalesweep.aspects.scaling.shares import RULE as STATED
from scalesweep.aspects.scaling.shares import stated_efficiency
from scalesweep.core.formatting import (
    PHASES,
    counted,
    finite,
    listed,
    percent,
    says_nothing,
    text_of,
)
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Number,
    Rule,
    evidence_of,
    from_single_runs,
    marked,
    number_of,
    why_unconfirmed,
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
    """A sentence per series, or one for all series that say the same where there are many."""
    every = verdicts(results)
    return [
        *_sentences(results, every),
        *_tested(results, RULE, [verdict.points for verdict in every]),
    ]


def _tested(
    results: ExperimentResults, rule: str, every: Sequence[Sequence[Efficiency]]
) -> list[Finding]:
    """That every efficiency was held against the target, also those of which nothing is said."""
    claims = tuple(point.claim for points in every for point in points)
    return [Finding(results.name, rule, SILENT, "", claims=claims)] if claims else []


def _sentences(results: ExperimentResults, every: Sequence[Verdict]) -> list[Finding]:
    if len(every) <= EACH:
        return [_sentence(results, [verdict]) for verdict in every]
    groups: dict[Hashable, list[Verdict]] = {}
    for verdict in every:
        dips = tuple(dip.count for dip in verdict.dips)
        key = (verdict.kind, verdict.run, verdict.cited.count, verdict.cited.row["source"], dips)
        groups.setdefault(key, []).append(verdict)
    several = sorted(groups.values(), key=lambda group: -len(group))
    findings = [_sentence(results, group) for group in several[:MOST_LINES]]
    if left := sum(len(group) for group in several[MOST_LINES:]):
        text = f"{left:,} more series: see the scaling table."
        evidence = {"experiment": results.name, "table": "scaling", "key": {}}
        findings.append(Finding(results.name, RULE, NOTE, text, evidence))
    return findings


def _sentence(results: ExperimentResults, group: Sequence[Verdict]) -> Finding:
    """The sentence on series whose verdicts agree; its evidence is the lowest of them."""
    lowest = min(group, key=lambda verdict: verdict.cited.value)
    point, last = lowest.cited, lowest.points[-1]
    reached = _reached(results, group)
    base = results.scale_of(lowest.series.rows[0])
    ideal = "of the ideal" + (f" (from {results.scaled(base)})" if base != 1 else "")
    verb = "reaches" if point.count == 1 else "reach"
    measured = f"{point.at} {verb} {reached} {ideal}"
    # What one series alone is to be run at; of several none is said to be the one to run.
    who = series_words(results, [verdict.series for verdict in group])
    level = CLEAR
    if lowest.kind == ABOVE:
        head = f"{who}: efficient up to {point.at}" if who else f"run {point.at}"
        text = f"{head}, the most that were measured: they {verb} {reached} {ideal}"
    elif lowest.kind == BELOW:
        if lowest.run == base:
            head = f"{who}: does not scale;" if who else "does not scale:"
        else:
            head = f"{who}: efficient up to" if who else "run"
            head += f" {results.scaled(lowest.run)}{';' if who else ':'}"
        text = f"{head} {measured}"
    elif lowest.kind == UNDECIDED:
        level = OPEN
        text = f"{f'{who}: ' if who else ''}not decided: {measured}, {_why_open(lowest)}"
    else:
        level = OPEN
        text = f"{f'{who}: ' if who else ''}{measured}, {_from_what(lowest)}: not confirmed"
        text += f"; {point.odd}" if point.odd else ""
    if len(group) == 1:
        text += _further(lowest)
        text += _holes(results, lowest)
    text += _dip(group) + _confounded(results, lowest)
    columns = efficiency_columns(results, lowest.measure.steady_phase)
    evidence = evidence_of(results, "scaling", point.row, columns)
    if len(group) > 1:
        evidence["figure"] = f"overview-{lowest.measure.steady_phase}"
    numbers = [_number(point)]
    if len(group) == 1 and last.count != point.count:
        numbers.append(_number(last))
    elif len(group) > 1:
        numbers.append(_number(max((verdict.cited for verdict in group), key=lambda p: p.value)))
    if lowest.kind in (ABOVE, BELOW):
        numbers.append(number_of("efficient up to", lowest.run, results.scale))
    text = marked(point.row["source"], f"{text}.", capital=len(group) > 1 or not who)
    claims = tuple(claim for verdict in group for claim in verdict.claims)
    return Finding(results.name, RULE, level, text, evidence, tuple(numbers), claims=claims)


def _dip(group: Sequence[Verdict]) -> str:
    """The lowest of the scales below the one to run at that are under the target."""
    dips = [dip for verdict in group for dip in verdict.dips]
    if not dips:
        return ""
    dip = min(dips, key=lambda point: point.value)
    verb = "reaches" if dip.count == 1 else "reach"
    return f"; {dip.at} {verb} only {dip.text}"


def _confounded(results: ExperimentResults, verdict: Verdict) -> str:
    """That other parameters change with the scale: the efficiency is the effect of all of them."""
    entry = results.entry
    expected = {*entry["scale_parameters"], *entry["work"], *GO_WITH_SCALE}
    first, last = verdict.series.rows[0], verdict.cited.row
    changed = [
        f"{name} ({text_of(first[name])} to {text_of(last[name])})"
        for name in results.followers.get(results.scale, [])
        if name not in expected and first.get(name) != last.get(name)
    ]
    return f"; also changed: {listed(changed)}" if changed else ""


def _number(point: Efficiency) -> Number:
    return number_of(f"efficiency at {point.at}", point.value, "1", point.low, point.high)


def _reached(results: ExperimentResults, group: Sequence[Verdict]) -> str:
    """The efficiency of a series, or from the lowest to the highest of several."""
    if len(group) == 1:
        return group[0].cited.text.removesuffix(" (no interval)")
    ordered = sorted(group, key=lambda verdict: verdict.cited.value)
    ends = (ordered[0], ordered[-1])
    low, high = (f"{100 * end.cited.value:.0f}" for end in ends)
    if low == high:
        return f"{low} %"
    _, own = common_and_own(results, [end.series for end in ends])
    if all(own):
        return f"{low} % ({own[0]}) to {high} % ({own[1]})"
    return f"{low} to {high} %"


def _further(verdict: Verdict) -> str:
    """What the largest scale of a series reaches, where another one is cited; of measured
    efficiencies without intervals where they first fall below the target."""
    last = verdict.points[-1]
    if verdict.kind == UNKNOWN:
        first = next((point for point in verdict.points if point.value < point.target), None)
        if first is None or first.count == last.count:
            return ""
        return f"; below {100 * first.target:g} % from {first.at} on ({percent(first.value)})"
    if last.count == verdict.cited.count:
        return ""
    return f", {last.at} {last.text.removesuffix(' (no interval)')}"


def _holes(results: ExperimentResults, verdict: Verdict) -> str:
    """Planned scales of a series without a result: those before the cited one and beyond all."""
    end = verdict.points[-1].count
    gaps = [f"{count:,}" for count in verdict.series.holes if count < verdict.cited.count]
    parts = [f"no result at {listed(gaps)}"] if gaps else []
    planned = max([end, *verdict.series.holes])
    if planned > end:
        why = verdict.series.holes[planned].lower().replace("_", " ")
        parts.append(f"{results.scaled(planned)}: {why}")
    return f" ({'; '.join(parts)})" if parts else ""


def _why_open(verdict: Verdict) -> str:
    if verdict.cited.odd:
        return verdict.cited.odd
    value, low, high = verdict.cited.value, verdict.cited.low, verdict.cited.high
    if low is not None and high is not None and says_nothing(value, low, high):
        return "the repeats are too far apart for one"  # nor does ``percent`` show it
    if verdict.cited.low is not None:
        return f"an interval that includes {100 * verdict.cited.target:g} %"
    return f"but {why_unconfirmed(verdict.lacks)}"


def _from_what(verdict: Verdict) -> str:
    if verdict.lacks == IDENTICAL:
        return "from identical repeats"
    phase, rows = verdict.measure.steady_phase, (verdict.series.rows[0], verdict.cited.row)
    return from_single_runs(*(bool(verdict.measure.without_interval(row, phase)) for row in rows))


def other_phases(results: ExperimentResults) -> list[Finding]:
    """Efficiency at the largest scale in the phases that the verdict is not about."""
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
    """The efficiency of one series in a phase, or the lowest and the highest of several."""
    ordered = sorted(pairs, key=lambda pair: pair[0].value)
    (low, first), (high, _) = ordered[0], ordered[-1]
    base = results.scale_of(first.rows[0])
    ideal = "of the ideal" + (f" (from {results.scaled(base)})" if base != 1 else "")
    verb = "reaches" if low.count == 1 else "reach"
    evidence = evidence_of(results, "scaling", low.row, efficiency_columns(results, phase))
    if len(ordered) == 1:
        who = f", {first.label}" if first.label else ""
        text = f"{PHASES[phase]}{who}: {low.at} {verb} {low.text} {ideal}"
        level = CLEAR if low.side in ("above", "below") else OPEN
        text += "" if low.low is not None else ": not confirmed"
        text += f"; {low.odd}" if low.odd else ""
        if low.side == "straddles":
            text += f"; the interval includes {100 * low.target:g} %"
        numbers = [_number(low)]
    else:
        _, own = common_and_own(results, [first, ordered[-1][1]])
        ends = [f"{point.text} ({label})" for point, label in zip((low, high), own, strict=True)]
        count = counted(len(ordered), "series", "series")
        text = f"{PHASES[phase]}, {count}: {low.at} {verb} {ends[0]} to {ends[1]} {ideal}"
        text += f"; the highest is {high.odd}" if high.odd else ""
        level, numbers = NOTE, [_number(low), _number(high)]
        evidence["figure"] = f"overview-{phase}"
    text = marked(low.row["source"], f"{text}.")
    claims = tuple(point.claim for point, _ in ordered)
    return Finding(results.name, OTHER_PHASES, level, text, evidence, tuple(numbers), claims=claims)


_FIGURES = ("scaling", "overview-")
RULES = (
    Rule(RULE, scaling_verdict, part=VERDICTS, figures=_FIGURES, on_main=True),
    Rule(OTHER_PHASES, other_phases, part=VERDICTS, figures=_FIGURES, on_main=True),
    Rule(STATED, stated_efficiency),
)
