"""Findings on efficiency: at the largest rank count, and where it falls under 80 %."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import PHASES, counted, finite, listed, percent
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    Finding,
    evidence_of,
    marked,
    why_unconfirmed,
)

GOOD = 0.8
MAX_SERIES_SENTENCES, MAX_THRESHOLD_SENTENCES = 4, 6


@dataclass(frozen=True)
class Efficiency:
    """Total efficiency of a point: value and 95 % interval (None where there is none)."""

    row: Row
    count: int  # of ranks, or of devices
    at: str  # the same in words
    value: float
    low: float | None
    high: float | None

    @property
    def side(self) -> str:
        """``above`` or ``below`` 80 %, ``straddles`` it, or ``~above``/``~below`` unconfirmed."""
        if self.low is None or self.high is None:
            return "~below" if self.value < GOOD else "~above"
        if self.high < GOOD:
            return "below"
        return "above" if self.low >= GOOD else "straddles"

    @property
    def text(self) -> str:
        """The efficiency with its interval, or with a word on what it lacks."""
        unsure = "" if self.low is not None else " (no interval)"
        return f"{percent(self.value, self.low, self.high)}{unsure}"


def efficiencies(study: ExperimentResults, series: Series, phase: str) -> list[Efficiency]:
    """Efficiencies of a series without its base, by scale."""
    stem = _stem(study)
    found = []
    for row in series.rows[1:]:
        value, low, high = (
            row.get(column(f"{stem}_{part}", "", phase)) for part in ("eff", "eff_low", "eff_high")
        )
        if finite(value):
            known = finite(low, high)
            found.append(
                Efficiency(
                    row,
                    study.scale_of(row),
                    study.scaled(study.scale_of(row)),
                    value,
                    low if known else None,
                    high if known else None,
                )
            )
    return found


def _stem(study: ExperimentResults) -> str:
    metric = study.main.metric if study.main else ""
    return "total" if metric == "total_throughput" else metric


def efficiency_columns(study: ExperimentResults, phase: str) -> list[str]:
    """Columns of the efficiency and its interval in the table ``scaling``."""
    return [column(f"{_stem(study)}_{part}", "", phase) for part in ("eff", "eff_low", "eff_high")]


def efficiency_at_largest(study: ExperimentResults) -> list[Finding]:
    """Efficiency at the largest finished rank count of each series, in each phase.

    Of many series only the lowest and the highest are named.
    """
    if study.main is None:
        return []
    if len(study.series) > MAX_SERIES_SENTENCES:
        return [f for phase in study.main.phases for f in _efficiency_range(study, phase)]
    found = []
    for series in study.series:
        parts: list[str] = []
        evidence: dict[str, Any] = {}
        end = study.scale_of(series.rows[-1])
        sure, one_sided, unsure = True, True, ""
        for phase in study.main.phases:
            points = efficiencies(study, series, phase)
            if points and points[-1].count == end:
                parts.append(f"{points[-1].text} in the {PHASES[phase]}")
                if points[-1].low is None:
                    sure, unsure = False, _why(study, series, phase)
                one_sided = one_sided and points[-1].side != "straddles"
                columns = [*evidence.get("numbers", {}), *efficiency_columns(study, phase)]
                evidence = evidence_of(study, "scaling", points[-1].row, columns)
        if not parts:
            continue
        planned = max([end, *series.holes])
        beyond = (
            f" ({study.scaled(planned)}: {series.holes[planned].lower().replace('_', ' ')})"
            if planned > end
            else ""
        )
        text = (
            f"{_prefix(series)}efficiency at {study.scaled(end)}, relative to "
            f"{study.scaled(study.scale_of(series.rows[0]))}: {' and '.join(parts)}{beyond}"
            f"{'' if sure else f'; not confirmed, {unsure}'}"
            f"{'' if one_sided else '; an interval includes 80 %'}."
        )
        source = series.rows[-1]["source"]
        level = CONFIRMED if sure and one_sided else OPEN
        found.append(
            Finding(
                study.name, "efficiency", level, marked(source, text, not series.label), evidence
            )
        )
    return found


def _why(study: ExperimentResults, series: Series, phase: str) -> str:
    """Why the efficiency at the largest scale of a series has no interval."""
    main = study.main
    sides = (series.rows[0], series.rows[-1])
    found = [why for row in sides if main and (why := main.without_interval(row, phase))]
    return why_unconfirmed(next(iter(found), ""))


def _efficiency_range(study: ExperimentResults, phase: str) -> list[Finding]:
    """The lowest and the highest efficiency among the series at their largest rank counts.

    Series with bases of different scales do not compare: each kind has its own range.
    """
    by_base: dict[int, list[tuple[Efficiency, Series]]] = {}
    for series in study.series:
        if points := efficiencies(study, series, phase):
            base = study.scale_of(series.rows[0])
            by_base.setdefault(base, []).append((points[-1], series))
    found = []
    for base, last in sorted(by_base.items()):
        last.sort(key=lambda pair: pair[0].value)
        (low, low_series), (high, high_series) = last[0], last[-1]
        text = (
            f"{PHASES[phase]}: efficiency of {counted(len(last), 'series', 'series')} at the "
            f"largest {study.scale_words} of each, relative to {study.scaled(base)}, lies between "
            f"{low.text} ({low_series.label}, {low.at}) and {high.text} ({high_series.label}, "
            f"{high.at})."
        )
        evidence = evidence_of(study, "scaling", low.row, efficiency_columns(study, phase))
        evidence["figure"] = f"overview-{phase}"
        sources = listed(sorted({str(pair[0].row["source"]) for pair in last}))
        found.append(Finding(study.name, "efficiency", NOTE, marked(sources, text), evidence))
    return found


def _prefix(series: Series) -> str:
    return f"{series.label}: " if series.label else ""


def efficiency_threshold(study: ExperimentResults) -> list[Finding]:
    """The largest rank count with efficiency over 80 %, and where it first falls under that.

    Series and phases of which the same can be said share a sentence.
    """
    if study.main is None:
        return []
    # Series -> sentence, level, source -> phases and the decisive point.
    same: dict[tuple[str, str, str, tuple[str, ...]], list[tuple[Series, Efficiency]]] = {}
    for series in study.series:
        told: dict[tuple[str, str], tuple[list[str], Efficiency]] = {}
        for phase in study.main.phases:
            points = efficiencies(study, series, phase)
            if points:
                text, level, point = _threshold(study, points, series.holes)
                told.setdefault((text, level), ([], point))[0].append(phase)
        for (text, level), (phases, point) in told.items():
            key = (text, level, str(point.row["source"]), tuple(phases))
            same.setdefault(key, []).append((series, point))
    found = []
    for (text, level, source, among), members in same.items():
        words = " and ".join(PHASES[phase] for phase in among)
        labels = [series.label for series, _ in members if series.label]
        who = labels[0] if len(labels) == 1 else f"{len(labels)} series ({listed(labels, 3)})"
        sentence = f"{f'{who}: ' if labels else ''}{words}: {text}."
        columns = [name for phase in among for name in efficiency_columns(study, phase)]
        evidence = evidence_of(study, "scaling", members[0][1].row, columns)
        if len(members) > 1:
            evidence["figure"] = f"overview-{among[-1]}"
        found.append(
            Finding(study.name, "threshold", level, marked(source, sentence, not labels), evidence)
        )
    left = len(found) - MAX_THRESHOLD_SENTENCES
    if left > 0:
        text = f"{left:,} more findings on the 80 % threshold: see the scaling table."
        evidence = {"experiment": study.name, "table": "scaling"}
        found = [
            *found[:MAX_THRESHOLD_SENTENCES],
            Finding(study.name, "threshold", NOTE, text, evidence),
        ]
    return found


def _threshold(
    study: ExperimentResults, points: Sequence[Efficiency], holes: Mapping[int, str]
) -> tuple[str, str, Efficiency]:
    """Sentence, level and decisive point for efficiencies sorted by scale."""
    last = points[-1]
    first = next((p for p in points if p.side not in ("above", "~above")), None)
    if first is None:
        gap = _gap(holes, 0, last.count)
        if all(p.side == "above" for p in points):
            text = f"efficiency stays above 80 % up to {last.at}{gap}, the largest measured"
            return text, CONFIRMED, last
        text = f"measured efficiency stays above 80 % up to {last.at}{gap}"
        return f"{text}, not confirmed where there is no interval", OPEN, last
    before = max([p.count for p in points if p.count < first.count], default=0)
    at = f"at {first.at} ({first.text})" + _gap(holes, before, first.count)
    after = points[points.index(first) + 1 :]
    if first.side == "below":
        return f"{_over(study, points)}efficiency first falls under 80 % {at}", CONFIRMED, first
    if first.side == "~below":
        text = f"measured efficiency first falls under 80 % {at}; a single run, not confirmed"
        if all(p.side.startswith("~") for p in points):  # nothing can be clear of anything
            return text, OPEN, first
    else:
        text = f"the interval of the efficiency includes 80 % {at}"
    text = f"{_over(study, points)}{text}"
    clear = next((p for p in after if p.side == "below"), None)
    if clear is not None:
        return f"{text}; clearly under from {clear.at} ({clear.text})", OPEN, first
    return f"{text}; not clearly under 80 % at any {study.scale_words}", OPEN, first


def _over(study: ExperimentResults, points: Sequence[Efficiency]) -> str:
    """The largest scale whose interval lies over 80 %, as the beginning of a sentence."""
    best = next((p for p in reversed(points) if p.side == "above"), None)
    if best is None:
        return ""
    return (
        f"largest {study.scale_words} with efficiency clearly over 80 %: {best.text} at {best.at}; "
    )


def _gap(holes: Mapping[int, str], low: int, high: int) -> str:
    """Planned rank counts (or numbers of devices) between two others that have no result."""
    inside = [f"{count:,}" for count in holes if low < count < high]
    return f" (no result at {listed(inside)})" if inside else ""
