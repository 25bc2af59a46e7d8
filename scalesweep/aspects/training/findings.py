"""Findings on training: the best by what it costs, and the share of input."""

from scalesweep.aspects.training.input_share import input_findings
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    ATTENTION,
    BEST_SAYS,
    CLEAR,
    REPEAT,
    Finding,
    Rule,
    evidence_of,
    number_of,
)


def target_time(results: ExperimentResults) -> list[Finding]:
    """The only point of which every run met its target; of several the comparison says which is
    the fastest."""
    measure = results.measures.get("time_to_target")
    ran = [row for row in results.rows("accuracy") if row.get("repeats")]
    whole = [
        row for row in ran if row.get("reached") == row["repeats"] and not results.unfinished(row)
    ]
    if measure is None or len(whole) != 1:
        return []
    (row,) = whole
    time = number_of("time", *(measure.value(row, "mean", "run"), measure.unit or "1"),
                     *(measure.value(row, stat, "run") for stat in ("low", "high")))  # fmt: skip
    return [
        Finding(
            results.name, "training", ATTENTION, subject=results.describe(row), numbers=(time,),
            evidence=evidence_of(results, "accuracy", row) | {"figures": ["accuracy-"]},
            reason="a single run" if row["repeats"] == 1 else "",
        )
    ]  # fmt: skip


RULES = (
    # Of several points the comparison says the best.
    Rule(
        "training", target_time,
        says={**BEST_SAYS, ATTENTION: "Only {subject} meets its target in every run, in {time}."},
        next={**REPEAT, ATTENTION: "train other points longer, or lower the target"},
    ),
    Rule(
        "input share", input_findings,
        figures=("ranks-input", "ranks-step-input", "phases-"),
        says={CLEAR: "{what} takes its largest share of {whole} at {subject}: {share:%}."},
        next={CLEAR: "{how}"},
    ),
)  # fmt: skip
