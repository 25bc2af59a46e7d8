"""What the report says of pipelines whose stages idle for another time than the formula has it."""

from scalesweep.aspects.mesh.table import PipelineIdle
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    NOTE,
    Finding,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)

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
    """The point whose idle time differs most from (p - 1) / (v m): a note, which estimates."""
    apart = [row for row in results.of(PipelineIdle) if differs(row)]
    if not apart:
        return []
    most = max(apart, key=lambda row: abs(row.difference.value))
    numbers = (
        estimate_of("idle", most.idle, "1"), number_of("formula", most.formula, "1"),
        number_of("unequal", most.unequal, "1"),
    )  # fmt: skip
    return [
        Finding(
            results.name, RULE, NOTE, subject=results.describe(most.row), numbers=numbers,
            evidence=declared_evidence(results, most),
        )
    ]  # fmt: skip


RULES = (
    Rule(
        RULE, pipeline_idle, figures=("mesh-steps",),
        says={
            NOTE: "{subject}: pipeline stages wait for {idle:%} of their computing time; "
            "the ideal is {formula:%}, unequal stages cause {unequal:%}."
        },
        next={NOTE: "give the stages equal work, or a step more micro-batches"},
    ),
)  # fmt: skip
