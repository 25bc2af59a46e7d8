"""What a cause is called in sentences: who does what longer, how long, in which steps."""

from collections.abc import Sequence

from scalesweep.analysis.resolution import FEWEST_TICKS
from scalesweep.analysis.step_delays import ALTERNATING, BOUND, EVERY, OFTEN, PART, RARE, TOGETHER
from scalesweep.analysis.step_work import (
    BETWEEN,
    CHECKPOINT,
    COMPUTE,
    INPUT,
    INSIDE,
    LOGGING,
    NAMED,
    TRANSFER,
    VALIDATION,
)
from scalesweep.aspects.steps.causes import Cause, PointCauses
from scalesweep.aspects.steps.replays import FEWEST_ALIKE, FEWEST_STALLS
from scalesweep.core.formatting import counted, finite, listed, number, with_interval

# What a rank does, what several do, and what follows the time.
_DOES = {
    COMPUTE: ("computes", "compute", "longer"),
    INPUT: ("waits", "wait", "longer for input"),
    BETWEEN: ("spends", "spend", "longer between its steps"),
    INSIDE: ("spends", "spend", "longer inside its steps, in none of their spans"),
    CHECKPOINT: ("writes checkpoints for", "write checkpoints for", ""),
    VALIDATION: ("validates for", "validate for", ""),
    LOGGING: ("writes logs for", "write logs for", ""),
}
# Ranks have a cause for about the same time, and in the same steps, if they differ by less: a
# factor, and a share of all steps.
ALIKE, SAME_PART = 1.25, 0.1
# By this factor the longest of the delays is longer than the shortest.
SPREAD = 1.5
_MOST_NAMED = 4
_APART = 1.1  # ranks in a step, on average: one at a time
_CHANGES = 0.9  # of the steps, in which it is another rank than in the one before
# Why rare delays that are several are not clear.
STANDS_IN = "the interval, or the scatter of the other steps, leaves it open"
# A cause below this share of a step is no reason to act.
NOTABLE = 0.02


def causes_for(
    point: PointCauses, patterns: Sequence[str], named: str | None = None, term: str = ""
) -> list[Cause]:
    """The sure causes of some patterns, the one that the steps gain most without first; only
    ``named``, where that is given."""
    fits = [
        cause for cause in point.causes
        if cause.pattern in patterns and is_sure(cause) and in_term(cause, term)
        and (_of_imbalance(cause) if named is None else cause.cause == named)
    ]  # fmt: skip
    return sorted(fits, key=lambda cause: -cause.numbers["gain_ms"])


def in_term(cause: Cause, term: str) -> bool:
    """Whether a cause without a pattern is of a term: ranks that are late together are no other
    ones from step to step."""
    if cause.pattern != OFTEN or term not in ("persistent", "alternating"):
        return True
    together = cause.numbers.get("at_once", 0.0) >= TOGETHER * len(cause.ranks)
    return together == (term == "persistent")


def _of_imbalance(cause: Cause) -> bool:
    """Whether a cause belongs to a term of delays: named activities, and what all ranks
    or most spend between their steps, have terms of their own."""
    together = 2 * cause.numbers.get("at_once", 0.0) > cause.numbers["of_ranks"]
    return cause.cause not in NAMED and not (
        cause.cause == BETWEEN and cause.pattern != RARE and together
    )


def takes(cause: Cause) -> float:
    """What a cause gains or takes in ms a step, whichever is more: other ranks that are nearly as
    late leave little to gain without it, and the sentence says how little."""
    share = cause.numbers.get("count", 0.0) / cause.numbers["of_steps"]
    lasting = cause.pattern in (EVERY, BOUND)  # its length is a mean over all steps
    longer = cause.numbers.get("longer_ms", 0.0) * (1.0 if lasting else share)
    return max(cause.numbers["gain_ms"], longer)


def is_sure(cause: Cause) -> bool:
    """Whether a cause carries a clear sentence: its gain is above 0, on the same ranks in each
    repeat, nothing may have shifted the stamps, it is no rounding of the clock, and a replay knows
    what steps are without it."""
    firm = cause.sure and names_ranks(cause) and not cause.side_effects
    return firm and not clock_words(cause) and not within_words(cause.within, cause.pattern)


