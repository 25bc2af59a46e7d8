"""The verdict on a scaling experiment: up to which scale it is efficient, a line per series."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.analysis.repeats import more_repeats
from scalesweep.core.formatting import counted, finite, listed, percent
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import (
    CONFIRMED,
    OPEN,
    Finding,
    evidence_of,
    marked,
    why_unconfirmed,
)
from scalesweep.findings.scaling import GOOD, Efficiency, efficiencies, efficiency_columns

RULE = "verdict"
ABOVE, BELOW, UNDECIDED = "above", "below", "undecided"


@dataclass(frozen=True)
class Verdict:
    """What the efficiencies of a series say of the scale to run at.

    ``kind``: ABOVE (efficient up to the largest measured scale), BELOW (``cited`` is the first
    point clearly under 80 %), UNDECIDED. ``run`` is the scale to run at: the largest that is
    clearly at 80 % or more, else the base.
    """

    series: Series
    kind: str
    run: int
    cited: Efficiency
    points: Sequence[Efficiency]

    @property
    def more(self) -> int | None:
        """Repeats to add until the interval of an undecided point is clear of 80 %; None where they
        are not known, or more than 20."""
        point = self.cited
        if point.low is None or point.high is None or min(point.low, point.value) <= 0:
            return None
        half = math.log(point.high / point.low) / 2
        return more_repeats(half, self.repeats, abs(math.log(point.value / GOOD)))

    @property
    def repeats(self) -> int:
        """Of the cited point or the base, whichever has fewer."""
        counts = [row.get("repeats") for row in (self.series.rows[0], self.cited.row)]
        return min(int(count) if finite(count) else 1 for count in counts)


def verdicts(study: ExperimentResults) -> list[Verdict]:
    """A verdict for each series that has efficiencies, in plan order."""
    if study.main is None:
        return []
    phase = study.main.steady_phase
    found = []
    for series in study.series:
        points = efficiencies(study, series, phase)
        if points:
            found.append(_verdict(study, series, points))
    return found


def _verdict(study: ExperimentResults, series: Series, points: Sequence[Efficiency]) -> Verdict:
    below = next((point for point in points if point.side == "below"), None)
    before = [p for p in points if p.side == "above" and (not below or p.count < below.count)]
    run = before[-1].count if before else study.scale_of(series.rows[0])
    if below is not None:
        return Verdict(series, BELOW, run, below, points)
    if points[-1].side == "above":
        return Verdict(series, ABOVE, run, points[-1], points)
    first = next(point for point in points if point.side != "above")
    return Verdict(series, UNDECIDED, run, first, points)


def verdict_findings(
    study: ExperimentResults, every: Sequence[Verdict], most: int
) -> list[Finding]:
    """At most ``most`` sentences: one per series, or one for all series that say the same."""
    if len(every) <= most:
        return [_sentence(study, [one]) for one in every]
    groups: dict[tuple[object, ...], list[Verdict]] = {}
    for one in every:
        groups.setdefault((one.kind, one.run, one.cited.count, one.cited.row["source"]), []).append(
            one
        )
    several = sorted(groups.values(), key=lambda group: -len(group))
    return [_sentence(study, group) for group in several[:most]]


def _sentence(study: ExperimentResults, group: Sequence[Verdict]) -> Finding:
    """The sentence on series whose verdicts agree; its evidence is the lowest of them."""
    one = min(group, key=lambda verdict: verdict.cited.value)
    point = one.cited
    labels = [verdict.series.label for verdict in group if verdict.series.label]
    if len(group) > 1:
        where = f" in {counted(len(group), 'series', 'series')} ({listed(labels, 3)})"
        top = max(verdict.cited.value for verdict in group)
        reached = f"{100 * point.value:.0f} to {100 * top:.0f} %"
    else:
        where = f", {labels[0]}" if labels else ""
        reached = percent(point.value, point.low, point.high)
    base = study.scale_of(one.series.rows[0])
    ideal = "of the ideal" + (f" (from {study.scaled(base)})" if base != 1 else "")
    verb = "reaches" if point.count == 1 else "reach"
    measured = f"{point.at} {verb} {reached} {ideal}"
    level = CONFIRMED
    if one.kind == ABOVE:
        text = f"run {point.at}{where}, the most that were measured: they {verb} {reached} {ideal}."
    elif one.kind == BELOW:
        text = f"run {study.scaled(one.run)}{where}: {measured}"
        last = one.points[-1]
        if len(group) == 1 and last.count != point.count:
            text += f", {last.at} {percent(last.value, last.low, last.high)}"
        text += "."
    else:
        level = OPEN
        head = f"not decided{where}: " if where else "not decided: "
        text = f"{head}{measured}, {_why_open(study, one)}."
    columns = efficiency_columns(study, study.main.steady_phase if study.main else "run")
    evidence = evidence_of(study, "scaling", point.row, columns)
    if len(group) > 1 and study.main is not None:
        evidence["figure"] = f"overview-{study.main.steady_phase}"
    return Finding(study.name, RULE, level, marked(point.row["source"], text), evidence)


def _why_open(study: ExperimentResults, one: Verdict) -> str:
    if one.cited.low is not None:
        return "an interval that includes 80 %"
    main = study.main
    rows = (one.series.rows[0], one.cited.row)
    why = [main.without_interval(row, main.steady_phase) for row in rows] if main else []
    return f"but {why_unconfirmed(next(filter(None, why), ''))}"
