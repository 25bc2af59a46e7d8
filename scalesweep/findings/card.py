"""The first screen of an experiment: a verdict, its largest loss, what needs a look, what next."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.repeats import LIMIT, more_repeats
from scalesweep.analysis.repeats import MOST as MOST_REPEATS
from scalesweep.core.formatting import counted, finite, percent
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, WARNING, Finding
from scalesweep.findings.efficiency import REST
from scalesweep.findings.efficiency import RULE as LOSS
from scalesweep.findings.family import clear_to
from scalesweep.findings.load import RULE as LOAD
from scalesweep.findings.machine import EXCHANGE
from scalesweep.findings.prediction import RULE as PREDICTION
from scalesweep.findings.prediction import SCORED
from scalesweep.findings.shares import RULE as STATED
from scalesweep.findings.verdict import (
    ABOVE,
    CLOSE,
    IDENTICAL,
    OTHER_PHASES,
    UNDECIDED,
    UNKNOWN,
    Verdict,
    verdicts,
)
from scalesweep.findings.verdict import RULE as VERDICT

# Sentences of a card, what to do next included.
MOST = 5
# Rules whose sentences have a place of their own on a card, or none.
_PLACED = frozenset({VERDICT, STATED, OTHER_PHASES, LOSS, PREDICTION, SCORED, "coverage"})
# Three repeats are the fewest whose interval is of use.
FEWEST = 3
_DO: Mapping[str, str] = {
    "local_batch": "give each rank a larger batch: it is the small one that computes slowly",
    "slower": "compare fewer threads per rank, and look at whether ranks share cores, memory or "
    "disks: each works more slowly than alone",
    "clock": "look at limits of power and heat, and at the frequency governor: cores have a lower "
    "clock than at the reference",
    "input": "compare more parallel reads, more prefetching or a cache",
    "checkpoint": "write checkpoints less often, or beside the steps (asynchronously)",
    "validation": "validate less often, or on fewer samples",
    "logging": "log less often, and on no rank alone",
    "between": "look at what the program does between its steps (callbacks, logging, copies); "
    "`span_checkpoint`, `span_validation` and `span_logging` tell them apart "
    "(docs/methods/time_breakdown.md)",
    "mixed": "remove both reasons: each rank is as late as the others, for a reason of its own",
    "persistent": "look at the figure of the ranks: one rank, or its host, is slow in every step",
    "stalls": "look at what happens in the steps that stall: checkpoints, garbage collection, file "
    "systems, other work on the nodes",
    "alternating": "look for jitter: other work on the nodes, threads that share cores, input that "
    "stalls a rank at a time",
    "transfer": "run with `--config profile=horovod_timeline`: it splits the exchange into "
    "negotiation, queue, copies and reduction",
    "communication": "split it: time stamps of each step, a replay, or Horovod's timeline "
    "(`--config profile=horovod_timeline`) separate waiting for the slowest rank from transfer",
    "barrier": "run longer epochs, or look at what ranks do at their ends",
    "outside": "keep what lies between steps (`span_between`, docs/methods/time_breakdown.md); of "
    "a training by epochs compare the later ones: `main_metric: total_throughput`",
}  # fmt: skip
# What to act on, whatever term it is a cause of.
_ACT_ON = frozenset({"input", "checkpoint", "validation", "logging", "between"})
# Of benchmarks that can do without reading, as the parameter of this name says.
INPUT = "input"
_UNREAD = "; a run whose `input` is not read from files shows what reading costs in all"


@dataclass(frozen=True)
class Next:
    """What to do next; ``repeats`` of the experiment decide it, ``runs`` more of them."""

    text: str
    repeats: int | None = None
    runs: int = 0


@dataclass(frozen=True)
class Card:
    """An experiment on the first screen; ``verdicts`` are what its small figure shows."""

    sentences: Sequence[Finding]
    next: Next | None
    verdicts: Sequence[Verdict]


def card_of(study: ExperimentResults, found: Sequence[Finding]) -> Card:
    """The card of an experiment whose findings are ``found``: at most five sentences.

    Verdict, largest loss, how kept predictions did, what was asked to be predicted, one sentence
    that needs attention and whether other processes disturbed the study, what else is confirmed as
    far as there is room, and what to do next.
    """
    every = verdicts(study, clear_to(found))
    loss = _loss(found)
    attention = _attention(study, found)
    then = _next(study, every, loss, found)
    room = MOST - len(attention) - (then is not None)
    ahead = [one for one in found if one.rule == PREDICTION]
    # What is refused comes behind what is known.
    ahead.sort(key=lambda one: not finite(one.evidence["numbers"].get("value")))
    # How far predictions are to be trusted here comes before any of them.
    ahead = [*(one for one in found if one.rule == SCORED), *ahead]
    lines = [one for one in found if one.rule in (VERDICT, STATED)]
    said = lines[: max(room - (loss is not None) - bool(ahead), 1)]
    said += [loss] if loss else []
    said += ahead[: max(room - len(said), 0)]
    answers = [one for one in found if one.rule not in _PLACED and one not in attention]
    # Where there is no verdict, what is not confirmed, and then what is only noted, is the answer.
    levels = (CONFIRMED,) if lines else (CONFIRMED, OPEN, NOTE)
    more = [one for level in levels for one in answers if one.level == level]
    said += more[: max(room - len(said), 0)]
    return Card([*said, *attention], then, every)


def _attention(study: ExperimentResults, found: Sequence[Finding]) -> list[Finding]:
    """The warning to show, runs without a result first; what is only pending is no warning.

    And always that other processes disturbed runs: all other sentences rest on these.
    """
    lacking = any(run["status"] not in (Status.DONE, Status.NEW) for run in study.entry["runs"])
    those = [one for one in found if one.level == WARNING and (lacking or one.rule != "coverage")]
    load = [one for one in those if one.rule == LOAD]
    others = [one for one in those if one.rule != LOAD]
    return [*sorted(others, key=lambda one: one.rule != "coverage")[:1], *load]


def _loss(found: Sequence[Finding]) -> Finding | None:
    """The loss to name: a confirmed one before others, of the series that is farthest behind."""
    losses = [one for one in found if one.rule == LOSS]
    order = {CONFIRMED: 0, OPEN: 1}

    def rank(one: Finding) -> tuple[int, float]:
        share = one.evidence.get("share")
        return order.get(one.level, 2), float(share) if finite(share) else 1.0

    return min(losses, key=rank, default=None)


def _next(
    study: ExperimentResults,
    every: Sequence[Verdict],
    loss: Finding | None,
    found: Sequence[Finding],
) -> Next | None:
    """What to do next: what is missing first, then what would decide, then what to act on."""
    statuses = [run["status"] for run in study.entry["runs"]]
    if pending := statuses.count(Status.NEW):
        return Next(f"run `snakemake`: {counted(pending, 'run')} of {len(statuses):,} pending.")
    if Status.FAILED in statuses:
        return Next("see why runs failed, below; then run `snakemake`, which repeats these only.")
    if study.control or set(study.sources) == {"imported"}:
        return None
    return _act(study, every, loss, found)


def _act(
    study: ExperimentResults,
    every: Sequence[Verdict],
    loss: Finding | None,
    found: Sequence[Finding],
) -> Next | None:
    """What to do next where all runs that were planned are done."""
    if dips := [dip for one in every for dip in one.dips]:
        dip = min(dips, key=lambda point: point.value)
        return Next(f"find what slows {dip.at} down, where more do better.")
    if every and all(one.kind == ABOVE for one in every):
        last = max(one.cited.count for one in every)
        return Next(f"measure more than {study.scaled(last)}: nothing has stopped scaling yet.")
    if loss and loss.evidence.get("contradicts"):
        return Next(
            "compare the sum of `step_times` with the seconds that were timed: that tells time "
            "outside of the steps from samples that are counted otherwise."
        )
    # A loss that is clear can be acted on, whatever the verdict on 80 % is.
    if loss and loss.level == CONFIRMED and (act := _after_loss(study, loss, found)):
        return act
    if undecided := [one for one in every if one.kind in (UNDECIDED, UNKNOWN)]:
        return _deciding(study, undecided)
    return _after_loss(study, loss, found) if loss else _otherwise(study, every)


def _otherwise(study: ExperimentResults, every: Sequence[Verdict]) -> Next | None:
    """What tells losses where nothing does; more repeats where every point has only one."""
    if every and study.entry.get("noexchange") and not study.rows("efficiency"):
        return Next(
            "run with `--config profile=noexchange`: steps on GPUs have no time stamps, and runs "
            "without exchange separate computation from communication."
        )
    if not every and study.points and all(row.get("repeats") == 1 for row in study.points):
        return _repeat(study, FEWEST - 1, "give every point an interval")
    return None


def _deciding(study: ExperimentResults, undecided: Sequence[Verdict]) -> Next:
    """What decides whether a scale is efficient: repeats where they can, and how many."""
    if odd := [one.cited for one in undecided if one.cited.odd]:
        return Next(f"clear up the efficiency at {odd[0].at}, which is {odd[0].odd}.")
    alone = [one for one in undecided if one.lacks]
    if [one for one in alone if one.lacks != IDENTICAL]:
        few = min(one.repeats for one in alone)
        return _repeat(study, max(FEWEST - few, 1), "give the efficiency an interval")
    if alone:
        return Next(
            "let repeats differ: they are identical (one seed, or a number that does not vary), so "
            "that no number of them gives the efficiency an interval."
        )
    scattered = [one for one in undecided if not one.close]
    if not scattered:
        point = undecided[0].cited
        return Next(
            f"take either: at {point.at} the whole interval of the efficiency, "
            f"{percent(point.value, point.low, point.high)}, lies within {100 * CLOSE:.0f} points "
            "of 80 %."
        )
    counts = [one.more for one in scattered]
    if None not in counts and (most := max(count or 0 for count in counts)) <= MOST_REPEATS:
        return _repeat(study, most, "would decide")
    # The one that needs most.
    worst = max(scattered, key=lambda one: one.more or math.inf)
    return Next(
        f"find what makes the repeats scatter: at {worst.cited.at} they leave the efficiency at "
        f"{percent(worst.cited.value, worst.cited.low, worst.cited.high)}, and "
        f"{_many(worst.more)} would be needed to tell it from 80 %."
    )


def _many(more: int | None) -> str:
    return f"more than {LIMIT:,} more repeats" if more is None else f"about {more:,} more repeats"


def _after_loss(study: ExperimentResults, loss: Finding, found: Sequence[Finding]) -> Next | None:
    """What to do about a loss, or what to measure to know it."""
    term = str(loss.evidence.get("term"))
    if term == REST:
        return Next(
            "run more and longer steps, or `--config profile=cprofile`, to see what takes the "
            "unattributed time."
        )
    if loss.level == CONFIRMED:
        held_back = _held_back(loss, found) if term == "transfer" else None
        also = _UNREAD if term == INPUT and INPUT in study.entry["parameters"] else ""
        cause = loss.evidence.get("cause")
        act = cause if cause in _ACT_ON else term
        return held_back or (Next(f"{_DO[act]}{also}.") if act in _DO else None)
    numbers, repeats = loss.evidence["numbers"], loss.evidence.get("repeats")
    if not finite(repeats):
        return None
    if not finite(numbers.get("low"), numbers.get("high")):
        return _repeat(study, max(FEWEST - int(repeats), 1), "give the losses intervals")
    lead = loss.evidence["lead"]
    known = finite(lead["value"], lead["low"])
    half = lead["value"] - lead["low"] if known else 0.0
    more = more_repeats(half, int(repeats), lead["value"], LIMIT) if known else None
    if more is None or more > MOST_REPEATS:
        return Next(
            f"use longer steps, or steadier runs: {_many(more)} would be needed to tell the "
            "largest loss from the others."
        )
    return _repeat(study, more, "would identify the largest loss")


def _held_back(loss: Finding, found: Sequence[Finding]) -> Next | None:
    """What to do about what holds the exchange of the same point back, where that is known."""
    for one in found:
        same = one.rule == EXCHANGE and one.evidence["key"] == loss.evidence["key"]
        if same and "do" in one.evidence:
            return Next(f"{one.evidence['do']}: {one.evidence['cause']} holds transfer back.")
    return None


def _repeat(study: ExperimentResults, more: int, why: str) -> Next:
    runs = study.entry["runs"]
    repeats = max((int(run["repeat"]) for run in runs), default=0) + 1 + more
    points = len({study.key(run["point"], study.axes) for run in runs})
    text = f"{counted(more, 'more repeat')} {why}."
    return Next(text, repeats, points * more)
