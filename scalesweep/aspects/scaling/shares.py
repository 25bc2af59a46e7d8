"""Findings on results that are shares already: the efficiencies that a profile or a source states.

They have no ideal to be held against, so that no verdict is on them: the largest scale's value is
the answer.
"""

from scalesweep.core.formatting import percent
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import (
    NOTE,
    Finding,
    evidence_of,
    number_of,
    one_source,
)

_WORD = "efficiency"
# Factors of the parallel efficiency (POP), as profiles name them, from the whole to its parts.
_FACTORS = (
    "load_balance", "communication_efficiency", "serialisation_efficiency", "transfer_efficiency",
)  # fmt: skip


def stated_efficiency(results: ExperimentResults) -> list[Finding]:
    """An efficiency that leads an experiment, at its largest scale, and the lowest of its factors.

    Nothing where it is a result of our own rates: the verdict is on these.
    """
    main = results.main
    if main is None or main.unit or not main.higher or _WORD not in main.metric:
        return []
    phase = main.steady_phase
    rows = [row for row in one_source(results) if main.value(row, "mean", phase) is not None]
    if not rows:
        return []
    scale = results.scale if results.scale in results.axes else None
    row = (
        max(rows, key=results.scale_of) if scale else min(rows, key=lambda r: _mean(main, r, phase))
    )
    value, low, high = (main.value(row, stat, phase) for stat in ("mean", "low", "high"))
    factors = {
        results.measures[name].label.lower(): share
        for name in _FACTORS
        if name in results.measures
        and (share := results.measures[name].value(row, "mean", phase)) is not None
    }
    lowest = min(factors, key=lambda name: factors[name], default="")
    at = f" at the largest scale, {results.describe(row)}" if results.axes else ""
    numbers = [number_of(label, share, "1") for label, share in factors.items()]
    return [
        Finding(
            results.name, "efficiency", NOTE,
            subject=f"Stated {main.label.lower()}{at}",
            numbers=(*numbers, number_of("efficiency", value, "1", low, high)),
            reason=f"its lowest factor is {lowest}, {percent(factors[lowest])}" if lowest else "",
            flags=() if low is not None else ("a single run",),
            evidence=evidence_of(results, "points", row),
        )
    ]  # fmt: skip


def _mean(main: Measure, row: Row, phase: str) -> float:
    return main.value(row, "mean", phase) or 0.0
