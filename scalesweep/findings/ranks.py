"""Findings on ranks: which are slower than the others, and hosts that are."""

from typing import Any

from scalesweep.analysis.rank_stats import (
    ALONE,
    EPOCH,
    INPUT,
    NOTABLE,
    READING,
    STEP,
    STEP_INPUT,
    STEP_WORK,
    WORK,
)
from scalesweep.core.formatting import counted, number, percent, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_causes import point_causes
from scalesweep.experiment.stragglers import HIDDEN, Straggler, Times, rank_times, stragglers
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding, marked

RULE = "stragglers"
MAX_SENTENCES = 6
# Of step times alone, which hold the waiting for others.
VICTIM = "its steps may be longer because it waits in them for a rank that is late before its own"
# What takes its time.
WORDS = {
    WORK: "own work in an epoch",
    INPUT: "wait for input in an epoch",
    STEP_WORK: "own work in a step",
    STEP_INPUT: "wait for input in a step",
    STEP: "step",
    EPOCH: "epoch",
}


def slow_ranks(study: ExperimentResults) -> list[Finding]:
    """Ranks and hosts that are slower than the others at the largest scales; else that none is.

    One that is slow at several points is named once, at the point where it is slowest.
    """
    looked_at = {
        (*study.key(point.row, study.axes), point.row["source"]) for point in point_causes(study)
    }
    named = {rank for point in point_causes(study) for one in point.causes for rank in one.ranks}
    every = [
        times for times in rank_times(study)
        # Whose step is long may be who waits in it; causes say whom for.
        if times.kind != STEP
        or (*study.key(times.row, study.axes), times.row["source"]) not in looked_at
    ]  # fmt: skip
    seen: dict[tuple[str, int | None, str | None], list[tuple[Straggler, Times]]] = {}
    for times in every:
        for one in stragglers(times):
            if one.rank in named:
                continue
            seen.setdefault((times.kind, one.rank, one.host), []).append((one, times))
    ranked = [sorted(found, key=_firmness) for found in seen.values()]
    ranked.sort(key=lambda found: _firmness(found[0]))
    slow = [_slow(study, *found[0], len(found) - 1) for found in ranked[:MAX_SENTENCES]]
    if (more := len(ranked) - MAX_SENTENCES) > 0:
        text = f"{counted(more, 'more rank or host is', 'more ranks or hosts are')} slow."
        slow.append(Finding(study.name, RULE, NOTE, text, _evidence(study, None, {})))
    return slow or [_none(study, times) for times in every[:1] if times.ranks > 2 and not named]


def _firmness(found: tuple[Straggler, Times]) -> tuple[bool, float]:
    return not found[0].sure, -found[0].excess


def _evidence(
    study: ExperimentResults, times: Times | None, numbers: dict[str, Any], **key: Any
) -> Any:
    where: dict[str, Any] = {}
    if times is not None:
        where = {name: times.row.get(name) for name in study.axes}
        where |= {"source": times.row["source"], "time": times.kind, **key}
    found = {"experiment": study.name, "table": "ranks", "key": where, "numbers": numbers}
    return found if times is None else found | {"figure": f"ranks-{times.kind}"}


def _slow(study: ExperimentResults, one: Straggler, times: Times, more: int) -> Finding:
    """The sentence on a rank or host at a point; ``more`` points at which it is slow too."""
    what = WORDS[times.kind]
    ratio = f"{with_interval(one.ratio, one.low, one.high)} times as long as"
    if one.rank is None:
        who = f"host {one.host} is slow, not one rank alone: the {what} of its ranks"
        against = f"the median of {one.of:,} hosts" if one.of > 2 else "that of the other host"
        key: dict[str, Any] = {"host": one.host}
    else:
        named = f"rank {one.rank}{f' on {one.host}' if one.host else ''}"
        who = f"{named} is {'a straggler' if one.of > 2 else 'slower than the other'}: its {what}"
        against = f"the median of {one.of:,} ranks" if one.of > 2 else "that of the other"
        key = {"rank": one.rank, "host": one.host}
    text = f"{who} takes {ratio} {against}"
    span = "an epoch" if times.kind == INPUT else "a step"
    text += f", {percent(one.excess)} of {span} more" if times.kind in READING else ""
    text += f", over {counted(one.runs, 'run')}" if one.runs > 1 else ""
    text += f", at {study.describe(times.row)}" if study.axes else ""
    text += f"; the same at {counted(more, 'other point')}" if more else ""
    victim = times.kind == STEP
    if not one.sure:
        text += "; one run, not confirmed" if one.runs == 1 else "; not confirmed by the interval"
    elif victim:  # whose step is long may be who waits in it
        text += f"; not confirmed: {VICTIM}"
    numbers = {"ratio": one.ratio, "low": one.low, "high": one.high, "runs": one.runs}
    evidence = _evidence(study, times, numbers, **key)
    level = CONFIRMED if one.sure and not victim else OPEN
    return Finding(study.name, RULE, level, marked(times.row["source"], f"{text}."), evidence)


def _none(study: ExperimentResults, times: Times) -> Finding:
    """That no rank is slow, and how far the slowest rank is from the others."""
    highest = float(times.middle("slow").max())
    rest = [name for name in study.leaders if name != study.scale]
    where = f" at {study.describe(times.row, rest)}" if rest else ""
    head = f"no straggler among {times.ranks:,} ranks{where}"
    if highest > 1 + NOTABLE:
        head = f"whether one of {times.ranks:,} ranks{where} is a straggler is not decided"
    text = (
        f"{head}: the {WORDS[times.kind]} of the slowest "
        f"takes {number(highest, 4)} times as long as the median"
    )
    text += "" if times.kind in ALONE else f"; {HIDDEN}"
    evidence = _evidence(study, times, {"slow": highest})
    return Finding(study.name, RULE, NOTE, marked(times.row["source"], f"{text}."), evidence)
