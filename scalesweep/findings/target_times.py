"""Findings on how long training to a target would take at counts that were not measured."""

from scalesweep.core.formatting import finite, with_interval
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import NOTE, Finding, evidence_of
from scalesweep.findings.prediction import predicted_head
from scalesweep.tables.prediction import prediction_column

RULE = "predicted target"
MAX_SERIES = 4
# Seconds from which a time is given in a unit, and what that is.
_UNITS = ((36_000.0, 3600.0, "h"), (600.0, 60.0, "min"), (0.0, 1.0, "s"))


def predicted_target_times(results: ExperimentResults) -> list[Finding]:
    """For each series the largest count with a time to the target, or why the first has none."""
    series: dict[tuple[object, ...], list[Row]] = {}
    names = [name for name in results.axes if name not in results.entry["scale_parameters"]]
    for row in results.rows("target_times"):
        based_on = row[prediction_column("based_on", results.axes)]
        series.setdefault((*results.key(row, names), based_on), []).append(row)
    return [_finding(results, rows) for rows in list(series.values())[:MAX_SERIES]]


def _finding(results: ExperimentResults, rows: list[Row]) -> Finding:
    title = {name: prediction_column(name, results.axes) for name in _NAMES}
    good = [row for row in rows if finite(row[title["time"]])]
    row = good[-1] if good else rows[0]
    texts = {name: row[column] for name, column in title.items()}
    label = results.describe(row, results.series_names) if results.series_names else ""
    head = predicted_head(str(texts["based_on"]), label)
    at = results.scaled(results.scale_of(row))
    if not good:
        text = f"{head}: no time to the target at {at}: {texts['refused']}."
    else:
        epochs = with_interval(texts["epochs"], texts["epochs_low"], texts["epochs_high"])
        text = (
            f"{head}: time to the target at {at}: "
            f"{in_time(texts['time'], texts['time_low'], texts['time_high'])}; {epochs} epochs, as "
            f"measured at a global batch of {texts['global_batch']:,} "
            f"({texts['epochs_at']} {results.scale}), which are never taken from another batch; "
            f"do not trust beyond {texts['trusted_to']:,}."
        )
    evidence = evidence_of(results, "target_times", row, list(title.values()))
    return Finding(results.name, RULE, NOTE, text, evidence)


_NAMES = (
    *("based_on", "time", "time_low", "time_high", "epochs", "epochs_low", "epochs_high"),
    *("epochs_at", "global_batch", "trusted_to", "refused"),
)


def in_time(seconds: float, low: float, high: float) -> str:
    """A time with its interval in the unit that suits it."""
    size, unit = next((size, unit) for least, size, unit in _UNITS if seconds >= least)
    start, end = (value / size if finite(value) else None for value in (low, high))
    return with_interval(seconds / size, start, end, unit)
