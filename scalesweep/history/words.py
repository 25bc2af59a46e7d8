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


def title_of(one: Judged) -> str:
    """The metric, and the phase where it is not the whole run."""
    phase = "" if one.phase == "run" else f", {PHASES[one.phase]}"
    return f"{one.metric}{phase}"


def place_of(one: Judged) -> str:
    """Where it was measured, and what scaled."""
    scaling = "" if one.scaling == "none" else f", {one.scaling} scaling"
    mark = "" if one.source == "measured" else f" ({one.source})"
    return f"{one.benchmark} on {one.site}{mark}, {one.device.upper()}{scaling}"


def change_of(one: Judged) -> str:
    """How much the newest level differs from the base: ``+10.2 [8.1, 12.3] %``."""
    verdict = one.verdict
    if math.isnan(verdict.ratio):
        return "–"
    text = percent(verdict.ratio - 1, verdict.low - 1, verdict.high - 1)
    return text if text.startswith("-") else f"+{text}"


def range_of(one: Judged) -> str:
    """Between which commits the newest level begins."""
    along, verdict = one.along, one.verdict
    if one.evidence and verdict.ratio == one.evidence.point.ratio:
        return f"{one.evidence.of.base.commit[:10]}..{one.evidence.of.new.commit[:10]}"
    changed = verdict.kind in (REGRESSION, IMPROVEMENT, CONFOUNDED) or verdict.stepped
    return f"{along.first}..{along.last}" if changed and along.last else ""


def sentence_of(one: Judged) -> str:
    """The verdict as a sentence without its first word, which is the verdict itself."""
    verdict = one.verdict
    where = f"{place_of(one)}, {one.point}: {title_of(one)}"
    if verdict.kind == TOO_EARLY:
        more = f"; {counted(verdict.wanted, 'more session')} needed" if verdict.wanted else ""
        return f"{where}: {verdict.reason}{more}."
    if verdict.kind == TREND:
        first, last = (
            one.sessions[side[end]].name for side, end in ((verdict.base, 0), (verdict.new, -1))
        )
        return (
            f"{where}: {change_of(one)} from {first} to {last}, {verdict.reason}: no single step, "
            f"so no single commit.{_weekly(one)}"
        )
    told = f"{where}: {change_of(one)} against {_base(one)}"
    if commits := range_of(one):
        subject = one.sessions[verdict.new[0] if verdict.new else -1].subject
        told += f", since {commits}" + (f" ({subject})" if subject else "")
    told += "."
    if verdict.kind == CONFOUNDED:
        told += f" Not attributable to the commit alone: {verdict.reason}."
    elif verdict.kind == INCONCLUSIVE:
        told += f" {_settling(one)}"
    elif verdict.kind == NO_CHANGE:
        told += f" The interval lies within {percent(one.margin)}."
    if verdict.kind in (REGRESSION, IMPROVEMENT) and not verdict.stepped and not one.evidence:
        told += " The last two sessions; not yet a level of its own."
    if one.evidence:
        told += f" {_alternately(one.evidence)}"
    if one.shown is not None and one.shown.spikes[-1]:
        told += " The newest session is an outlier until a second one confirms it."
    return told + _weekly(one)


def _weekly(one: Judged) -> str:
    """What is said of a weekly cycle; empty without one."""
    if one.shown is None or one.shown.weekly is None:
        return ""
    across = float(one.shown.weekly.max() - one.shown.weekly.min())
    return f" A weekly cycle of {percent(math.expm1(across))} from best to worst day is taken out."


def _alternately(found: Evidence) -> str:
    """What the commits have shown, measured alternately."""
    base, new = (side.commit[:10] for side in (found.of.base, found.of.new))
    text = f"{base} and {new} measured alternately on {found.of.started[:10]}: "
    text += f"{settled_change(found.point)} in {counted(found.point.pairs, 'pair')}, "
    text += f"{found.point.kind}."
    if found.of.first_bad and not found.of.between:
        text += f" The first bad commit is {new} ({found.of.new.subject})."
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


def _base(one: Judged) -> str:
    if one.evidence and one.verdict.ratio == one.evidence.point.ratio:
        return one.evidence.of.base.commit[:10]
    names = [one.sessions[place].name for place in one.verdict.base]
    return f"{names[0]}..{names[-1]}" if len(names) > 1 else names[0]


def _settling(one: Judged) -> str:
    """What would settle an inconclusive verdict."""
    verdict = one.verdict
    why = f"{verdict.reason[:1].upper()}{verdict.reason[1:]}. " if verdict.reason else ""
    ways = []
    if verdict.sessions:
        ways.append(f"{verdict.sessions} sessions of this level (now {len(verdict.new)})")
    if verdict.repeats:
        now = one.values[verdict.new[-1]].size
        ways.append(f"{verdict.repeats} repeats a session (now {now})")
    if not ways:
        return f"{why}More sessions would hardly settle it: the change is close to the margin."
    return f"{why}Likely to settle it: {' or '.join(ways)}."


def line_of(one: Judged) -> str:
    """A line for a terminal."""
    return f"{one.verdict.kind}: {sentence_of(one)}"


def ledger_words(ledger: Mapping[str, tuple[float, float]]) -> list[tuple[str, str, str, str]]:
    """Rows of a ledger: term, ms per step in base and new, and their difference."""
    return [
        (term, number(old), number(new), f"{'-' if new < old else '+'}{number(abs(new - old))}")
        for term, (old, new) in ledger.items()
    ]
