"""Findings on rooflines: how much of what its layers could do a step reaches."""

from scalesweep.analysis.roofline import UNRATED
from scalesweep.aspects.roofline.rooflines import PointRoofline, rooflines
from scalesweep.aspects.roofline.table import LayerRow
from scalesweep.core.formatting import percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    claim_of,
    marked,
    point_key,
)
from scalesweep.findings.differences import share_p
from scalesweep.tables.ceilings import MEASURED

RULE = "roofline"
# Layers' sum over the step: outside of this the layers say little about the step.
LEAST_COVERAGE, MOST_COVERAGE = 0.8, 1.25


def step_against_roof(results: ExperimentResults) -> list[Finding]:
    """For each roofline, at its largest and smallest local batch, what the step reaches; nothing
    without measured ceilings."""
    findings = []
    for group in rooflines(results):
        ends = {point.local_batch: point for point in (group[-1], group[0])}
        findings += [
            _finding(results, point)
            for point in reversed(ends.values())
            if point.step.roof == MEASURED
        ]
    return findings


def _finding(results: ExperimentResults, point: PointRoofline) -> Finding:
    """What a step reaches of what the ceilings allow; a note where the layers do not add up to the
    step, or it is faster than the ceilings."""
    step, of_roof = point.step, point.step.of_roof
    assert of_roof is not None
    at = f"at {results.describe(point.row)} " if results.axes else ""
    coverage = step.coverage or 0.0
    low, high = of_roof.low, of_roof.high
    reached = percent(of_roof.value, low, high)
    level = CLEAR if high is not None and high < 1 and not step.growing else OPEN
    gaps = [layer for layer in point.layers if layer.bound != UNRATED and layer.least_ms]
    if not LEAST_COVERAGE <= coverage <= MOST_COVERAGE:
        level = NOTE
        text = f"{at}the layers, timed apart, come to {percent(coverage)} of the step: no share"
    elif low is not None and low > 1:
        level = NOTE
        text = f"{at}the step is faster than the measured ceilings allow ({reached}): caches"
    else:
        text = f"{at}the step reaches {reached} of what its layers could"
        if gaps and of_roof.value < 1:
            gap = max(gaps, key=lambda layer: layer.ms.value - (layer.least_ms or 0.0))
            text += f"; the largest gap is in {gap.layer}, {gap.bound} bound"
        if step.growing:
            text += "; the ceiling still grew at the last size"
    evidence = {
        "experiment": results.name,
        "table": LayerRow.TABLE,
        "key": {name: point.row.get(name) for name in results.axes}
        | {"source": point.row["source"], "layer": step.layer},
        "numbers": {"of_roof": of_roof.value, "low": low, "high": high, "coverage": coverage},
    }
    p = share_p(of_roof.value, low, high, step.repeats, 1.0)
    claims = (claim_of(p, RULE, *point_key(results, point.row)),)
    text = marked(point.row["source"], f"{text}.")
    return Finding(results.name, RULE, level, text, evidence, claims=claims)


RULES = (Rule(RULE, step_against_roof, figures=("roofline",)),)
