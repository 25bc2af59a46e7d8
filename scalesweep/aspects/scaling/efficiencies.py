"""Efficiencies of a series as findings and the small figure of a card use them."""

from dataclasses import dataclass

from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import Claim, claim_of
from scalesweep.findings.totals import APART, apart_of, unsure

# From this on an efficiency is no result to go by: published tables have such rows where the base
# and the larger scale were not measured alike. Caches alone make of strong scaling 1.1 or 1.2.
BEYOND = 1.3
BEYOND_WHY = (
    "more than the ideal, so the base or this scale did other work or ran under other conditions "
    "(caches, files, clocks): check both"
)
# No scale makes ranks so much slower than the one before: units of 1,000 do.
JUMP = 300.0
JUMP_WHY = (
    f"less than 1/{JUMP:.0f} of what the scale before reaches, as by a change of unit (thousands "
    "of images): check what the program prints"
)


@dataclass(frozen=True)
class Efficiency:
    """Total efficiency of a point: value and 95 % interval (None if there is none).

    ``said``: the interval that decides on which side of the target it is, which sentences print.
    """

    row: Row
    count: int  # of ranks, or of devices
    at: str  # the same in words
    value: float
    low: float | None
    high: float | None
    claim: Claim  # that it is not the target
    target: float
    said: tuple[float, float] | None = None
    jump: bool = False  # whether it is far below that of the scale before
    apart: float = 0.0  # share by which ranks differ in what they print of the same total

    @property
    def odd(self) -> str:
        """Why it is no result to go by; empty if it is one."""
        if self.value > BEYOND and (self.low is None or self.low > 1):
            return BEYOND_WHY
        if self.jump:
            return JUMP_WHY
        low, high = self.value if self.low is None else self.low, self.high or self.value
        held = low / (1 + self.apart) >= self.target or high * (1 + self.apart) < self.target
        if self.apart > APART or (self.apart and not held):
            return f"not certain: {unsure(self.apart)}"
        return ""

    @property
    def side(self) -> str:
        """``above`` or ``below`` the target, ``straddles`` it, or ``~above``/``~below`` without an
        interval; ``odd`` where it is no result."""
        if self.odd:
            return "odd"
        if self.said is None:
            return "~below" if self.value < self.target else "~above"
        if self.said[1] < self.target:
            return "below"
        return "above" if self.said[0] >= self.target else "straddles"


def efficiencies(results: ExperimentResults, series: Series, phase: str) -> list[Efficiency]:
    """Efficiencies of a series without its base, by scale, as the table of comparisons has them."""
    measure = results.scaled_measure
    if measure is None:
        return []
    apart = apart_of(results, measure.metric)
    before, jump = 1.0, False
    points = []
    for row in series.rows[1:]:
        known = results.shares.get((results.key(row), row["source"], measure.metric, phase))
        if known is None or known.ratio is None:
            continue
        value, low, high = known.ratio.value, known.ratio.low, known.ratio.high
        jump = value < before / JUMP or (jump and value < before * JUMP)
        before = value
        said = (known.decides_low, known.decides_high)
        points.append(
            Efficiency(
                row, results.scale_of(row), results.scaled(results.scale_of(row)),
                value, low, high,
                claim_of(known.p, "efficiency", phase, known.point_id, known.base_id),
                results.target,
                None if said[0] is None or said[1] is None else (said[0], said[1]),
                jump, apart,
            )
        )  # fmt: skip
    return points
