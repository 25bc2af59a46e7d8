"""A verdict in words: for the page, and a line for a terminal."""

import math
from collections.abc import Mapping

from scalesweep.analysis.verdicts import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
    TREND,
)
from scalesweep.core.formatting import PHASES, counted, number, percent
from scalesweep.history.judged import Judged
from scalesweep.history.settled import Evidence, Settled, SettledPoint


def title_of(series: Judged) -> str:
    """The metric, and the phase where it is not the whole run."""
    phase = "" if series.phase == "run" else f", {PHASES[series.phase]}"
    return f"{series.metric}{phase}"


def place_of(series: Judged) -> str:
    """Where it was measured, and what scaled."""
    scaling = "" if series.scaling == "none" else f", {series.scaling} scaling"
    mark = "" if series.source == "measured" else f" ({series.source})"
    return f"{series.benchmark} on {series.site}{mark}, {series.device.upper()}{scaling}"


def change_of(series: Judged) -> str:
    """How much the newest level differs from the base: ``+10.2 [8.1, 12.3] %``."""
    verdict = series.verdict
    if math.isnan(verdict.ratio):
        return "–"
    text = percent(verdict.ratio - 1, verdict.low - 1, verdict.high - 1)
    return text if text.startswith("-") else f"+{text}"


def range_of(series: Judged) -> str:
    """Between which commits the newest level begins."""
    along, verdict = series.along, series.verdict
    if series.evidence and verdict.ratio == series.evidence.point.ratio:
        return f"{series.evidence.of.base.commit[:10]}..{series.evidence.of.new.commit[:10]}"
    changed = verdict.kind in (REGRESSION, IMPROVEMENT, CONFOUNDED) or verdict.stepped
    return f"{along.first}..{along.last}" if changed and along.last else ""


def sentence_of(series: Judged) -> str:
    """The verdict as a sentence without its first word, which is the verdict itself."""
    verdict = series.verdict
    where = f"{place_of(series)}, {series.point}: {title_of(series)}"
    if verdict.kind == TOO_EARLY:
        more = f"; {counted(verdict.wanted, 'more session')} needed" if verdict.wanted else ""
        return f"{where}: {verdict.reason}{more}."
    if verdict.kind == TREND:
        first, last = (
            series.sessions[side[end]].name for side, end in ((verdict.base, 0), (verdict.new, -1))
        )
        return (
            f"{where}: {change_of(series)} from {first} to {last}, {verdict.reason}: "
            f"no single step, so no single commit.{_weekly(series)}"
        )
    text = f"{where}: {change_of(series)} against {_base(series)}"
    if commits := range_of(series):
        subject = series.sessions[verdict.new[0] if verdict.new else -1].subject
        text += f", since {commits}" + (f" ({subject})" if subject else "")
    text += "."
    if verdict.kind == CONFOUNDED:
        text += f" Not attributable to the commit alone: {verdict.reason}."
    elif verdict.kind == INCONCLUSIVE:
        text += f" {_settling(series)}"
    elif verdict.kind == NO_CHANGE:
        text += f" The interval lies within {percent(series.margin)}."
    if verdict.kind in (REGRESSION, IMPROVEMENT) and not verdict.stepped and not series.evidence:
        text += " The last two sessions; not yet a level of its own."
    if series.evidence:
        text += f" {_alternately(series.evidence)}"
    if series.shown is not None and series.shown.spikes[-1]:
        text += " The newest session is an outlier until a second one confirms it."
    return text + _weekly(series)


def _weekly(series: Judged) -> str:
    """What is said of a weekly cycle; empty without one."""
    if series.shown is None or series.shown.weekly is None:
        return ""
    across = float(series.shown.weekly.max() - series.shown.weekly.min())
    return f" A weekly cycle of {percent(math.expm1(across))} from best to worst day is taken out."


def _alternately(evidence: Evidence) -> str:
    """What the commits have shown, measured alternately."""
    base, new = (side.commit[:10] for side in (evidence.of.base, evidence.of.new))
    text = f"{base} and {new} measured alternately on {evidence.of.started[:10]}: "
    text += f"{settled_change(evidence.point)} in {counted(evidence.point.pairs, 'pair')}, "
    text += f"{evidence.point.kind}."
    if evidence.of.first_bad and not evidence.of.between:
        text += f" The first bad commit is {new} ({evidence.of.new.subject})."
    return text


def settled_line(settled: Settled, point: SettledPoint) -> str:
    """A line for a terminal on commits that no session has yet."""
    where = f"{point.benchmark} on {point.site}, {point.label or 'the only point'}"
    base, new = settled.base.commit[:10], settled.new.commit[:10]
    return (
        f"{point.kind}: {where}: {point.metric}: {settled_change(point)} from {base} to {new} "
        f"({settled.new.subject}), measured alternately on {settled.started[:10]}."
    )


def settled_change(point: SettledPoint) -> str:
    """How much the new commit differs from the base: ``+49.8 [48.9, 50.7] %``."""
    if point.ratio is None:
        return "–"
    ends = [None if end is None else end - 1 for end in (point.low, point.high)]
    text = percent(point.ratio - 1, *ends)
    return text if text.startswith("-") else f"+{text}"


def _base(series: Judged) -> str:
    if series.evidence and series.verdict.ratio == series.evidence.point.ratio:
        return series.evidence.of.base.commit[:10]
    names = [series.sessions[place].name for place in series.verdict.base]
    return f"{names[0]}..{names[-1]}" if len(names) > 1 else names[0]


def _settling(series: Judged) -> str:
    """What would settle an inconclusive verdict."""
    verdict = series.verdict
    why = f"{verdict.reason[:1].upper()}{verdict.reason[1:]}. " if verdict.reason else ""
    ways = []
    if verdict.sessions:
        ways.append(f"{verdict.sessions} sessions of this level (now {len(verdict.new)})")
    if verdict.repeats:
        now = series.values[verdict.new[-1]].size
        ways.append(f"{verdict.repeats} repeats a session (now {now})")
    if not ways:
        return f"{why}More sessions would hardly settle it: the change is close to the margin."
    return f"{why}Likely to settle it: {' or '.join(ways)}."


def line_of(series: Judged) -> str:
    """A line for a terminal."""
    return f"{series.verdict.kind}: {sentence_of(series)}"


def ledger_words(ledger: Mapping[str, tuple[float, float]]) -> list[tuple[str, str, str, str]]:
    """Rows of a ledger: term, ms per step in base and new, and their difference."""
    return [
        (term, number(old), number(new), f"{'-' if new < old else '+'}{number(abs(new - old))}")
        for term, (old, new) in ledger.items()
    ]
