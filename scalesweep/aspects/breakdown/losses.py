"""Findings on the ledger: what keeps the largest scale of a series from the ideal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.analysis.step_account import EPOCHS, NOEXCHANGE, STEP_WORDS
from scalesweep.analysis.step_delays import ALTERNATING, BOUND, EVERY, OFTEN, PART, RARE
from scalesweep.analysis.step_work import BETWEEN, COMPUTE, INPUT, NAMED
from scalesweep.aspects.breakdown.ledgers import Ledger, Term, ledgers
from scalesweep.aspects.steps.cause_words import (
    STANDS_IN,
    causes_for,
    clock_words,
    few_stalls,
    hidden,
    in_term,
    is_sure,
    names_ranks,
    phrase,
    phrases,
    takes,
    within_words,
)
from scalesweep.aspects.steps.causes import Cause, PointCauses, point_causes
from scalesweep.core.formatting import listed, number, with_interval
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import CLEAR, NOTE, OPEN, SILENT, Claim, Finding, claim_of, marked

RULE = "largest loss"
# What a term is called when it is a loss.
WORDS = {
    "local_batch": "the smaller local batch",
    "clock": "a lower clock of the cores, at most",
    "slower": "slower computation {}",
    "input": "waiting for input",
    "checkpoint": "checkpoints",
    "validation": "validation",
    "logging": "logging",
    "between": "host time between steps",
    "mixed": "work that is longer on each rank for another reason",
    "persistent": "load imbalance",
    "alternating": "jitter of ranks",
    "stalls": "stalls",
    "transfer": "transfer",
    "sharded": "the exchange of parameters and gradients",
    "tensor": "tensor-parallel exchange",
    "pipeline": "pipeline wait",
    "communication": "exposed communication",
    "barrier": "the barrier",
    "outside": "time outside of the steps",
}
# Why steps are shorter, or longer, than the rate of samples says.
CONTRADICTS = (
    "most of the time is outside of the timed steps (a pause before the first, between them or "
    "after the last), or the two are of different samples (`samples_per_epoch`, `steps_per_epoch`)",
    "steps cannot take longer than the samples in them: a clock or a unit is wrong, or the two are "
    "of different samples (`samples_per_epoch`, `steps_per_epoch`)",
)
# Which delays make up a term.
PATTERNS = {
    "persistent": (EVERY, PART, OFTEN), "alternating": (ALTERNATING, OFTEN), "stalls": (RARE,),
    "input": (BOUND,),
}  # fmt: skip
# Of host activities between steps, which are causes by themselves.
WHOLE_TIME = (EVERY, PART, OFTEN, RARE, ALTERNATING)
# A cause stands for a term if the steps gain so much of it without the cause; causes that add up
# are named until they make up nearly all of it, each with a share that is worth a name.
MOST_OF, NEARLY_ALL, SHARE = 0.5, 0.9, 0.1
_MOST_CAUSES = 4
# What a program that does nothing else takes longer for: it waits for nothing.
READING = "reading {}"
# Terms of computation; a program without them only reads.
_WORK = frozenset({"compute", "busy", "at_reference", "local_batch", "clock", "slower"})
# The same of a record that does not split input from computation.
WHOLE = "input and computation {}"
REST = "unattributed"
LONG = 5e3  # ms from which a step is given in s
# A loss below this share of the ideal step is no reason to act.
NOTABLE = 0.02
# A share of the ideal beyond 100 % is no efficiency: no replay takes a cause from the reference.
BEYOND = 1.005
PAST_IDEAL = "below the ideal (the reference may have the same)"
# Of what the ranks in the middle do by themselves, and the terms that are measured from there.
_MIDDLE = ("local_batch", "clock", "slower", "input", "between", "mixed")
_IMBALANCE = ("persistent", "alternating")


@dataclass(frozen=True)
class _Why:
    """What makes up most of a term: causes (one, or several that hide each other), and ms that the
    steps gain without it; ``without_all`` where they gain more without all that hides it."""

    causes: Sequence[Cause]
    gain: float
    without_all: float | None = None
    several: bool = False  # whether ``gain`` is that of all of them


def largest_loss(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, the largest loss against the ideal step.

    Nothing where the step is less than 2 % longer than the ideal; a note where more of it is
    unattributed than any term explains. What is claimed is that the term takes longer than at the
    reference, of every term; that it is the largest is told by its size.
    """
    largest = largest_points(results, ledgers(results))
    every = [_claim(results, ledger, name) for ledger in largest for name in _tested(ledger)]
    tested = [Finding(results.name, RULE, SILENT, "", claims=tuple(every))] if every else []
    return [finding for ledger in largest for finding in _finding(results, ledger)] + tested


