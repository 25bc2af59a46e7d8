"""Metrics that a campaign states by formulas, worked out for each finished run of a summary."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from scalesweep.analysis.metrics import EPOCH_METRICS, column
from scalesweep.analysis.types import Floats
from scalesweep.config.derived_metrics import FACTS, FIRST
from scalesweep.config.formula import Formula
from scalesweep.core.plan_format import DerivedEntry, PlanExperiment
from scalesweep.core.status import Status

if TYPE_CHECKING:
    import pandas as pd


def with_derived(summary: "pd.DataFrame", experiments: Iterable[PlanExperiment]) -> "pd.DataFrame":
    """The summary with a column for each derived metric, missing where a run lacks a number that
    its formula reads, or where that has no finite value (a division by zero)."""
    place_of = {run_id: place for place, run_id in enumerate(summary["run_id"].tolist())}
    added: dict[str, Floats] = {}
    meanings: dict[str, dict[str, Any]] = {}
    for entry in experiments:
        for name, stated in entry.get("derived", {}).items():
            title = column(name, "mean", "run")
            values = added.setdefault(title, np.full(len(summary), math.nan))
            for run_id, value in _values(summary, entry, stated, place_of).items():
                values[place_of[run_id]] = value
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


def missing_everywhere(summary: "pd.DataFrame", experiments: Iterable[PlanExperiment]) -> list[str]:
    """A line for each derived metric that no finished run of its experiment has, and why."""
    place_of = {run_id: place for place, run_id in enumerate(summary["run_id"].tolist())}
    lines = []
    for entry in experiments:
        done = [r["run_id"] for r in entry["runs"] if r["status"] == Status.DONE]
        places = [place_of[run_id] for run_id in done if run_id in place_of]
        for name, stated in entry.get("derived", {}).items():
            values = summary[column(name, "mean", "run")].to_numpy(np.float64)[places]
            if not places or np.isfinite(values).any():
                continue
            formula = _formula(stated)
            points = [run["point"] for run in entry["runs"] if run["run_id"] in set(done)]
            lacks = [
                source
                for source in formula.reads.values()
                if not np.isfinite(_column(summary, source)[places]).any()
                and not any(_is_number(point.get(source)) for point in points)
            ]
            why = f"no run has {', '.join(lacks)}" if lacks else "its formula has no finite value"
            lines.append(f"{entry['name']}: metric {name} is missing everywhere: {why}")
    return lines


def _values(
    summary: "pd.DataFrame",
    entry: PlanExperiment,
    stated: DerivedEntry,
    place_of: Mapping[str, int],
) -> dict[str, float]:
    """The value of a formula for each run of an experiment that has one."""
    formula = _formula(stated)
    columns = {name: _column(summary, source) for name, source in formula.reads.items()}
    values = {}
    for run in entry["runs"]:
        place = place_of.get(run["run_id"])
        if place is None:
            continue
        numbers: dict[str, float] = {}
        for name, source in formula.reads.items():
            point = run["point"]
            value = point[source] if source in point else float(columns[name][place])
            if not _is_number(value):
                break
            numbers[name] = value
        else:
            try:
                values[run["run_id"]] = float(formula(numbers))
            except (ValueError, OverflowError):  # a division by zero
                continue
    return values


def _formula(stated: DerivedEntry) -> Formula:
    """The formula of a metric, whose names were looked up when the campaign was read."""
    meant = {name: [source] for name, source in stated["reads"].items()}
    return Formula(stated["formula"], "metrics", meant, "metric")


def _column(summary: "pd.DataFrame", source: str) -> Floats:
    """A metric or fact of every run; all NaN where there is none."""
    first = source.removesuffix(FIRST)
    if source in FACTS:
        title = source
    elif source in EPOCH_METRICS:
        title = column(source, "mean", "later")
    elif first in EPOCH_METRICS:
        title = column(first, "mean", "init")
    else:
        title = column(source, "mean", "run")
    if title not in summary:
        return np.full(len(summary), math.nan)
    return summary[title].to_numpy(np.float64, na_value=math.nan)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
