"""Metrics of an experiment as figures, findings and report show them: in readable units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from scalesweep.analysis.metrics import column, split_column
from scalesweep.core.formatting import finite, scaled_unit
from scalesweep.core.plan_format import PlanExperiment


@dataclass
class Measure:
    """A metric of an experiment: what it means, and its values in a readable unit."""

    metric: str
    label: str
    unit: str
    higher: bool
    factor: float = 1.0
    phases: list[str] = field(default_factory=list)

    @property
    def stem(self) -> str:
        """How the columns of its ideal, efficiency and speedup begin in the table ``scaling``."""
        stems = {"total_throughput": "total", "local_throughput": "local"}
        return stems.get(self.metric, self.metric)

    @property
    def axis_label(self) -> str:
        """Label with the unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    @property
    def steady_phase(self) -> str:
        """The phase that runs are compared in: later epochs where there are any."""
        return "later" if "later" in self.phases else self.phases[0]

    def value(self, row: Mapping[str, Any], stat: str, phase: str) -> float | None:
        """A statistic of this metric in ``unit``; None where it is missing."""
        value = row.get(column(self.metric, stat, phase))
        return value * self.factor if finite(value) else None

    def efficiency(
        self, row: Mapping[str, Any], phase: str
    ) -> tuple[float | None, float | None, float | None]:
        """Efficiency in a row of the table ``scaling``, with its bounds; None where missing."""
        names = (column(f"{self.stem}_{end}", "", phase) for end in ("eff", "eff_low", "eff_high"))
        value, low, high = (row[n] if finite(row.get(n)) else None for n in names)
        return value, low, high


def measures_of(
    entry: PlanExperiment, frame: pd.DataFrame | None, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Measure]:
    """Metrics with at least one value in the table of points, the main one first.

    ``frame`` is that table (None: there is none), ``rows`` are its rows. The one that the benchmark
    names leads, else total throughput, else the first.
    """
    units: Mapping[str, Any] = {} if frame is None else frame.attrs.get("units", {})
    measures: dict[str, Measure] = {}
    for name, meaning in units.items():
        parts = split_column(name)
        known = [abs(row[name]) for row in rows if finite(row.get(name))]
        if parts is None or parts.stat != "mean" or not known:
            continue
        if parts.metric not in measures:
            factor, unit = scaled_unit(meaning["unit"], max(known))
            measures[parts.metric] = Measure(
                parts.metric, meaning["label"], "" if unit == "1" else unit,
                meaning["better"] == "higher", factor,
            )  # fmt: skip
        measures[parts.metric].phases.append(parts.phase)
    first = [entry["main_metric"], "total_throughput", *entry["metrics"]]
    order = sorted(measures, key=lambda n: first.index(n) if n in first else len(first))
    return {name: measures[name] for name in order}