def _tested(ledger: Ledger) -> list[str]:
    """The terms that may be named."""
    return [name for name, part in ledger.parts.items() if name in WORDS and part.loss is not None]


def largest_points(results: ExperimentResults, every: Sequence[Ledger]) -> list[Ledger]:
    """The ledger of the largest scale of each series."""
    last: dict[tuple[object, ...], Ledger] = {}
    for ledger in every:
        if ledger.ideal is not None and ledger.elapsed.loss is not None:
            last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    return list(last.values())


def _largest_term(ledger: Ledger) -> str | None:
    """The term with the largest loss; None where the step is hardly longer than the ideal."""
    assert ledger.ideal is not None
    whole = ledger.elapsed
    assert whole.loss is not None
    if whole.loss < NOTABLE * ledger.ideal.value:
        return None
    losses = {
        name: part.loss
        for name, part in _netted(ledger).items() if name in WORDS and part.loss is not None
    }  # fmt: skip
    return max(losses, key=lambda name: losses[name]) if losses else None


def _nameless(ledger: Ledger, largest: float) -> str | None:
    """A term without a loss, as the reference does not show it, that may be the largest loss."""
    terms = {
        name: part.value
        for name, part in ledger.parts.items() if name in WORDS and part.loss is None
        and max(part.value, part.high or 0.0) > largest
    }  # fmt: skip
    return max(terms, key=lambda name: terms[name]) if terms else None


def faster(ledger: Ledger) -> float:
    """Ms that the ranks in the middle take less than at the reference; 0 below 2 % of the ideal.
    Without host time where the reference may have an activity in it that it does not name."""
    assert ledger.ideal is not None
    nameless = any(name in NAMED and part.loss is None for name, part in ledger.parts.items())
    names = [
        name for name in _MIDDLE if name in ledger.parts and not (nameless and name == BETWEEN)
    ]
    less = -sum(ledger.parts[name].loss or 0.0 for name in names)
    return less if less >= NOTABLE * ledger.ideal.value else 0.0


def _netted(ledger: Ledger) -> dict[str, Term]:
    """The terms, those of imbalance against the reference too: a rank is behind the ones in the
    middle by what these are faster than at the reference, and no step is longer for that."""
    parts, left = dict(ledger.parts), faster(ledger)
    for name in _IMBALANCE:
        part = parts.get(name)
        if part is None or part.loss is None or part.loss <= 0 or left <= 0:
            continue
        less = min(left, part.loss)
        low, high = (None if v is None else v - less for v in (part.loss_low, part.loss_high))
        parts[name] = replace(part, loss=part.loss - less, loss_low=low, loss_high=high)
        left -= less
    return parts


def who_is_faster(results: ExperimentResults, ledger: Ledger) -> str:
    """Which ranks are faster than at the reference, in words."""
    less = f"{number(faster(ledger))} ms faster than at the reference"
    point = _point_of(results, ledger)
    behind = [] if point is None else [
        each for each in point.causes
        if (each.cause, each.pattern) == (COMPUTE, EVERY) and is_sure(each)
    ]  # fmt: skip
    if len(behind) == 1:
        others = set(range(int(behind[0].numbers["of_ranks"]))) - set(behind[0].ranks)
        names = listed([str(rank) for rank in sorted(others)], 6)
        return f"rank {names} computes {less}" if len(others) == 1 else f"ranks {names} are {less}"
    return f"most ranks are {less}"


