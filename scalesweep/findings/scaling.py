"""Efficiencies of a series as findings and the small figure of a card use them."""

from dataclasses import dataclass

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import finite, percent
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import Claim, claim_of, point_key
from scalesweep.findings.differences import Differences

GOOD = 0.8
# From this on an efficiency is no result to go by: published tables have such rows where the base
# and the larger scale were not measured alike. Caches alone make of strong scaling 1.1 or 1.2.
BEYOND = 1.3
BEYOND_WHY = (
    "more than the ideal, so the base or this scale did other work or ran under other conditions "
    "(caches, files, clocks): check both"
)


@dataclass(frozen=True)
class Efficiency:
    """Total efficiency of a point: value and 95 % interval (None where there is none)."""

    row: Row
    count: int  # of ranks, or of devices
    at: str  # the same in words
    value: float
    low: float | None
    high: float | None
    claim: Claim  # that it is not 80 %

    @property
    def includes_good(self) -> bool:
        """Whether its own interval holds 80 %."""
        return self.low is not None and self.high is not None and self.low < GOOD <= self.high

    @property
    def beyond(self) -> bool:
        """Whether it is so far above the ideal that something else than the scale differs."""
        return self.value > BEYOND and (self.low is None or self.low > 1)

    def side(self, cut: float) -> str:
        """``above`` or ``below`` 80 %, ``straddles`` it, or ``~above``/``~below`` unconfirmed;
        ``beyond`` what can be.

        ``cut``: up to which p value it is clear of 80 % (``family``).
        """
        if self.beyond:
            return "beyond"
        if self.low is None or self.high is None:
            return "~below" if self.value < GOOD else "~above"
        if self.claim.p > cut:
            return "straddles"
        if self.high < GOOD:
            return "below"
        return "above" if self.low >= GOOD else "straddles"

    @property
    def text(self) -> str:
        """The efficiency with its interval, or with a word on what it lacks."""
        unsure = "" if self.low is not None else " (no interval)"
        return f"{percent(self.value, self.low, self.high)}{unsure}"


def scaled_differences(study: ExperimentResults, phase: str) -> Differences | None:
    """Tests of the metric that efficiencies are of: made once for all series, as it reads the
    repeats of all points."""
    measure = study.scaled_measure
    return None if measure is None else Differences(study, measure.metric, phase)


def efficiencies(
    study: ExperimentResults, series: Series, phase: str, differences: Differences | None
) -> list[Efficiency]:
    """Efficiencies of a series without its base, by scale; tested by ``scaled_differences``."""
    stem, base = study.scaled_stem, series.rows[0]
    found = []
    for row in series.rows[1:]:
        value, low, high = (
            row.get(column(f"{stem}_{part}", "", phase)) for part in ("eff", "eff_low", "eff_high")
        )
        if finite(value):
            known = finite(low, high)
            p = None
            if known and differences is not None:
                p = differences.p_of_share(row, base, value, (low, high), GOOD)
            what = (phase, *point_key(study, row), *point_key(study, base))
            found.append(
                Efficiency(
                    row,
                    study.scale_of(row),
                    study.scaled(study.scale_of(row)),
                    value,
                    low if known else None,
                    high if known else None,
                    claim_of(p, "efficiency", *what),
                )
            )
    return found


def efficiency_columns(study: ExperimentResults, phase: str) -> list[str]:
    """Columns of the efficiency and its interval in the table ``scaling``."""
    return [
        column(f"{study.scaled_stem}_{part}", "", phase) for part in ("eff", "eff_low", "eff_high")
    ]
