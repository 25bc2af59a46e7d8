"""Findings on rooflines: how much of what its layers could do a step reaches."""

from scalesweep.analysis.roofline import UNRATED
from scalesweep.analysis.stats import share_p
from scalesweep.aspects.roofline.rooflines import PointRoofline, rooflines
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.tables.machine import MEASURED

RULE, APART = "roofline", "layers apart"
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
    low, high, coverage = of_roof.low, of_roof.high, step.coverage or 0.0
    sure = high is not None and high < 1 and not step.growing
    adds_up = LEAST_COVERAGE <= coverage <= MOST_COVERAGE
    gaps = [layer for layer in point.layers if layer.bound != UNRATED and layer.least_ms]
    gap = max(gaps, key=lambda layer: layer.ms.value - (layer.least_ms or 0.0), default=None)
    named = f"; the largest gap is in {gap.layer}, {gap.bound} bound" if gap else ""
    p = share_p(of_roof.value, low, high, step.repeats, 1.0)
    state, rule = (CLEAR if sure else OPEN), RULE
    if not adds_up or (low is not None and low > 1):
        state, rule = NOTE, RULE if adds_up else APART
    evidence = declared_evidence(results, step)
    evidence["key"]["layer"] = step.layer
    return Finding(
        results.name,
        rule,
        state,
        subject=f"At {results.describe(point.row)}" if results.axes else "",
        words={"gap": named if of_roof.value < 1 else ""},
        numbers=(
            estimate_of("of_roof", of_roof, "1"),
            number_of("coverage", coverage, "1"),
        ),
        claims=(claim_of(p, RULE, *results.point_key(point.row)),),
        reason="the ceiling still grew at the last size" if step.growing else "",
        evidence=evidence,
    )


RULES = (
    Rule(
        RULE, step_against_roof,
        says={
            CLEAR: "{subject} the step reaches {of_roof:%} of what its layers could{gap}.",
            NOTE: "{subject} the step is faster than the measured ceilings allow: {of_roof:%}.",
        },
        next={CLEAR: "look at the layer with the largest gap first"},
    ),
    Rule(
        APART, None,
        says={NOTE: "{subject} the layers, timed apart, come to {coverage:%} of the step."},
    ),
)  # fmt: skip