def _finding(results: ExperimentResults, ledger: Ledger) -> list[Finding]:
    """The sentence on the largest loss of a point against its ideal step, with a cause that is
    sure.

    Silent where no term stands out; open where the terms contradict each other.
    """
    assert ledger.ideal is not None
    whole, ideal = ledger.elapsed, ledger.ideal.value
    term = _largest_term(ledger)
    if term is None:
        return []
    largest = _netted(ledger)[term]
    assert largest.loss is not None
    netted = largest.loss < (ledger.parts[term].loss or 0.0)
    step = STEP_WORDS[ledger.form]
    where = f"at {results.describe(ledger.row)}" if results.axes else "here"
    factor, unit = scale_of(ledger)
    head = (
        f"{where} {'an' if step == 'epoch' else 'a'} {step} takes {number(whole.value * factor)} "
        f"{unit} instead of the ideal {number(ideal * factor)} {unit}"
    )
    if (open_end := _abstained(results, ledger, largest, head)) is not None:
        return [open_end]
    low, high = (None if v is None else v * factor for v in (largest.loss_low, largest.loss_high))
    interval = with_interval(largest.loss * factor, low, high, unit)
    joint = ledger.form in (EPOCHS, NOEXCHANGE) and "input" not in ledger.parts
    named = WHOLE if joint and term == "slower" else WORDS[term]
    work = sum(part.value for name, part in ledger.parts.items() if name in _WORK)
    if term == "input" and work < NOTABLE * whole.value:
        named = READING
    if "{}" in named:
        named = named.format(_on_ranks(results, ledger, largest.loss, named == WORDS["slower"]))
    sure = largest.claimed < SIGNIFICANT
    if wide(largest) and not sure:
        text = f"{head}; no loss is named: that by {named}, {interval}, is not certain"
        return [_loss_finding(results, ledger, OPEN, f"{text}.", largest, term)]
    why = None if netted else _why(results, ledger, term, largest.loss)
    because = "" if why is None else f", {_part_of(why, term, largest.loss)}{_because(why, term)}"
    gained = largest.loss if why is None else why.gain
    reached, now = ideal / (whole.value - gained), ideal / whole.value
    # What it reaches now is the verdict's to say, or follows from the two times.
    nothing = whole_percent(reached) == whole_percent(now)
    would = f"would {'still ' if nothing else ''}reach {whole_percent(reached)} of the ideal"
    would = would if reached < BEYOND else f"would be {PAST_IDEAL}"
    them = "them" if why is not None and why.several else "it"
    shorter = "" if why is None else _unlike_loss(why, largest.loss, NOTABLE * ideal)
    text = (
        f"{where} the largest loss is {named}, {interval}{_machine(largest)}{because}: "
        f"without {them} the {step} {shorter}{would}"
    )
    if why is not None and why.without_all is not None:
        all_gone = ideal / (whole.value - why.without_all)
        others = " and ".join(f"this: {phrase(each, interval=False)}" for each in why.causes[1:])
        share = whole_percent(all_gone) if all_gone < BEYOND else PAST_IDEAL
        text += f", and {share} also without {others}"
    if faster(ledger):
        text += f"; {who_is_faster(results, ledger)}"
    doubt = _rounded(results, ledger, largest.loss, why) or _doubt(results, ledger, term, sure)
    text += f"; not confirmed{doubt}." if doubt else "."
    return [_loss_finding(results, ledger, OPEN if doubt else CLEAR, text, largest, term, why)]


def _abstained(
    results: ExperimentResults, ledger: Ledger, largest: Term, head: str
) -> Finding | None:
    """The sentence where no part can be named; None where one can. ``head``: its begin."""
    factor, unit = scale_of(ledger)
    if ledger.contradicts:
        own = (ledger.elapsed.value - ledger.parts["outside"].value) * factor
        text = (
            f"{head} by its rate of samples, and {number(own)} {unit} by its step times: no loss "
            f"is named, because {CONTRADICTS[own > ledger.elapsed.value * factor]}"
        )
        return _loss_finding(results, ledger, OPEN, f"{text}.", ledger.parts["outside"], "outside")
    rest = ledger.parts["unattributed"].loss or 0.0
    loss = largest.loss or 0.0
    if loss <= abs(rest):
        text = (
            f"{head}; {number(rest * factor)} {unit} of the difference are unattributed, more than "
            "any term explains: take a profile"
        )
        return _loss_finding(results, ledger, NOTE, f"{text}.", largest, REST)
    if (nameless := _nameless(ledger, loss)) is not None:
        here = number(ledger.parts[nameless].value * factor)
        text = (
            f"{head}; no loss is named: {WORDS[nameless]} takes {here} {unit}, and the reference, "
            "which does not print it, may have the same"
        )
        return _loss_finding(results, ledger, OPEN, f"{text}.", ledger.parts[nameless], nameless)
    return None


def scale_of(ledger: Ledger) -> tuple[float, str]:
    """By what ms are multiplied in sentences, and the unit then."""
    return (1.0, "ms") if ledger.elapsed.value < LONG else (1e-3, "s")


def _on_ranks(results: ExperimentResults, ledger: Ledger, loss: float, computing: bool) -> str:
    """On which ranks a loss is that the ranks in the middle have: those that compute less than
    these by nearly all of it do not have it, where that is known."""
    assert ledger.ideal is not None
    point = _point_of(results, ledger)
    if point is None or not computing:
        few = point is None and ledger.row.get("ranks") in (1, 2)  # of two the faster one counts
        return "on each rank" if few else "on most ranks"
    count, ahead = int(point.together.numbers["of_ranks"]), point.together.ahead
    gone = loss - NOTABLE * ledger.ideal.value
    without = [str(rank) for rank, (least, _) in ahead.items() if least >= gone]
    if without:
        names = f"{'rank' if len(without) == 1 else 'ranks'} {listed(without, 6)}"
        return f"on {count - len(without)} of {count} ranks (not on {names})"
    return "on most ranks" if any(most >= gone for _, most in ahead.values()) else "on each rank"


