"""Findings on rooflines: how much of what its layers could do a step reaches."""

from scalesweep.analysis.roofline import LAUNCH, UNRATED
from scalesweep.aspects.roofline.rooflines import PointRoofline, rooflines
from scalesweep.aspects.roofline.table import LayerRow
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CONFIRMED,
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
CORES = "layer_core_coverage"  # metric: coverage by the time of all cores
# Layers' sum over the step: outside of this the layers say little about the step.
LEAST_COVERAGE, MOST_COVERAGE = 0.8, 1.25
_WORDS = {"compute": "compute bound", "memory": "memory bound", LAUNCH: "launch bound"}


def step_against_roof(results: ExperimentResults) -> list[Finding]:
    """For each roofline, at its largest and smallest local batch, what the step reaches.

    Nothing without measured ceilings, but that no roofline is drawn where no peaks are there
    either. A note where the layers do not account for the step, or it is faster than the ceilings.
    """
    groups = rooflines(results)
    if groups and not any(point.roofs for group in groups for point in group):
        text = (
            "No roofline is drawn: the campaign has measured no ceilings (experiments of "
            "compute_peak and memory_bandwidth), and the site file has no peaks; the table "
            "roofline has FLOP, bytes and times of the layers"
        )
        evidence = {"experiment": results.name, "table": "roofline", "key": {}, "numbers": {}}
        return [Finding(results.name, RULE, NOTE, f"{text}.", evidence)]
    findings = []
    for group in groups:
        ends = [group[0]]
        if group[-1].local_batch != group[0].local_batch:
            ends.append(group[-1])
        findings += [finding for point in ends for finding in _finding(results, point)]
    return findings


def _finding(results: ExperimentResults, point: PointRoofline) -> list[Finding]:
    """What a step reaches of what the ceilings allow at a point; a note where the layers do not add
    up to the step, nothing where no ceiling was measured."""
    step, of_roof = point.step, point.step.of_roof
    if MEASURED not in point.roofs or of_roof is None:
        return []
    where = f"at {results.describe(point.row)} " if results.axes else ""
    coverage = step.coverage or 0.0
    if not LEAST_COVERAGE <= coverage <= MOST_COVERAGE:
        text = (
            f"{where}the layers, timed apart, come to {percent(coverage)} of the step: what they "
            f"could do says little about the step{_side_by_side(results, point, coverage)}"
        )
        return [_made(results, point, NOTE, text)]
    low, high = of_roof.low, of_roof.high
    if low is not None and low > 1:
        text = (
            f"{where}the step is faster than the measured ceilings allow "
            f"({percent(of_roof.value, low, high)}): its arrays stay in caches, or the "
            "ceilings were measured too low"
        )
        return [_made(results, point, NOTE, text)]
    reached = percent(of_roof.value, low, high)
    text = f"{where}the step reaches {reached} of what its layers could on this machine"
    # Of a layer without products the least time is that of its bytes, which others may exceed.
    gap = max((layer for layer in point.layers if layer.bound != UNRATED), key=_gap, default=None)
    if gap is not None and of_roof.value < 1 and _gap(gap) > 0:
        several = f" ({gap.count} layers)" if gap.count > 1 else ""
        bound = f", {_WORDS[gap.bound]}" if gap.bound in _WORDS else ""
        text += (
            f"; the largest gap is in {gap.layer}{several}{bound}: {number(gap.ms.value)} ms, "
            f"where {number(gap.least_ms)} ms would do"
        )
    small = [layer for layer in point.layers if layer.bound == LAUNCH]
    launched = sum(layer.ms.value for layer in small)
    if launched > 0.2 * step.ms.value:
        text += f"; {percent(launched / step.ms.value)} of it is launch bound"
    others = sum(layer.ms.value for layer in point.layers if layer.bound == UNRATED)
    if others > 0.1 * step.ms.value:
        text += (
            f"; {percent(others / step.ms.value)} of it is in layers without products, of which "
            "only the bytes are held against a ceiling"
        )
    growing = point.growing
    if growing:
        text += (
            "; the ceiling of computation still grew at the last size tried, so the step reaches "
            "less than that"
        )
    sure = high is not None and high < 1 and not growing
    if low is None:
        text += "; not confirmed: without repeats of step and ceilings it has no interval"
    elif not high or high >= 1:
        text += "; not confirmed to be less than all of it by its interval"
    return [_made(results, point, CONFIRMED if sure else OPEN, text)]


def _side_by_side(results: ExperimentResults, point: PointRoofline, coverage: float) -> str:
    """What is said of layers that take longer apart than in the step, but no more of its cores."""
    measure = results.measures.get(CORES)
    key = point_key(results, point.row)
    rows = [row for row in results.points if point_key(results, row) == key]
    if measure is None or not rows or coverage <= 1:
        return ""
    cores = measure.value(rows[0], "mean", "run")
    if cores is None or not LEAST_COVERAGE <= cores <= MOST_COVERAGE:
        return ""
    return (
        f"; of the time of all cores they come to {percent(cores)}, so the step runs operations "
        "side by side for which a layer alone has too few"
    )


def _gap(layer: LayerRow) -> float:
    """What a kind of layer takes more than the least, in ms."""
    return 0.0 if layer.least_ms is None else layer.ms.value - layer.least_ms


def _made(results: ExperimentResults, point: PointRoofline, level: str, text: str) -> Finding:
    step, of_roof = point.step, point.step.of_roof
    assert of_roof is not None
    evidence = {
        "experiment": results.name,
        "table": LayerRow.TABLE,
        "key": {name: point.row.get(name) for name in results.axes}
        | {"source": point.row["source"], "layer": step.layer},
        "numbers": {
            "of_roof": of_roof.value, "low": of_roof.low, "high": of_roof.high,
            "coverage": step.coverage,
        },
    }  # fmt: skip
    p = share_p(of_roof.value, of_roof.low, of_roof.high, point.repeats, 1.0)
    claims = (claim_of(p, RULE, *point_key(results, point.row)),)
    text = marked(point.row["source"], f"{text}.")
    return Finding(results.name, RULE, level, text, evidence, claims=claims)


RULES = (Rule(step_against_roof, figures={RULE: ("roofline",)}),)
