"""Findings on how precise an experiment is by its repeats."""

from scalesweep.analysis.metrics import QUANTITIES, plain_quantity
from scalesweep.analysis.repeat_rule import PRECISE, WIDE
from scalesweep.core.formatting import counted, listed
from scalesweep.core.plan_format import PlanRepeats
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, WARNING, Finding


def until_precise(results: ExperimentResults) -> list[Finding]:
    """Which points stayed wide, and by what rule repeats were added."""
    repeats = results.entry.get("repeats")
    if not repeats:
        return []
    points = repeats["points"]
    wide = [point for point in points if point["state"] == WIDE]
    precise = [point for point in points if point["state"] == PRECISE]
    done = sum(point["done"] for point in points)
    goal = f"±{100 * repeats['until']:.3g} % of {_label(repeats)}"
    text = (
        f"{len(precise):,} of {counted(len(points), 'point')} within {goal} after {done:,} runs "
        f"({repeats['least']} to {repeats['most']} repeats each). Repeats were added by what the "
        f"intervals said, so these are Student's t at {100 * repeats['level']:.1f} %, which cover "
        "the mean in 95 % of such cases."
    )
    evidence = {
        "experiment": results.name,
        "table": "points",
        "key": {},
        "numbers": {"level": repeats["level"], "until": repeats["until"]},
    }
    findings = [Finding(results.name, "repeats", NOTE, text, evidence)]
    if wide:
        named = [
            f"{results.describe(point['point'])}: ±{100 * (point['width'] or 0):.3g} % after "
            f"{counted(point['done'], 'repeat')}"
            for point in sorted(wide, key=lambda point: point["width"] or 0, reverse=True)
        ]
        text = f"{counted(len(wide), 'point')} stayed wide, beyond {goal}: {listed(named, 6)}."
        findings.insert(0, Finding(results.name, "wide", WARNING, text, evidence))
    return findings


def _label(repeats: PlanRepeats) -> str:
    name = repeats["metric"]
    known = QUANTITIES.get(name)
    if known is None:
        if not name:
            return "the main metric"
        known = plain_quantity(name, {"unit": "", "better": "higher", "scope": "total"})
    return known.label[:1].lower() + known.label[1:]
