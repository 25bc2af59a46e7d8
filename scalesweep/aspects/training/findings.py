"""Findings on training: the only point that meets its target, the cost of input."""

from scalesweep.analysis.metrics import column
from scalesweep.aspects.training.input_share import data_loading, input_share
from scalesweep.core.formatting import with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, OPEN, Finding, Rule, evidence_of, marked

_STATS = ("mean", "low", "high")


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
    mean, low, high = (measure.value(row, stat, "run") for stat in _STATS)
    value = with_interval(mean, low, high, measure.unit)
    word = "Only " if len(ran) > 1 else ""
    text = f"{word}{results.describe(row)} meets the target in every run, after {value}"
    single = row["repeats"] == 1
    text += ": a single run, not confirmed." if single else "."
    columns = [column(measure.metric, stat, "run") for stat in _STATS]
    evidence = evidence_of(results, "accuracy", row, columns)
    level = OPEN if single else CLEAR
    return [Finding(results.name, "target", level, marked(row["source"], text), evidence)]


RULES = (
    Rule("target", target_time, figures=("accuracy-",)),
    Rule("input share", input_share, figures=("ranks-input", "ranks-step-input", "phases-")),
    Rule("data loading", data_loading, figures=("phases-",)),
)