def within_words(within: bool, pattern: str) -> str:
    """Why a replay does not know what single delays cost; empty where it does.

    Of ranks that meet within a step a late one may take others along, or none: its delay may pass
    while they wait for something else. What is in every step sets the pace."""
    if not within or pattern not in (RARE, ALTERNATING, OFTEN):
        return ""
    return "ranks wait for each other within a step, where others may wait anyway"


def clock_words(cause: Cause, ms: float | None = None) -> str:
    """That the program's clock is too coarse to tell a time in ms from its rounding; empty where
    it is not. The time is how long a cause makes a step longer, if it is not given."""
    tick, step = cause.numbers.get("resolution_ms", 0.0), cause.numbers["step_ms"]
    size = cause.numbers.get("longer_ms", 0.0) if ms is None else ms
    if not tick or (ms is None and "longer_ms" not in cause.numbers) or size >= FEWEST_TICKS * tick:
        return ""
    return (
        f"the program's clock counts in steps of {number(tick)} ms, {number(100 * tick / step, 2)} "
        f"% of a step, and {number(size)} ms may be its rounding"
    )


def few_stalls(cause: Cause) -> str:
    """Why rare delays are too few to tell from noise; empty where they are not."""
    runs = cause.numbers.get("runs", 1.0)
    total = cause.numbers.get("count", 0.0) * runs
    alike = cause.same_steps and runs >= FEWEST_ALIKE
    if alike or finite(cause.numbers.get("every")) or round(total) >= FEWEST_STALLS:
        return ""
    where = f"in the same steps of {counted(round(runs), 'run')} only" if cause.same_steps else (
        "neither regular nor in the same steps of each"
    )  # fmt: skip
    return f"{_count(total)} in all runs, {where}, may be noise"


def names_ranks(cause: Cause) -> bool:
    """Whether a cause is of the same ranks in each repeat, or needs none."""
    return cause.same_ranks or cause.pattern not in (EVERY, PART)


def hidden(point: PointCauses) -> list[Cause]:
    """Causes of which the steps gain more together than apart: who is late by the one waits for
    the other. None where there are no two, or it is less than 2 % of a step. Each takes 2 % of a
    step too, and what may be nothing, by its intervals, is none of them."""
    least = NOTABLE * point.together.numbers["step_ms"]
    several = [
        cause for cause in point.causes
        if takes(cause) >= least and (cause.sure or cause.numbers.get("longer_low", 1.0) > 0)
    ]  # fmt: skip
    alone = sum(cause.numbers["gain_ms"] for cause in point.causes)
    apart = point.together.numbers["gain_ms"] - alone
    return several if apart >= least and len(several) > 1 else []


def phrase(cause: Cause, interval: bool = True) -> str:
    """Who does what longer, how long, and in which steps; without a capital."""
    if cause.cause == TRANSFER:
        return f"the exchange stalls for {_longer(cause, interval)} in {_steps(cause)}"
    single, several, after = _DOES[cause.cause]
    time = _longer(cause, interval)
    many = len(cause.ranks) > 1
    if cause.pattern == BOUND:
        waits, pace = (several, "their pace is set by it") if many else (single, "it sets the pace")
        return f"{_who(cause)} {waits} {time} for input in every step, and {pace}"
    if cause.pattern == ALTERNATING:
        names = listed([str(rank) for rank in cause.ranks], 6)
        changes = cause.numbers.get("changes", 0.0) >= _CHANGES
        who, does = ("another rank in each step" if changes else "one rank at a time"), single
        if _at_once(cause):
            who, does = ("other ranks in each step" if changes else "some ranks at a time"), several
            after = after.replace("its steps", "their steps")
        return f"{who} ({names}) {does} {time} {after}".rstrip() + f", in {_steps(cause)}"
    if cause.pattern == PART and names_ranks(cause) and (each := _by_parts(cause)):
        who, does = _who(cause), f"{several} {time} {after}".replace("its steps", "their steps")
        if cause.numbers.get("at_once", 0.0) < _APART:
            who, does = "one rank at a time", f"{single} {time} {after}"
        return f"{who} {does.rstrip()} ({each})"
    if cause.pattern in (EVERY, PART) or _at_once(cause):
        verb = several if many and names_ranks(cause) else single
        after = after.replace("its steps", "their steps") if many else after
        if cause.shared and cause.cause == BETWEEN and cause.pattern == EVERY:
            after = "between their steps"
        text = f"{_who(cause)} {verb} {time} {after}".rstrip() + f" in {_steps(cause)}"
        return text + (_steps_by_rank(cause) if _uneven(cause) else "")
    text = f"{_who(cause)} {single} {time} {after}".rstrip() + f" in {_steps(cause)}"
    return text + (_steps_by_rank(cause) if many else "")


