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
from scalesweep.aspects.ranks.stragglers import HIDDEN, Straggler, Times, rank_times, stragglers
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.core.formatting import counted, number, percent, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, NOTE, OPEN, Finding, Rule, marked

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


def slow_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks and hosts that are slower than the others at the largest scales; else that none is.

    One that is slow at several points is named once, at the point where it is slowest.
    """
    causes = results.of(CauseRow)
    looked_at = {(*results.key(row.point, results.axes), row.source) for row in causes}
    named = {int(rank) for row in causes for rank in row.step_ranks.split(", ") if rank}
    every = [
        times for times in rank_times(results)
        # Whose step is long may be who waits in it; causes say whom for.
        if times.kind != STEP
        or (*results.key(times.row, results.axes), times.row["source"]) not in looked_at
    ]  # fmt: skip
    seen: dict[tuple[str, int | None, str | None], list[tuple[Straggler, Times]]] = {}
    for times in every:
        for straggler in stragglers(times):
            if straggler.rank in named:
                continue
            seen.setdefault((times.kind, straggler.rank, straggler.host), []).append(
                (straggler, times)
            )
    ranked = [sorted(slowest, key=_firmness) for slowest in seen.values()]
    ranked.sort(key=lambda slowest: _firmness(slowest[0]))
    slow = [_slow(results, *slowest[0], len(slowest) - 1) for slowest in ranked[:MAX_SENTENCES]]
    if (more := len(ranked) - MAX_SENTENCES) > 0:
        text = f"{counted(more, 'more rank or host is', 'more ranks or hosts are')} slow."
        slow.append(Finding(results.name, RULE, NOTE, text, _evidence(results, None, {})))
    return slow or [_none(results, times) for times in every[:1] if times.ranks > 2 and not named]


def _firmness(stragglers: tuple[Straggler, Times]) -> tuple[bool, float]:
    return not stragglers[0].sure, -stragglers[0].excess


def _evidence(
    results: ExperimentResults, times: Times | None, numbers: dict[str, Any], **key: Any
) -> Any:
    where: dict[str, Any] = {}
    if times is not None:
        where = {name: times.row.get(name) for name in results.axes}
        where |= {"source": times.row["source"], "time": times.kind, **key}
    evidence = {"experiment": results.name, "table": "ranks", "key": where, "numbers": numbers}
    return evidence if times is None else evidence | {"figure": f"ranks-{times.kind}"}


def _slow(results: ExperimentResults, straggler: Straggler, times: Times, more: int) -> Finding:
    """The sentence on a rank or host at a point; ``more`` points at which it is slow too."""
    what = WORDS[times.kind]
    ratio = f"{with_interval(straggler.ratio, straggler.low, straggler.high)} times as long as"
    if straggler.rank is None:
        who = f"host {straggler.host} is slow, not one rank alone: the {what} of its ranks"
        against = (
            f"the median of {straggler.of:,} hosts"
            if straggler.of > 2
            else "that of the other host"
        )
        key: dict[str, Any] = {"host": straggler.host}
    else:
        named = f"rank {straggler.rank}{f' on {straggler.host}' if straggler.host else ''}"
        slow = "a straggler" if straggler.of > 2 else "slower than the other"
        who = f"{named} is {slow}: its {what}"
        against = (
            f"the median of {straggler.of:,} ranks" if straggler.of > 2 else "that of the other"
        )
        key = {"rank": straggler.rank, "host": straggler.host}
    text = f"{who} takes {ratio} {against}"
    span = "an epoch" if times.kind == INPUT else "a step"
    text += f", {percent(straggler.excess)} of {span} more" if times.kind in READING else ""
    text += f", over {counted(straggler.runs, 'run')}" if straggler.runs > 1 else ""
    text += f", at {results.describe(times.row)}" if results.axes else ""
    text += f"; the same at {counted(more, 'other point')}" if more else ""
    victim = times.kind == STEP
    reason = VICTIM if victim else ""  # whose step is long may be who waits in it
    if not straggler.sure:
        reason = "one run" if straggler.runs == 1 else "the interval includes 1"
    numbers = {
        "ratio": straggler.ratio,
        "low": straggler.low,
        "high": straggler.high,
        "runs": straggler.runs,
    }
    evidence = _evidence(results, times, numbers, **key)
    level = CLEAR if straggler.sure and not victim else OPEN
    said = marked(times.row["source"], f"{text}.")
    return Finding(results.name, RULE, level, said, evidence, reason=reason)


def _none(results: ExperimentResults, times: Times) -> Finding:
    """That no rank is slow, and how far the slowest rank is from the others."""
    highest = float(times.middle("slow").max())
    rest = [name for name in results.leaders if name != results.scale]
    where = f" at {results.describe(times.row, rest)}" if rest else ""
    head = f"no straggler among {times.ranks:,} ranks{where}"
    if highest > 1 + NOTABLE:
        head = f"whether one of {times.ranks:,} ranks{where} is a straggler is not decided"
    text = (
        f"{head}: the {WORDS[times.kind]} of the slowest "
        f"takes {number(highest, 4)} times as long as the median"
    )
    text += "" if times.kind in ALONE else f"; {HIDDEN}"
    evidence = _evidence(results, times, {"slow": highest})
    return Finding(results.name, RULE, NOTE, marked(times.row["source"], f"{text}."), evidence)


RULES = (Rule(RULE, slow_ranks, figures=("ranks-",)),)
