"""The first screen of an experiment: a verdict, its largest loss, what needs a look, what next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.repeats import MOST as MOST_REPEATS
from scalesweep.analysis.repeats import more_repeats
from scalesweep.core.formatting import counted, finite
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, OPEN, WARNING, Finding
from scalesweep.findings.efficiency import REST
from scalesweep.findings.efficiency import RULE as LOSS
from scalesweep.findings.machine import EXCHANGE
from scalesweep.findings.prediction import RULE as PREDICTION
from scalesweep.findings.verdict import ABOVE, UNDECIDED, Verdict, verdict_findings, verdicts

# Sentences of a card, what to do next included.
MOST = 5
# Rules whose sentences the verdict takes the place of.
_SAID = frozenset({"efficiency", "threshold", LOSS, PREDICTION, "coverage"})
# Three repeats are the fewest whose interval is of use.
FEWEST = 3
_DO: Mapping[str, str] = {
    "local_batch": "give each rank a larger batch: it is the small one that computes slowly",
    "slower": "compare fewer threads per rank, and look at whether ranks share cores, memory or "
    "disks: each works more slowly than alone",
    "clock": "look at limits of power and heat, and at the frequency governor: cores have a lower "
    "clock than at the reference",
    "input": "compare more parallel reads, more prefetching or a cache",
    "persistent": "look at the figure of the ranks: one rank, or its host, is slow in every step",
    "alternating": "look for jitter: other work on the nodes, threads that share cores, input that "
    "stalls a rank at a time",
    "transfer": "run with `--config profile=horovod_timeline`: it splits the exchange into "
    "negotiation, queue, copies and reduction",
    "communication": "split it: time stamps of each step, a replay, or Horovod's timeline "
    "(`--config profile=horovod_timeline`) separate waiting for the slowest rank from transfer",
    "barrier": "run longer epochs, or look at what ranks do at their ends",
    "outside": "run more epochs, or compare the later ones: `main_metric: total_throughput`",
}  # fmt: skip
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

    Verdict, largest loss, what was asked to be predicted, one sentence that needs attention, what
    else is confirmed as far as there is room, and what to do next.
    """
    every = verdicts(study)
    loss = _loss(found)
    attention = _attention(study, found)
    then = _next(study, every, loss, found)
    room = MOST - len(attention) - (then is not None)
    said: list[Finding] = []
    ahead = [one for one in found if one.rule == PREDICTION]
    # What is refused comes behind what is known.
    ahead.sort(key=lambda one: not finite(one.evidence["numbers"].get("value")))
    if every:
        said = verdict_findings(study, every, room - (loss is not None) - bool(ahead))
        said += [loss] if loss else []
    said += ahead[: room - len(said)]
    answers = [one for one in found if one.rule not in _SAID and one not in attention]
    sure = [one for one in answers if one.level == CONFIRMED]
    more = sure if every else [*sure, *(one for one in answers if one.level == OPEN)]
    said += more[: room - len(said)]
    return Card([*said, *attention], then, every)


def _attention(study: ExperimentResults, found: Sequence[Finding]) -> list[Finding]:
    """The warning to show, runs without a result first; what is only pending is no warning."""
    lacking = any(run["status"] not in ("done", "new") for run in study.entry["runs"])
    those = [one for one in found if one.level == WARNING and (lacking or one.rule != "coverage")]
    return sorted(those, key=lambda one: one.rule != "coverage")[:1]


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
    if pending := statuses.count("new"):
        return Next(f"run `snakemake`: {counted(pending, 'run')} of {len(statuses):,} pending.")
    if "failed" in statuses:
        return Next("see why runs failed, below; then run `snakemake`, which repeats these only.")
    if study.control or set(study.sources) == {"imported"}:
        return None
    if undecided := [one for one in every if one.kind == UNDECIDED]:
        return _deciding(study, undecided)
    if every and all(one.kind == ABOVE for one in every):
        last = max(one.cited.count for one in every)
        return Next(f"measure more than {study.scaled(last)}: nothing has stopped scaling yet.")
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
    """The repeats that decide whether a scale is efficient."""
    alone = [one for one in undecided if one.cited.low is None]
    if alone:
        few = min(one.repeats for one in alone)
        return _repeat(study, max(FEWEST - few, 1), "give the efficiency an interval")
    known = [(one.more, one) for one in undecided]
    counts = [more for more, _ in known if more is not None]
    if not counts:
        closest = undecided[0].cited
        return Next(
            f"take either: the efficiency at {closest.at} is so close to 80 % that {MOST_REPEATS} "
            "more repeats would not decide."
        )
    return _repeat(study, max(counts), "would decide")


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
        return held_back or (Next(f"{_DO[term]}{also}.") if term in _DO else None)
    numbers, repeats = loss.evidence["numbers"], loss.evidence.get("repeats")
    if not finite(repeats):
        return None
    if not finite(numbers.get("low"), numbers.get("high")):
        return _repeat(study, max(FEWEST - int(repeats), 1), "give the losses intervals")
    half = (numbers["high"] - numbers["low"]) / 2
    more = more_repeats(half, int(repeats), float(loss.evidence["margin"]))
    if more is None:
        return Next("use longer steps: more repeats alone would not identify the largest loss.")
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