def phrases(causes: Sequence[Cause], interval: bool = True) -> str:
    """Several causes; who has two of them, one after the other, is named once."""
    texts: list[str] = []
    before = ""
    for cause in causes:
        text, who = phrase(cause, interval), f"{_who(cause)} "
        own = who if text.startswith(who) and names_ranks(cause) else ""
        texts.append(text.removeprefix(own) if own and own == before else text)
        before = own
    return " and ".join(texts)


def _steps_by_rank(cause: Cause) -> str:
    """In how many of the steps each rank has a delay; of all runs together, where that is not a
    whole number in each."""
    counts = _counts(cause)
    runs = round(cause.numbers["runs"])
    whole = all(abs(count - round(count)) < 0.05 for count in counts.values())
    texts = [
        f"{count * (1 if whole else runs):,.0f} on rank {rank}" for rank, count in counts.items()
    ]
    where = "" if whole else f"in all {runs} runs: "
    return f" ({where}{listed(texts, 6)})" if texts else ""


def _counts(cause: Cause) -> dict[int, float]:
    """In how many steps of a run each rank has a delay, on average."""
    pairs = [each.split(": ") for each in cause.by_rank.split(", ") if ": " in each]
    return {int(rank): float(count) for rank, count in pairs}


def _uneven(cause: Cause) -> bool:
    """Whether some of the ranks that have a delay at once have it in fewer steps than any has."""
    if cause.pattern in (EVERY, PART, BOUND) or len(cause.ranks) < 2:
        return False
    counts = _counts(cause).values()
    return len(counts) > 1 and cause.numbers.get("count", 0.0) > ALIKE * min(counts)


def _unlike(cause: Cause) -> list[float]:
    """How long each rank has a cause, in ms, where they differ by more than a quarter."""
    lengths = [cause.lengths[rank] for rank in cause.ranks if rank in cause.lengths]
    if len(lengths) < 2 or max(lengths) <= ALIKE * min(lengths):
        return []
    return lengths


def _who(cause: Cause) -> str:
    if not names_ranks(cause):
        return "a rank, another in each run,"
    if cause.pattern in (EVERY, PART, BOUND) and (stages := _stages_of(cause)):
        return stages
    names = listed([str(rank) for rank in cause.ranks], _MOST_NAMED)
    if len(cause.ranks) == 1:
        return f"rank {names}"
    if cause.pattern in (EVERY, PART, BOUND) or _at_once(cause):
        named = len(cause.ranks) <= _MOST_NAMED and _unlike(cause)  # who has which is said in order
        return (
            f"ranks {names}" if named or not cause.shared or len(cause.ranks) < 3 else "all ranks"
        )
    if cause.numbers.get("count") == 1 and not cause.same_ranks:
        return "a rank, another in each run,"
    return "one rank at a time"


