"""Findings on how long training to a target would take at counts that were not measured."""

from scalesweep.aspects.prediction.target_times import TargetTime
from scalesweep.aspects.prediction.words import in_time, predicted_head
from scalesweep.core.formatting import with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, declared_evidence
from scalesweep.table.declared import numbers_of

RULE = "predicted target"
MAX_SERIES = 4


def predicted_target_times(results: ExperimentResults) -> list[Finding]:
    """For each series the largest count with a time to the target, or why the first has none."""
    series: dict[tuple[object, ...], list[TargetTime]] = {}
    names = [name for name in results.axes if name not in results.entry["scale_parameters"]]
    for row in results.of(TargetTime):
        series.setdefault((*results.key(row.point, names), row.based_on), []).append(row)
    return [_finding(results, rows) for rows in list(series.values())[:MAX_SERIES]]


def _finding(results: ExperimentResults, rows: list[TargetTime]) -> Finding:
    row = next((row for row in reversed(rows) if row.time is not None), rows[0])
    label = results.describe(row.point, results.series_names) if results.series_names else ""
    at = results.scaled(results.scale_of(row.point))
    text = f"{predicted_head(row.based_on, label)}: "
    if row.time is None:
        text += f"no time to the target at {at}: {row.refused}."
    else:
        epochs = with_interval(*numbers_of(row.epochs))
        text += (
            f"time to the target at {at}: {in_time(row.time)}; {epochs} epochs, as "
            f"measured at a global batch of {row.global_batch:,} "
            f"({row.epochs_at} {results.scale}), which are never taken from another batch; "
            f"do not trust beyond {row.trusted_to:,}."
        )
    evidence = declared_evidence(results, row, _NUMBERS)
    return Finding(results.name, RULE, NOTE, text, evidence)


_NUMBERS = (
    *("based_on", "time", "time_low", "time_high", "epochs", "epochs_low", "epochs_high"),
    *("epochs_at", "global_batch", "trusted_to", "refused"),
)
