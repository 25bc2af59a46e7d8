"""Findings on input: the share of training that it takes, and that of loading data before it."""

import math
from typing import Any

import numpy as np

from scalesweep.analysis.stats import mean_interval, without_interval
from scalesweep.aspects.training.table import curve_column
from scalesweep.core.formatting import counted, finite, percent, with_interval
from scalesweep.experiment.learning import learns
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import CLEAR, OPEN, Finding, claim_of, evidence_of, marked
from scalesweep.findings.differences import share_p

# A share of the run spent loading data below this is not worth a sentence.
NOTABLE_LOADING = 0.1


def input_share(results: ExperimentResults) -> list[Finding]:
    """The share of training that ranks wait for input, at the point where it is largest.

    Of each run the seconds that a rank waits for batches over those of its training, both means
    over the ranks and summed over the epochs; the interval is that of the mean over repeats.
    """
    waited, trained = (curve_column(name, results.axes) for name in ("span_input", "local_times"))
    sums: dict[Key, dict[str, tuple[float, float]]] = {}
    rows: dict[Key, Row] = {}
    for row in results.rows("epochs"):
        if finite(row.get(waited), row.get(trained)) and learns(results, row):
            key = (*results.key(row, results.axes), row["source"])
            rows.setdefault(key, row)
            run = sums.setdefault(key, {})
            before = run.get(row["run_id"], (0.0, 0.0))
            run[row["run_id"]] = (before[0] + row[waited], before[1] + row[trained])
    shares = {
        key: np.array([part / whole for part, whole in runs.values() if whole > 0])
        for key, runs in sums.items()
    }
    shares = {key: values for key, values in shares.items() if values.size}
    if not shares:
        return []
    key = max(shares, key=lambda key: float(shares[key].mean()))
    row, values = rows[key], shares[key]
    mean, interval = float(values.mean()), mean_interval(values)
    sure = math.isfinite(interval.high)
    numbers: dict[str, Any] = {"share": mean, "low": interval.low, "high": min(interval.high, 1.0)}
    text = f"waiting for input takes {percent(mean, numbers['low'], numbers['high'])} of training"
    text += f" at {results.describe(row)}" if results.axes else ""
    text += f", the most measured at {counted(len(shares), 'point')}" if len(shares) > 1 else ""
    text += "." if sure else f"; {without_interval(values)}, not confirmed."
    evidence = evidence_of(results, "epochs", row, ()) | {"numbers": numbers}
    level = CLEAR if sure else OPEN
    return [Finding(results.name, "input share", level, marked(row["source"], text), evidence)]


def data_loading(results: ExperimentResults) -> list[Finding]:
    """Where loading data before training takes a notable share of the run."""
    notable = [
        row
        for row in results.rows("phases")
        if row["phase"] == "data_loading"
        and finite(row.get("share"))
        and row["share"] >= NOTABLE_LOADING
    ]
    if not notable:
        return []
    row = max(notable, key=lambda row: float(row["share"]))
    sure = finite(row["share_low"]) and row["share_low"] >= NOTABLE_LOADING
    share = percent(row["share"], row["share_low"], row["share_high"])
    text = f"data loading takes {share} of the run's phases at {results.describe(row)}"
    text += f" ({with_interval(row['seconds'], row['seconds_low'], row['seconds_high'], 's')})"
    if len(notable) > 1:
        text += f", the most of {counted(len(notable), 'point')} where it takes 10 % or more"
    text += "." if sure else "; no interval, or a wide one: not confirmed."
    columns = ("share", "share_low", "share_high", "seconds", "seconds_low", "seconds_high")
    evidence = evidence_of(results, "phases", row, columns)
    level = CLEAR if sure else OPEN
    ends = (row["share_low"], row["share_high"])
    p = share_p(row["share"], *ends, row.get("runs"), NOTABLE_LOADING)
    # The largest of so many.
    claims = (claim_of(min(1.0, p * len(notable)), "data loading"),)
    text = marked(row["source"], text)
    return [Finding(results.name, "data loading", level, text, evidence, claims=claims)]