def _stages_of(cause: Cause) -> str:
    """Ranks that have a cause, with their stages, of which each rank has it; empty where it is no
    matter of a pipeline's stages. Ranks of a stage lie next to each other."""
    stages, ranks = int(cause.numbers.get("stages", 1.0)), int(cause.numbers["of_ranks"])
    each = ranks // stages
    late = sorted({rank // each for rank in cause.ranks})
    if stages == 1 or len(late) == stages or len(cause.ranks) != each * len(late):
        return ""
    names = listed([str(rank) for rank in cause.ranks], _MOST_NAMED)
    ranks_of = f"rank{'s' if len(cause.ranks) > 1 else ''} {names}"
    stages_of = f"stage{'s' if len(late) > 1 else ''} {listed([str(stage) for stage in late])}"
    return f"{ranks_of} (pipeline {stages_of})"


def _at_once(cause: Cause) -> bool:
    return cause.numbers.get("at_once", 0.0) >= _APART


def _longer(cause: Cause, interval: bool) -> str:
    value, low, high = cause.bounds("longer")
    least = "at least " if cause.inferred else ""
    if lengths := _unlike(cause):
        apart = cause.pattern == PART and _by_parts(cause)
        together = not apart and (cause.pattern in (EVERY, PART) or _at_once(cause))
        if len(lengths) <= _MOST_NAMED and together and names_ranks(cause):
            return f"{least}{listed([number(each) for each in lengths], _MOST_NAMED)} ms"
        if cause.pattern in (EVERY, PART):
            return f"{least}{number(min(lengths))} to {number(max(lengths))} ms"
    shortest, longest = (cause.numbers.get(f"{name}_ms", 0.0) for name in ("shortest", "longest"))
    if longest > SPREAD * shortest + NOTABLE * cause.numbers["step_ms"]:
        ends = f"{number(shortest)} to {number(longest)} ms"
        median = cause.numbers.get("median_ms")
        return least + (ends if median is None else f"{number(median)} ms (median; {ends})")
    text = with_interval(value, low, high, "ms") if interval else f"{number(value)} ms"
    return f"{least}{text}"


def _steps(cause: Cause) -> str:
    """In which steps, in words."""
    count, steps = cause.numbers.get("count"), cause.numbers["of_steps"]
    if cause.pattern == EVERY or count is None:
        return "every step"
    if cause.pattern == PART:
        return _part(cause, steps)
    if cause.same_steps and (few := _few_steps(cause)):
        return few
    each, first, last = (
        cause.numbers.get(name) for name in ("every", "within_first", "within_last")
    )
    text = f"{_count(count)} of {steps:,.0f} steps"
    part = "" if first is None or last is None else f"in steps {first:,.0f} to {last:,.0f}"
    if each is not None and each > 1:
        return f"{text}, every {_ordinal(int(each))} {part}".rstrip()
    return f"{text}, all {part}" if part else text


def _few_steps(cause: Cause) -> str:
    """One step or two in words, where they are the same in each repeat; else empty."""
    count, steps = cause.numbers.get("count"), cause.numbers["of_steps"]
    first, last = cause.numbers["first"], cause.numbers["last"]
    if count == 1 and first == 1:
        return f"the first step of {steps:,.0f}, as in a warm-up"
    if count == 1:
        return f"step {first:,.0f} of {steps:,.0f}"
    apart = count == 2 and cause.numbers.get("every") is None
    return f"steps {first:,.0f} and {last:,.0f} of {steps:,.0f}" if apart else ""


def _part(cause: Cause, steps: float) -> str:
    """The part of a run in which ranks have a cause, in words."""
    parts = [cause.parts.get(rank) for rank in cause.ranks]
    known = [part for part in parts if part is not None]
    if not names_ranks(cause):
        return f"a part of the {steps:,.0f} steps"
    if len(known) < len(parts):
        return f"a part of the {steps:,.0f} steps, another one in each run"
    if _same_part(cause):
        first, last = (int(cause.numbers[name]) for name in ("first", "last"))
        return f"steps {first:,} to {last:,} of {steps:,.0f}"
    return f"parts of the {steps:,.0f} steps, not the same ones on each rank"


def _by_parts(cause: Cause) -> str:
    """Which of several ranks has a cause in which part of the run, and how long where they differ;
    empty where they have it in the same part, or in other ones in each run."""
    known = [(rank, *cause.parts[rank]) for rank in cause.ranks if rank in cause.parts]
    steps = cause.numbers["of_steps"]
    if len(known) < max(2, len(cause.ranks)) or _same_part(cause):
        return ""
    if len(known) > _MOST_NAMED:
        apart = cause.numbers.get("at_once", 0.0) < _APART
        own = "each in a part of its own" if apart else "not all in the same part"
        return f"{own} of the {steps:,.0f} steps"
    unlike = len(_unlike(cause)) == len(known)
    texts = [
        f"rank {rank}{f' {number(cause.lengths[rank])} ms' if unlike else ''} in "
        f"{'' if place else 'steps '}{first:,} to {last:,}"
        for place, (rank, first, last) in enumerate(sorted(known, key=lambda each: each[1]))
    ]
    return f"{listed(texts, _MOST_NAMED)} of {steps:,.0f}"


def _same_part(cause: Cause) -> bool:
    """Whether the ranks whose part is known have the same one."""
    ends = list(zip(*cause.parts.values(), strict=True))
    return max((max(each) - min(each) for each in ends), default=0) <= (
        SAME_PART * cause.numbers["of_steps"]
    )


def _count(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def _ordinal(value: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if 10 < value % 100 < 20 else ends.get(value % 10, "th")
    return f"{value:,}{end}"
