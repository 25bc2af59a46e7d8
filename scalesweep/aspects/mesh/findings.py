"""What the report says of pipelines whose stages idle for another time than the formula has it."""

from scalesweep.aspects.mesh.table import PipelineIdle
from scalesweep.core.formatting import counted, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence, marked
from scalesweep.table.declared import numbers_of

RULE = "pipeline idle"
# A difference below this share of the computing time is no reason to doubt the formula.
NOTABLE = 0.02


def differs(row: PipelineIdle) -> bool:
    """Whether a point's interval of the difference leaves out 0, and it is worth a word."""
    low, high = row.difference.low, row.difference.high
    if low is None or high is None:
        return False
    return (low > 0 or high < 0) and abs(row.difference.value) >= NOTABLE


def pipeline_idle(results: ExperimentResults) -> list[Finding]:
    """At how many points the idle time differs from (p - 1) / (v m), and where the most: a note,
    which estimates. Nothing where no interval says so; points without repeats have none."""
    rows = results.of(PipelineIdle)
    known = [row for row in rows if row.difference.low is not None]
    apart = [row for row in known if differs(row)]
    if not apart:
        return []
    most = max(apart, key=lambda row: abs(row.difference.value))
    way = "longer" if most.difference.value > 0 else "shorter"
    text = (
        f"stages of pipelines idle for another time than (p - 1) / (v m) says at {len(apart):,} "
        f"of {counted(len(known), 'point')}, by 95 % intervals: at "
        f"{results.describe(most.row)} for {percent(*numbers_of(most.idle))} of what they "
        f"compute, {way} than {percent(most.formula)}"
    )
    if way == "longer":
        text += (
            f"; stages of unequal length alone cause {percent(most.unequal)}, the rest is handing "
            "messages over and waiting for them"
        )
    evidence = declared_evidence(results, most, ("idle", "formula", "unequal"))
    return [Finding(results.name, RULE, NOTE, marked(most.source, f"{text}."), evidence)]


RULES = (Rule(RULE, pipeline_idle),)
