"""Findings on training: the only point that meets its target, the cost of input."""

from scalesweep.aspects.training.input_share import data_loading, input_share
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, NOTE, Finding, Rule, evidence_of, number_of


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
            results.name, "only at target", NOTE, subject=results.describe(row), numbers=(time,),
            evidence=evidence_of(results, "accuracy", row),
            reason="a single run" if row["repeats"] == 1 else "",
        )
    ]  # fmt: skip


RULES = (
    Rule(
        "only at target", target_time, figures=("accuracy-",),
        says={NOTE: "The only point that meets its target in every run, {subject}, takes {time}."},
        next={NOTE: "train other points longer, or lower the target"},
    ),
    Rule(
        "input share", input_share, figures=("ranks-input", "ranks-step-input", "phases-"),
        says={CLEAR: "Waiting for input takes its largest share at {subject}: {share:%}."},
        next={CLEAR: "compare more parallel reads, more prefetching or a cache"},
    ),
    Rule("data loading", data_loading, figures=("phases-",),
         says={CLEAR: "Data loading takes the largest share of a run at {subject}: {share:%}."},
         next={CLEAR: "keep the data in memory or on a local disk, or load it while training"}),
)  # fmt: skip
