"""A training's tokens/s beside those that the gallery has of comparable ones."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scalesweep.core.formatting import counted, number
from scalesweep.gallery.training_rates import TrainingRate
from scalesweep.table.declared import Estimate

# How much sizes (parameters), scales (ranks) and lengths (tokens of a sample) may differ.
SIZE, SCALE, LENGTH = 1.05, 2.0, 2.0
# Of fewer nothing is said: with n alike, a further one is the lowest of all with 1 / (n + 1).
FEWEST = 3
WITHIN, BELOW, ABOVE, UNCLEAR = "within", "below", "above", "unclear"
NOT_JUDGED = ""


@dataclass(frozen=True)
class Placed:
    """A point beside comparable ones of the gallery.

    ``verdict`` is empty where nothing can be said, and ``reason`` says why. ``left_out``: how many
    points of the gallery are not comparable, by what differs.
    """

    rate: TrainingRate
    references: tuple[TrainingRate, ...]
    verdict: str
    reason: str
    left_out: Mapping[str, int]

    @property
    def values(self) -> list[float]:
        """Tokens/s of a rank of the comparable ones, ascending."""
        return sorted(rate.tokens.value for rate in self.references if rate.tokens)

    @property
    def ratio(self) -> Estimate | None:
        """The point over their median, with the interval of the point."""
        if self.rate.tokens is None or not self.references:
            return None
        middle, mine = statistics.median(self.values), self.rate.tokens
        low, high = (None if end is None else end / middle for end in (mine.low, mine.high))
        return Estimate(mine.value / middle, low, high)


def place(rate: TrainingRate, gallery: Sequence[TrainingRate]) -> Placed:
    """Place a point beside the comparable ones of the gallery."""
    if reason := unfit(rate):
        return Placed(rate, (), NOT_JUDGED, reason, {})
    differences = [(other, difference(rate, other)) for other in gallery]
    references = best_of_each([other for other, why in differences if not why])
    left_out = Counter(why for _, why in differences if why)
    placed = Placed(rate, tuple(references), NOT_JUDGED, "", left_out)
    if len(references) < FEWEST:
        there = counted(len(references), "comparable point")
        reason = (
            f"{there} in the gallery, fewer than {FEWEST}; others differ in {_counts(left_out)}"
        )
        return replace(placed, reason=reason)
    assert rate.tokens
    return replace(placed, verdict=_verdict(rate.tokens, placed.values))


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{why} ({count})" for why, count in left_out.items()) or "nothing"


def unfit(rate: TrainingRate) -> str:
    """Why a point can be compared with none; empty if it can."""
    shape, source = rate.shape, rate.source
    if shape is None:
        return rate.why or (
            "its benchmark declares no transformer, and the gallery has rates of transformers only"
        )
    if rate.tokens is None:
        return "its tokens/s are not known"
    if source not in ("measured", "imported"):
        return f"it is {source}"
    for value, words in (
        (shape.parameters, "its number of parameters is not stated (transformer.parameters)"),
        (shape.dtype, "the type of its numbers is not stated (transformer.dtype, or --dtype)"),
        (shape.device, "its device is not stated (transformer.device, or --device)"),
    ):
        if value is None:
            return words
    return ""


def difference(rate: TrainingRate, other: TrainingRate) -> str:
    """Why two points are not comparable: what differs first; empty if they are comparable."""
    if unfit(other):
        return "what they state"
    mine, theirs = rate.shape, other.shape
    assert mine and theirs and mine.parameters and theirs.parameters
    if mine.device != theirs.device:
        return "device"
    if mine.dtype != theirs.dtype:
        return "type of numbers"
    for words, own, others, most in (
        ("parameters", mine.parameters, theirs.parameters, SIZE),
        ("ranks", rate.ranks, other.ranks, SCALE),
        ("tokens of a sample", mine.sequence, theirs.sequence, LENGTH),
    ):
        if abs(math.log(own / others)) > math.log(most) * (1 + 1e-9):
            return words
    return ""


def best_of_each(rates: Sequence[TrainingRate]) -> list[TrainingRate]:
    """The fastest of each study, model, scale and length: a study of layouts has many slow ones."""
    best: dict[tuple[object, ...], TrainingRate] = {}
    for rate in rates:
        assert rate.shape and rate.tokens
        key = (rate.origin, rate.shape.parameters, rate.ranks, rate.shape.sequence)
        there = best.get(key)
        if there is None or (there.tokens and rate.tokens.value > there.tokens.value):
            best[key] = rate
    return list(best.values())


def _verdict(mine: Estimate, values: Sequence[float]) -> str:
    """Where an estimate lies; unclear where its interval crosses the end that it lies beyond."""
    if values[0] <= mine.value <= values[-1]:
        return WITHIN
    if mine.value < values[0]:
        return UNCLEAR if mine.high is not None and mine.high >= values[0] else BELOW
    return UNCLEAR if mine.low is not None and mine.low <= values[-1] else ABOVE


def sentence(placed: Placed) -> str:
    """What is said of a point."""
    rate, values = placed.rate, placed.values
    if not placed.references:
        return f"{rate.label}: not judged: {placed.reason}."
    assert rate.tokens and rate.shape
    mine = f"{rate.label}: {number(rate.tokens.value, 4)} tokens/s of a rank"
    studies = len({other.origin for other in placed.references})
    ends = dict.fromkeys((number(values[0], 4), number(values[-1], 4)))
    theirs = (
        f"{counted(len(values), 'comparable published point')} "
        f"({counted(studies, 'study', 'studies')}): {' to '.join(ends)}"
    )
    count = len(values) + 1
    chance = f"if all {count} were alike, it would be the %s in {100 / count:.0f} %% of cases"
    verdicts = {
        WITHIN: "normal, within what is published",
        BELOW: f"lower than all of them ({chance % 'lowest'})",
        ABOVE: f"higher than all of them ({chance % 'highest'})",
        UNCLEAR: "at their edge, within its interval",
        NOT_JUDGED: f"not judged: {FEWEST} are needed",
    }
    return f"{mine}; {theirs}; {verdicts[placed.verdict]}."
