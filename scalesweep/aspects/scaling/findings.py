"""The verdict on a scaling experiment: up to which scale it is efficient, a line per series, in the
phase that runs are compared in."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from scalesweep.analysis.multiple import VERDICTS
from scalesweep.analysis.sequential import more_repeats
from scalesweep.core.formatting import counted, finite, listed, text_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    REPEAT,
    SAME,
    SILENT,
    VARY,
    Claim,
    Finding,
    Rule,
    claim_of,
    evidence_of,
    number_of,
)
from scalesweep.findings.totals import APART, apart_of, unsure

# From this on an efficiency is no result to go by: published tables have such rows where the base
# and the larger scale were not measured alike. Caches alone make of strong scaling 1.1 or 1.2.
BEYOND = 1.3
BEYOND_WHY = (
    "more than the ideal, so the base or this scale did other work or ran under other conditions "
    "(caches, files, clocks): check both"
)
# No scale makes ranks so much slower than the one before: units of 1,000 do.
JUMP = 300.0
JUMP_WHY = (
    f"less than 1/{JUMP:.0f} of what the scale before reaches, as by a change of unit (thousands "
    "of images): check what the program prints"
)
RULE = "verdict"
ABOVE, BELOW, UNDECIDED = "above", "below", "undecided"
# So many series have a line each; of more, those that say the same share one.
EACH, MOST_LINES = 2, 6
LEAST_REPEATS = 3
EITHER = "take either scale: repeats would not decide, unless what scatters is found"
# That these change along a series is what scaling means.
GO_WITH_SCALE = frozenset({"nodes", "ranks_per_node", "batch_size", "global_batch_size"})


@dataclass(frozen=True)
class Efficiency:
    """Total efficiency of a point: value and 95 % interval (None if there is none).

    ``said``: the interval that decides on which side of the target it is, which sentences print.
    """

    row: Row
    count: int  # of ranks, or of devices
    at: str  # the same in words
    value: float
    low: float | None
    high: float | None
    claim: Claim  # that it is not the target
    how: str  # why it has no interval
    target: float
    said: tuple[float, float] | None = None
    jump: bool = False  # whether it is far below that of the scale before
    apart: float = 0.0  # share by which ranks differ in what they print of the same total

    @property
    def odd(self) -> str:
        """Why it is no result to go by; empty if it is one."""
        if self.value > BEYOND and (self.low is None or self.low > 1):
            return BEYOND_WHY
        if self.jump:
            return JUMP_WHY
        low, high = self.value if self.low is None else self.low, self.high or self.value
        held = low / (1 + self.apart) >= self.target or high * (1 + self.apart) < self.target
        if self.apart > APART or (self.apart and not held):
            return f"not certain: {unsure(self.apart)}"
        return ""

    @property
    def side(self) -> str:
        """``above`` or ``below`` the target, ``straddles`` it, or ``~above``/``~below`` without an
        interval; ``odd`` where it is no result."""
        if self.odd:
            return "odd"
        if self.said is None:
            return "~below" if self.value < self.target else "~above"
        if self.said[1] < self.target:
            return "below"
        return "above" if self.said[0] >= self.target else "straddles"


@dataclass(frozen=True)
class Verdict:
    """What the efficiencies of a series say of the scale to run at.

    ``run`` is the scale to run at: the largest that clearly reaches the target, else the ``base``.
    ``kind``: ABOVE (that is the largest measured scale), BELOW (``cited`` is the first point beyond
    it that is clearly under the target), UNDECIDED (``cited`` is the first whose interval includes
    it, that is below without one, or ``odd``; else, or if no point has an interval, the largest).
    """

    series: Series
    measure: Measure
    kind: str
    base: int
    run: int
    cited: Efficiency
    points: Sequence[Efficiency]

    @property
    def clear(self) -> bool:
        """Whether it is clear on which side of the target the cited point is."""
        return self.kind in (ABOVE, BELOW)

    @property
    def held(self) -> Efficiency | None:
        """The largest scale that reaches the target, unless the verdict is clear as far as is known
        without an interval too; None: it is the base."""
        sides = ("above",) if self.clear else ("above", "~above")
        return next((point for point in reversed(self.points) if point.side in sides), None)

    @property
    def held_at(self) -> int:
        """Its ranks (or devices)."""
        return self.held.count if self.held else self.base

    @property
    def beyond(self) -> Efficiency | None:
        """The next scale; None: it is the largest that ran."""
        return next((point for point in self.points if point.count > self.held_at), None)

    @property
    def fails(self) -> Efficiency | None:
        """The scale beyond that is shown beside it: if the verdict is clear, the one it cites."""
        return self.cited if self.kind == BELOW else self.beyond

    @property
    def why(self) -> str:
        """Why it is not; empty if it is."""
        point = self.cited
        if self.clear or point.odd:
            return point.odd if not self.clear else ""
        known = point.low is not None
        return f"the interval includes {100 * point.target:g} %" if known else point.how

    def repeats_for(self, point: Efficiency) -> int | None:
        """How many more repeats would decide on which side of the target a point is; None if more
        than twice as many again as there are."""
        counts = [row.get("repeats") for row in (self.series.rows[0], point.row)]
        repeats = min(int(count) if finite(count) else 1 for count in counts)
        if repeats < LEAST_REPEATS or not point.low or not point.high:
            return max(1, LEAST_REPEATS - repeats)
        half = math.log(point.high / point.low) / 2
        return more_repeats(
            half, repeats, abs(math.log(point.value / point.target)), most=2 * repeats
        )

    @property
    def next(self) -> str:
        """What would decide: repeats, if at most twice as many again do; empty if it is clear."""
        point = self.cited
        if self.clear or point.odd:
            return "compare the logs of both scales" if point.odd else ""
        if self.why == SAME:
            return VARY
        more = self.repeats_for(point)
        if more is None:
            return EITHER
        if point.row.get("source") == "imported":
            return f"import {counted(more, 'more repeat')} of each point"
        runs = counted(more * (1 + len(self.points)), "run")
        return f"add {counted(more, 'repeat')} ({runs} of this series): `repeats` in the campaign"


def efficiencies(results: ExperimentResults, series: Series, phase: str) -> list[Efficiency]:
    """Efficiencies of a series without its base, by scale, as the table of comparisons has them."""
    measure = results.scaled_measure
    if measure is None:
        return []
    apart = apart_of(results, measure.metric)
    before, jump = 1.0, False
    points = []
    for row in series.rows[1:]:
        known = results.shares.get((results.key(row), row["source"], measure.metric, phase))
        if known is None or known.ratio is None:
            continue
        value, low, high = known.ratio.value, known.ratio.low, known.ratio.high
        jump = value < before / JUMP or (jump and value < before * JUMP)
        before = value
        said = (known.decides_low, known.decides_high)
        points.append(
            Efficiency(
                row, results.scale_of(row), results.scaled(results.scale_of(row)),
                value, low, high,
                claim_of(known.p, "efficiency", phase, known.point_id, known.base_id),
                known.how, results.target,
                None if said[0] is None or said[1] is None else (said[0], said[1]),
                jump, apart,
            )
        )  # fmt: skip
    return points


def verdicts(results: ExperimentResults) -> list[Verdict]:
    """A verdict for each series that has efficiencies, in plan order."""
    measure = results.scaled_measure
    if measure is None:
        return []
    known = [(s, efficiencies(results, s, measure.steady_phase)) for s in results.series]
    return [_verdict(results, measure, series, points) for series, points in known if points]


def _verdict(
    results: ExperimentResults, measure: Measure, series: Series, points: Sequence[Efficiency]
) -> Verdict:
    above = [point.count for point in points if point.side == "above"]
    base = results.scale_of(series.rows[0])
    run = above[-1] if above else base
    under = [point for point in points if point.side == "below" and point.count > run]
    if under:
        kind, cited = BELOW, under[0]
    elif points[-1].side == "above":
        kind, cited = ABOVE, points[-1]
    else:
        unclear = [point for point in points if point.side not in ("above", "below", "~above")]
        known = any(point.low is not None for point in points)
        kind, cited = UNDECIDED, unclear[0] if known and unclear else points[-1]
    return Verdict(series, measure, kind, base, run, cited, points)


def scaling_verdict(results: ExperimentResults) -> list[Finding]:
    """A sentence per series, or one for all series that say the same where there are many; and that
    every efficiency was held against the target, also those of which nothing is said."""
    every = verdicts(results)
    claims = tuple(point.claim for verdict in every for point in verdict.points)
    tested = [Finding(results.name, RULE, SILENT, claims=claims)] if claims else []
    groups: dict[Hashable, list[Verdict]] = {}
    for place, verdict in enumerate(every):
        key = (verdict.kind, verdict.run, verdict.cited.count, verdict.cited.row["source"])
        groups.setdefault(key if len(every) > EACH else place, []).append(verdict)
    several = sorted(groups.values(), key=lambda group: -len(group))
    findings = [_said(results, group) for group in several[:MOST_LINES]]
    if left := sum(len(group) for group in several[MOST_LINES:]):
        numbers = (number_of("series", left, "1"),)
        evidence = {"table": "scaling", "key": {}}
        findings.append(Finding(results.name, RULE, NOTE, numbers=numbers, evidence=evidence))
    return [*findings, *tested]


def _said(results: ExperimentResults, group: Sequence[Verdict]) -> Finding:
    """The sentence on series whose verdicts agree, of the lowest of them."""
    lowest = min(group, key=lambda verdict: verdict.cited.value)
    point, base = lowest.cited, lowest.base
    scales = lowest.run != base or lowest.kind == ABOVE
    holes = [results.scaled(count) for count in sorted(lowest.series.holes)]
    return Finding(
        results.name, RULE, CLEAR if lowest.clear else OPEN,
        subject=_whom(results, [verdict.series for verdict in group]),
        words={
            "up_to": f"efficient up to {results.scaled(lowest.run)}" if scales
            else "does not scale",
            "at": f"{point.at} (the lowest of {len(group):,})" if len(group) > 1 else point.at,
            "base": f", relative to {results.scaled(base)}" if base != 1 else "",
        },
        numbers=(
            number_of("efficient up to", lowest.run, results.scale),
            number_of("efficiency", point.value, "1", *(point.said or (None, None))),
        ),
        reason=lowest.why, next=lowest.next,
        flags=(
            *_confounded(results, lowest), *([f"no result at {listed(holes)}"] if holes else [])
        ),
        claims=tuple(
            each.claim for verdict in group for each in verdict.points
            if each.count in (verdict.run, verdict.cited.count)
        ),
        evidence=evidence_of(results, "scaling", point.row)
        | {"figure": f"scaling-{lowest.measure.steady_phase}"},
    )  # fmt: skip


def _whom(results: ExperimentResults, series: Sequence[Series]) -> str:
    """Which series: ``batch_size 2``, ``4 series (model a, model b, model c, ...)``; empty where
    there is one only."""
    labels, count = [each.label for each in series], counted(len(series), "series", "series")
    if len(series) == 1:
        return labels[0]
    if len(series) == len(results.series):
        return f"All {count}"
    return f"{count} ({listed(labels, 3)})"


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


RULES = (
    Rule(
        RULE, scaling_verdict, part=VERDICTS,
        says={
            CLEAR: "{subject}: {up_to}; efficiency at {at}{base}: {efficiency:%}.",
            OPEN: "{subject}: not decided; efficiency at {at}{base}: {efficiency:%}.",
            NOTE: "More series, in the table of scaling: {series}.",
        },
        next=REPEAT,
    ),
)  # fmt: skip
