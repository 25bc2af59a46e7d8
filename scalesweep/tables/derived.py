"""Metrics that a campaign states by formulas, worked out for each finished run of a summary."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from scalesweep.analysis.metrics import EPOCH_METRICS, column
from scalesweep.analysis.types import Floats
from scalesweep.config.derived_metrics import FACTS, FIRST
from scalesweep.core.expressions import Formula
from scalesweep.core.plan_format import PlanExperiment

if TYPE_CHECKING:
    import pandas as pd


def with_derived(summary: "pd.DataFrame", experiments: Iterable[PlanExperiment]) -> "pd.DataFrame":
    """The summary with a column for each derived metric, missing where a run lacks a number that
    its formula reads, or where that has no finite value (a division by zero)."""
    added: dict[str, Floats] = {}
    meanings: dict[str, dict[str, Any]] = {}
    for entry in experiments:
        points = {run["run_id"]: run["point"] for run in entry["runs"]}
        places = [place for place, run in enumerate(summary["run_id"].tolist()) if run in points]
        for name, stated in entry.get("derived", {}).items():
            title = column(name, "mean", "run")
            values = added.setdefault(title, np.full(len(summary), math.nan))
            # Its names were looked up when the campaign was read.
            meant = {short: [source] for short, source in stated["reads"].items()}
            formula = Formula(stated["formula"], "metrics", meant, "metric")
            columns = {source: _column(summary, source) for source in formula.reads.values()}
            for place in places:
                known = {source: of[place] for source, of in columns.items()}
                known |= points[summary["run_id"].iloc[place]]
                values[place] = _value(formula, known)
            meanings.setdefault(entry["benchmark"], {})[name] = {
                key: value for key, value in stated.items() if key != "reads"
            }
    if not added:
        return summary
    import pandas as pd  # not before a metric is stated: records are read without it

    known = summary.attrs.get("metrics", {})
    both = {of: {**known.get(of, {}), **meanings.get(of, {})} for of in {**known, **meanings}}
    whole = pd.concat([summary, pd.DataFrame(added, index=summary.index)], axis=1)
    whole.attrs = {**summary.attrs, "metrics": both}
    return whole


def _value(formula: Formula, known: Mapping[str, Any]) -> float:
    """The value of a formula for a run; NaN without one."""
    numbers = {name: known[source] for name, source in formula.reads.items()}
    if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers.values()):
        return math.nan
    try:
        return float(formula(numbers))
    except (ValueError, OverflowError):  # a division by zero
        return math.nan


def _column(summary: "pd.DataFrame", source: str) -> Floats:
    """A metric or fact of every run; all NaN where there is none."""
    first = source.removesuffix(FIRST)
    title = column(source, "mean", "later" if source in EPOCH_METRICS else "run")
    if source in FACTS:
        title = source
    elif first != source and first in EPOCH_METRICS:
        title = column(first, "mean", "init")
    if title not in summary:
        return np.full(len(summary), math.nan)
    return summary[title].to_numpy(np.float64, na_value=math.nan)
