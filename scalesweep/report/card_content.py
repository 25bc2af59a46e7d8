"""The first screen of an experiment: a verdict, its largest loss, what needs a look, what next."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.repeats import LIMIT, more_repeats
from scalesweep.analysis.repeats import MOST as MOST_REPEATS
from scalesweep.aspects.breakdown.losses import REST
from scalesweep.aspects.breakdown.losses import RULE as LOSS
from scalesweep.aspects.breakdown.machine import EXCHANGE
from scalesweep.aspects.layouts.card import layout_card
from scalesweep.aspects.layouts.findings import BEST as BEST_LAYOUT
from scalesweep.aspects.layouts.findings import OF_LAYOUTS
from scalesweep.aspects.prediction.findings import RULE as PREDICTION
from scalesweep.aspects.prediction.findings import SCORED
from scalesweep.aspects.scaling.findings import (
    ABOVE,
    CLOSE,
    IDENTICAL,
    OTHER_PHASES,
    UNDECIDED,
    UNKNOWN,
    Verdict,
    verdicts,
)
from scalesweep.aspects.scaling.findings import RULE as VERDICT
from scalesweep.aspects.scaling.shares import RULE as STATED
from scalesweep.core.formatting import counted, duration, finite, percent
from scalesweep.core.joined_experiments import BENCHMARK
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, CLEAR, NOTE, OPEN, Finding
from scalesweep.report.efficiency_chart import efficiency_chart
from scalesweep.report.links import Anchors, evidence_links
from scalesweep.tables.provenance import RunFacts


def card_section(
    plan: Plan,
    results: ExperimentResults,
    findings: Sequence[Finding],
    there: Anchors,
    facts: Mapping[str, RunFacts],
) -> dict[str, Any]:
    """The card of an experiment for the template: sentences with links, next step, figure."""
    card = card_of(results, findings)
    layouts = layout_card(results, findings)
    return {
        "layouts": layouts,
        "sentences": [(sentence, evidence_links(sentence, there)) for sentence in card.sentences],
        "next": None if card.next is None else _next_step(plan, results, card.next, facts),
        # Efficiencies of hundreds of layouts are no picture.
        "chart": None if layouts else efficiency_chart(results, card.verdicts),
    }


def _next_step(
    plan: Plan, results: ExperimentResults, step: "Next", facts: Mapping[str, RunFacts]
) -> dict[str, Any]:
    """What to do next; where repeats decide, as lines of the campaign file and with their cost."""
    text = step.text[:1].upper() + step.text[1:]
    if step.repeats is None:
        return {"text": text, "snippet": None}
    ids = [run["run_id"] for run in results.entry["runs"]]
    walls = [facts[i].wall_s for i in ids if i in facts and facts[i].wall_s is not None]
    cost = counted(step.runs, "run")
    if walls:
        cost += f", about {duration(sum(wall or 0.0 for wall in walls) / len(walls) * step.runs)}"
    repeats = str(step.repeats)
    if rule := results.entry.get("repeats"):
        most = max(step.repeats, rule["most"])
        repeats = f"{{min: {step.repeats}, max: {most}, until: {100 * rule['until']:.6g} %}}"
    snippet = f"experiments:\n  {results.name}:\n    repeats: {repeats}"
    return {"text": text, "snippet": snippet, "file": plan["file"], "cost": cost}


# Sentences of a card, what to do next included.
MOST = 5
# Rules whose sentences have a place of their own on a card, or none.
_PLACED = frozenset(
    {VERDICT, STATED, OTHER_PHASES, LOSS, PREDICTION, SCORED, BEST_LAYOUT, *OF_LAYOUTS, "coverage"}
)
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
    "(docs/guide/time_breakdown.md)",
    "mixed": "remove both reasons: each rank is as late as the others, for a reason of its own",
    "persistent": "look at the figure of the ranks: one rank, or its host, is slow in every step",
    "stalls": "look at what happens in the steps that stall: checkpoints, garbage collection, file "
    "systems, other work on the nodes",
    "alternating": "look for jitter: other work on the nodes, threads that share cores, input that "
    "stalls a rank at a time",
    "transfer": "look into the exchange with a profile that shows collectives "
    "(docs/guide/profiles.md says which one does for each framework)",
    "sharded": "compare `reshard_after_forward: false`, shards within a node (`dp_replicate`) and "
    "larger batches: parameters are gathered as often for any batch",
    "tensor": "keep `tp` within a node, or compare a smaller one",
    "pipeline": "compare more micro-batches, or an interleaved schedule: both make less bubble",
    "communication": "split it: time stamps of each step, a replay, or a timeline of the exchange "
    "(docs/guide/profiles.md) separate waiting for the slowest rank from transfer",
    "barrier": "run longer epochs, or look at what ranks do at their ends",
    "outside": "keep what lies between steps (`span_between`, docs/guide/time_breakdown.md); of "
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


def card_of(results: ExperimentResults, findings: Sequence[Finding]) -> Card:
    """The card of an experiment whose findings are ``findings``: at most five sentences.

    How benchmarks compare, where there are several: that is what was asked. Verdict, largest loss,
    how kept predictions did, what was asked to be predicted, one sentence that needs attention and
    whether other processes disturbed the study, what else is confirmed as far as there is room, and
    what to do next.
    """
    every = verdicts(results)
    loss = _loss(findings)
    attention = _attention(results, findings)
    then = _next(results, every, loss, findings)
    room = MOST - len(attention) - (then is not None)
    ahead = [finding for finding in findings if finding.rule == PREDICTION]
    # What is refused comes behind what is known.
    ahead.sort(key=lambda finding: not finite(finding.evidence["numbers"].get("value")))
    # How far predictions are to be trusted here comes before any of them.
    ahead = [*(finding for finding in findings if finding.rule == SCORED), *ahead]
    lines = _of_benchmarks(findings)
    # Of a study of layouts the card has a table; what is in it is not said once more.
    tabled = any(finding.rule == BEST_LAYOUT for finding in findings)
    if not tabled:
        lines += [finding for finding in findings if finding.rule in (VERDICT, STATED)]
    said = lines[: max(room - (loss is not None) - bool(ahead), 1)]
    said += [loss] if loss else []
    said += ahead[: max(room - len(said), 0)]
    answers = [
        finding
        for finding in findings
        if finding.rule not in _PLACED and finding not in attention and finding not in lines
    ]
    # Where there is no verdict, what is not confirmed, and then what is only noted, is the answer.
    levels = (CLEAR,) if lines or tabled else (CLEAR, OPEN, NOTE)
    more = [finding for level in levels for finding in answers if finding.state == level]
    said += more[: max(room - len(said), 0)]
    return Card([*said, *attention], then, every)


def _of_benchmarks(findings: Sequence[Finding]) -> list[Finding]:
    """How one benchmark compares with the others: at the largest scale where that is clear."""
    of = [finding for finding in findings if finding.evidence.get("parameter") == BENCHMARK]
    of = [finding for finding in of if finding.state in (CLEAR, OPEN)]
    clear = [finding for finding in of if finding.state == CLEAR]
    return clear[-1:] or of[:1]


def _attention(results: ExperimentResults, findings: Sequence[Finding]) -> list[Finding]:
    """The warning to show, runs without a result first; what is only pending is no warning.

    And always that other processes disturbed runs: all other sentences rest on these.
    """
    lacking = any(run["status"] not in (Status.DONE, Status.NEW) for run in results.entry["runs"])
    warnings = [
        finding
        for finding in findings
        if finding.state == ATTENTION and (lacking or finding.rule != "coverage")
    ]
    load = [finding for finding in warnings if finding.rule == "other load"]
    others = [finding for finding in warnings if finding.rule != "other load"]
    return [*sorted(others, key=lambda finding: finding.rule != "coverage")[:1], *load]


def _loss(findings: Sequence[Finding]) -> Finding | None:
    """The loss to name: a confirmed one before others, of the series that is farthest behind."""
    losses = [finding for finding in findings if finding.rule == LOSS]
    order = {CLEAR: 0, OPEN: 1}

    def rank(finding: Finding) -> tuple[int, float]:
        share = finding.evidence.get("share")
        return order.get(finding.state, 2), float(share) if finite(share) else 1.0

    return min(losses, key=rank, default=None)


def _next(
    results: ExperimentResults,
    every: Sequence[Verdict],
    loss: Finding | None,
    findings: Sequence[Finding],
) -> Next | None:
    """What to do next: what is missing first, then what would decide, then what to act on."""
    statuses = [run["status"] for run in results.entry["runs"]]
    if pending := statuses.count(Status.NEW):
        return Next(f"run `snakemake`: {counted(pending, 'run')} of {len(statuses):,} pending.")
    if any(run["status"] == Status.FAILED and run["to_run"] for run in results.entry["runs"]):
        return Next("see why runs failed, below; then run `snakemake`, which repeats these only.")
    if results.control or set(results.sources) == {"imported"}:
        return None
    return _act(results, every, loss, findings)


def _act(
    results: ExperimentResults,
    every: Sequence[Verdict],
    loss: Finding | None,
    findings: Sequence[Finding],
) -> Next | None:
    """What to do next where all runs that were planned are done."""
    if dips := [dip for verdict in every for dip in verdict.dips]:
        dip = min(dips, key=lambda point: point.value)
        return Next(f"find what slows {dip.at} down, where more do better.")
    if every and all(verdict.kind == ABOVE for verdict in every):
        last = max(verdict.cited.count for verdict in every)
        return Next(f"measure more than {results.scaled(last)}: nothing has stopped scaling yet.")
    if loss and loss.evidence.get("contradicts"):
        return Next(
            "compare the sum of `step_times` with the seconds that were timed: that tells time "
            "outside of the steps from samples that are counted otherwise."
        )
    # A loss that is clear can be acted on, whatever the verdict is.
    if loss and loss.state == CLEAR and (act := _after_loss(results, loss, findings)):
        return act
    if undecided := [verdict for verdict in every if verdict.kind in (UNDECIDED, UNKNOWN)]:
        return _deciding(results, undecided)
    return _after_loss(results, loss, findings) if loss else _otherwise(results, every)


def _otherwise(results: ExperimentResults, every: Sequence[Verdict]) -> Next | None:
    """What tells losses where nothing does; more repeats where every point has only one."""
    if every and results.entry.get("noexchange") and not results.rows("efficiency"):
        return Next(
            "run with `--config profile=noexchange`: steps on GPUs have no time stamps, and runs "
            "without exchange separate computation from communication."
        )
    if not every and results.points and all(row.get("repeats") == 1 for row in results.points):
        return _repeat(results, FEWEST - 1, "give every point an interval")
    return None


def _deciding(results: ExperimentResults, undecided: Sequence[Verdict]) -> Next:
    """What decides whether a scale is efficient: repeats where they can, and how many."""
    if odd := [verdict.cited for verdict in undecided if verdict.cited.odd]:
        return Next(f"clear up the efficiency at {odd[0].at}, which is {odd[0].odd}.")
    alone = [verdict for verdict in undecided if verdict.lacks]
    if [verdict for verdict in alone if verdict.lacks != IDENTICAL]:
        few = min(verdict.repeats for verdict in alone)
        return _repeat(results, max(FEWEST - few, 1), "give the efficiency an interval")
    if alone:
        return Next(
            "let repeats differ: they are identical (one seed, or a number that does not vary), so "
            "that no number of them gives the efficiency an interval."
        )
    scattered = [verdict for verdict in undecided if not verdict.close]
    if not scattered:
        point = undecided[0].cited
        return Next(
            f"take either: at {point.at} the whole interval of the efficiency, "
            f"{percent(point.value, point.low, point.high)}, lies within {100 * CLOSE:.0f} points "
            f"of {100 * point.target:g} %."
        )
    counts = [verdict.more for verdict in scattered]
    if None not in counts and (most := max(count or 0 for count in counts)) <= MOST_REPEATS:
        return _repeat(results, most, "would decide")
    # The one that needs most.
    worst = max(scattered, key=lambda verdict: verdict.more or math.inf)
    return Next(
        f"find what makes the repeats scatter: at {worst.cited.at} they leave the efficiency at "
        f"{percent(worst.cited.value, worst.cited.low, worst.cited.high)}, and "
        f"{_many(worst.more)} would be needed to tell it from {100 * worst.cited.target:g} %."
    )


def _many(more: int | None) -> str:
    return f"more than {LIMIT:,} more repeats" if more is None else f"about {more:,} more repeats"


def _after_loss(
    results: ExperimentResults, loss: Finding, findings: Sequence[Finding]
) -> Next | None:
    """What to do about a loss, or what to measure to know it."""
    term = str(loss.evidence.get("term"))
    if term == REST:
        return Next(
            "run more and longer steps, or `--config profile=cprofile`, to see what takes the "
            "unattributed time."
        )
    if loss.state == CLEAR:
        held_back = _held_back(loss, findings) if term == "transfer" else None
        also = _UNREAD if term == INPUT and INPUT in results.entry["parameters"] else ""
        cause = loss.evidence.get("cause")
        act = cause if cause in _ACT_ON else term
        return held_back or (Next(f"{_DO[act]}{also}.") if act in _DO else None)
    numbers, repeats = loss.evidence["numbers"], loss.evidence.get("repeats")
    if not finite(repeats):
        return None
    if not finite(numbers.get("low"), numbers.get("high")):
        return _repeat(results, max(FEWEST - int(repeats), 1), "give the losses intervals")
    half = (numbers["high"] - numbers["low"]) / 2
    more = more_repeats(half, int(repeats), numbers["loss"], LIMIT)
    if more is None or more > MOST_REPEATS:
        return Next(
            f"use longer steps, or steadier runs: {_many(more)} would be needed to tell the "
            "largest loss from none."
        )
    return _repeat(results, more, "would confirm the largest loss")


def _held_back(loss: Finding, findings: Sequence[Finding]) -> Next | None:
    """What to do about what holds the exchange of the same point back, where that is known."""
    for finding in findings:
        same = finding.rule == EXCHANGE and finding.evidence["key"] == loss.evidence["key"]
        if same and "do" in finding.evidence:
            return Next(
                f"{finding.evidence['do']}: {finding.evidence['cause']} holds transfer back."
            )
    return None


def _repeat(results: ExperimentResults, more: int, why: str) -> Next:
    runs = results.entry["runs"]
    repeats = max((int(run["repeat"]) for run in runs), default=0) + 1 + more
    points = len({results.key(run["point"], results.axes) for run in runs})
    text = f"{counted(more, 'more repeat')} {why}."
    return Next(text, repeats, points * more)