def _doubt(results: ExperimentResults, ledger: Ledger, term: str, sure: bool) -> str:
    """Why a loss is not clear, after *not confirmed*; empty where it is. ``sure``: whether it is
    told from none. Stalls are clear only where some of them are told from noise."""
    if not sure:
        return " by these repeats"
    point = _point_of(results, ledger) if term in ("stalls", "alternating") else None
    pattern = RARE if term == "stalls" else ALTERNATING
    if point is not None and (within := within_words(point.together.within, pattern)):
        return f": {within}"
    point = point if term == "stalls" else None
    rare = [] if point is None else [each for each in point.causes if each.pattern == RARE]
    if point is None or any(is_sure(each) for each in rare):
        return ""
    return f": {few_stalls(rare[0]) or STANDS_IN}" if rare else ": most runs have none"


def _rounded(results: ExperimentResults, ledger: Ledger, loss: float, why: _Why | None) -> str:
    """That a loss may be the rounding of a coarse clock, as ``_doubt``; empty where it is not.
    Whose causes are known is as long as these in their steps: a few long ones are no rounding."""
    point = _point_of(results, ledger)
    if point is None or why is not None:  # causes that may be rounding are not named
        return ""
    coarse = clock_words(point.together, loss)
    return f": {coarse}" if coarse else ""


def _because(why: _Why, term: str) -> str:
    """The causes of a term in words."""
    if term == INPUT:
        ranks = listed([str(rank) for rank in why.causes[0].ranks], 6)
        return f"it sets the pace of {'ranks' if len(why.causes[0].ranks) > 1 else 'rank'} {ranks}"
    if term == "mixed":
        return phrases(why.causes[:3], interval=False)
    if why.several:
        return phrases(why.causes, interval=False)
    return phrase(why.causes[0], interval=False)


def _part_of(why: _Why, term: str, loss: float) -> str:
    """``because``, with the share of a loss that its cause takes where that is less than most."""
    taken = sum(takes(cause) for cause in why.causes) if why.several else takes(why.causes[0])
    known = term not in (INPUT, "mixed") and taken < NEARLY_ALL * loss
    return f"about {whole_percent(taken / loss)} of it because " if known else "because "


def _unlike_loss(why: _Why, loss: float, least: float) -> str:
    """How much shorter a step would be, where that is not the loss, and why it is not."""
    if why.without_all is not None or abs(why.gain - loss) < max(least, (1 - NEARLY_ALL) * loss):
        return ""
    if why.gain > loss:
        return f"would be {number(why.gain)} ms shorter, as other parts are longer by it too, and "
    if not why.several and takes(why.causes[0]) < NEARLY_ALL * loss:
        return f"would be {number(why.gain)} ms shorter and "
    return f"would be only {number(why.gain)} ms shorter, as ranks would wait for others then, and "


def _why(results: ExperimentResults, ledger: Ledger, term: str, loss: float) -> _Why | None:
    """Why a term is as large as it is, where that is known: without it steps are replayed."""
    point = _point_of(results, ledger)
    if point is None:
        return None
    overlap = [each for each in hidden(point) if not clock_words(each)]
    everything = point.together.numbers["gain_ms"]
    if term == "mixed":
        sure = len(overlap) > 1 and is_sure(point.together)
        return _Why(overlap, everything) if sure else None
    # Of input that sets the pace, whatever the replay gains.
    least = 0.0 if term == INPUT else MOST_OF * loss
    if term in (*NAMED, BETWEEN):
        fits = causes_for(point, WHOLE_TIME, term)
    else:
        fits = causes_for(point, PATTERNS.get(term, ()), term=term)
    if not overlap and (why := _adding_up(point, fits, loss)):
        return why
    cause = fits[0] if fits and takes(fits[0]) >= least else None
    if cause is None:
        return _hidden_why(term, overlap, point.together, least)
    if cause in overlap:
        others = [each for each in overlap if each is not cause]
        return _Why([cause, *others], cause.numbers["gain_ms"], everything)
    return _Why([cause], cause.numbers["gain_ms"])


def _adding_up(point: PointCauses, fits: Sequence[Cause], loss: float) -> _Why | None:
    """The causes that make up nearly all of a loss together, and no single one does; None where
    there are none, or what the steps gain without each does not add up."""
    gains = [cause.numbers["gain_ms"] for cause in point.causes]
    together = point.together.numbers
    if abs(sum(gains) - together["gain_ms"]) >= NOTABLE * together["step_ms"]:
        return None
    chosen: list[Cause] = []
    gained = 0.0
    for fit in fits[:_MOST_CAUSES]:
        if gained >= NEARLY_ALL * loss or fit.numbers["gain_ms"] < SHARE * loss:
            break
        chosen.append(fit)
        gained += fit.numbers["gain_ms"]
    if len(chosen) < 2 or not NEARLY_ALL * loss <= gained <= loss / NEARLY_ALL:
        return None
    return _Why(chosen, gained, several=True)


def _hidden_why(term: str, overlap: Sequence[Cause], together: Cause, least: float) -> _Why | None:
    """The cause of a term that steps gain little without, as others hide it; never the difference
    of means, which nobody would gain. None where nothing hides it."""
    own = [
        cause for cause in overlap
        if names_ranks(cause) and (
            cause.cause == term if term in (*NAMED, BETWEEN)
            else cause.cause not in NAMED and cause.pattern in PATTERNS.get(term, ())
            and in_term(cause, term)
        )
    ]  # fmt: skip
    everything = together.numbers["gain_ms"]
    if not own or len(overlap) < 2 or everything < least or not is_sure(together):
        return None
    cause = max(own, key=lambda cause_: cause_.numbers["gain_ms"])
    others = [each for each in overlap if each is not cause]
    return _Why([cause, *others], cause.numbers["gain_ms"], everything)


def _points(results: ExperimentResults) -> Iterator[tuple[int, PointCauses]]:
    return enumerate(point_causes(results))


def _point_of(results: ExperimentResults, ledger: Ledger) -> PointCauses | None:
    return next(
        (p for p in point_causes(results) if _key(results, p.row) == _key(results, ledger.row)),
        None,
    )


def _key(results: ExperimentResults, row: Row) -> tuple[object, ...]:
    return (*results.key(row, results.axes), row["source"])


def causes_in_losses(results: ExperimentResults) -> dict[int, Sequence[Cause]]:
    """Causes that the sentences on the largest losses name, by place of their points among
    ``point_causes``."""
    causes_of: dict[int, Sequence[Cause]] = {}
    for ledger in largest_points(results, ledgers(results)):
        term = _largest_term(ledger)
        if term is None or _netted(ledger)[term] != ledger.parts[term]:
            continue
        if _nameless(ledger, ledger.parts[term].loss or 0.0):
            continue
        if (why := _why(results, ledger, term, ledger.parts[term].loss or 0.0)) is None:
            continue
        for place, point in _points(results):
            if _key(results, point.row) == _key(results, ledger.row):
                causes_of[place] = why.causes
    return causes_of


def _machine(largest: Term) -> str:
    """What of a loss the machine needs, where a probe tells: no more than all of it."""
    if largest.machine_loss is None or not largest.loss or largest.loss <= 0:
        return ""
    share = min(max(largest.machine_loss, 0.0), largest.loss) / largest.loss
    return f", of which the machine explains {whole_percent(share)}"


def whole_percent(share: float) -> str:
    """A share in whole percent, as verdicts write it with an interval."""
    return f"{100 * share:.0f} %"


def wide(largest: Term) -> bool:
    """Whether the interval of a loss is wider than the loss."""
    if largest.loss is None or largest.loss_low is None or largest.loss_high is None:
        return False
    return largest.loss_high - largest.loss_low > largest.loss


def _loss_finding(
    results: ExperimentResults,
    ledger: Ledger,
    level: str,
    text: str,
    term: Term,
    name: str,
    why: _Why | None = None,
) -> Finding:
    """The finding on a term, by its ``name``."""
    evidence = {
        "experiment": results.name,
        "table": "efficiency",
        "key": {name: ledger.row.get(name) for name in results.axes}
        | {"source": ledger.row["source"]},
        "numbers": {"loss": term.loss, "low": term.loss_low, "high": term.loss_high},
        "term": name,
        "contradicts": ledger.contradicts,
        "cause": None if why is None or name == "mixed" else why.causes[0].cause,
        "repeats": ledger.row.get("repeats"),
        "share": None if ledger.ideal is None else ledger.ideal.value / ledger.elapsed.value,
    }
    claims = (_claim(results, ledger, name),) if name in ledger.parts else ()
    return Finding(
        results.name, RULE, level, marked(ledger.row["source"], text), evidence, claims=claims
    )


def _claim(results: ExperimentResults, ledger: Ledger, name: str) -> Claim:
    """That a term takes longer than at the reference."""
    return claim_of(ledger.parts[name].claimed, RULE, name, *_key(results, ledger.row))
