"""One experiment of the plan together with its tables: what figures and the report draw on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import fold_axes, planned_points, series_parameters
from scalesweep.analysis.metrics import column
from scalesweep.analysis.table_io import without_attrs
from scalesweep.core.formatting import counted, finite, plain, text_of
from scalesweep.core.joined_experiments import BENCHMARK, parameters_at
from scalesweep.core.plan_format import PlanExperiment, PlanRun, parameter_of, target_efficiency
from scalesweep.core.status import Status
from scalesweep.experiment.measure import Measure, measures_of
from scalesweep.table.declared import Declared, rows_of
from scalesweep.tables.comparisons import EFFICIENCY, Comparison
from scalesweep.tables.file_rates import DUMMY

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class PointState:
    """How far a planned point is, by its runs."""

    runs: list[PlanRun] = field(default_factory=list)

    def count(self, status: str) -> int:
        """How many of its runs are in a state."""
        return sum(run["status"] == status for run in self.runs)

    @property
    def word(self) -> str:
        """``done`` (partly, too), the cause of its failure, ``stale``, ``unfinished`` or
        ``pending``."""
        there = {run["status"]: None for run in self.runs}
        if Status.DONE in there:
            return Status.DONE
        if failed := [r for r in self.runs if r["status"] in (Status.FAILED, Status.UNSUPPORTED)]:
            return " ".join(sorted({str(run.get("cause") or Status.FAILED) for run in failed}))
        return next((s for s in (Status.STALE, Status.UNFINISHED) if s in there), "pending")


@dataclass
class Series:
    """Points of one scaling series sorted by ranks, and the planned rank counts it lacks."""

    label: str
    rows: list[Row]
    holes: dict[int, str]


@dataclass
class ExperimentResults:
    """An experiment: its entry in plan.json and its tables (an absent table is None)."""

    entry: PlanExperiment
    tables: Mapping[str, pd.DataFrame | None]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.entry["name"])

    @property
    def control(self) -> bool:
        """Whether this is the control point, which is repeated to show drift."""
        return bool(self.entry.get("control"))

    @property
    def title(self) -> str:
        """What its section is called."""
        return "Control" if self.control else self.name

    @property
    def axes(self) -> list[str]:
        """Parameters that take more than one value, the scale first."""
        return list(self.entry["axes"])

    @cached_property
    def columns(self) -> list[str]:
        """Those of the axes that tables of the page and of papers show: not ranks where each is
        one of the devices that runs scale over."""
        points, scale = planned_points(self.entry), self.scale
        inside = {
            name
            for name in self.entry["scale_parameters"]
            if name != scale and all(point.get(name) == point.get(scale) for point in points)
        }
        return [name for name in self.axes if name not in inside]

    @cached_property
    def _folded(self) -> tuple[list[str], dict[str, list[str]]]:
        return fold_axes(self.entry)

    @property
    def scale(self) -> str:
        """What runs scale over: ``ranks``, or devices where ranks have several."""
        return str(self.entry["scale"])

    def scale_of(self, row: Mapping[str, Any]) -> int:
        """Ranks (or devices) of a point or table row that varies them."""
        return int(row[self.scale])

    def scaled(self, count: int) -> str:
        """``1 rank``, ``4 devices``."""
        return counted(count, self.scale.removesuffix("s"))

    @property
    def scale_words(self) -> str:
        """``rank count``, ``device count``: how sentences call what runs scale over."""
        return f"{self.scale.removesuffix('s')} count"

    @property
    def leaders(self) -> list[str]:
        """Independent varying parameters."""
        return self._folded[0]

    @property
    def followers(self) -> dict[str, list[str]]:
        """For each independent parameter those that it determines."""
        return self._folded[1]

    @property
    def grid(self) -> list[str]:
        """Independent varying parameters other than the scale."""
        return [name for name in self.leaders if name != self.scale]

    @cached_property
    def states(self) -> dict[Key, PointState]:
        """State of every planned point by the values of the independent parameters."""
        result: dict[Key, PointState] = {}
        for run in self.entry["runs"]:
            result.setdefault(self.key(run["point"]), PointState()).runs.append(run)
        return result

    @cached_property
    def points(self) -> list[Row]:
        """Rows of the points table, empty when there is none."""
        return self.rows("points")

    @cached_property
    def scaling(self) -> list[Row]:
        """Rows of the scaling table, empty when the experiment has one rank count only."""
        return self.rows("scaling")

    def rows(self, table: str, names: Sequence[str] | None = None) -> list[Row]:
        """Rows of a table (or of its columns ``names``) as dicts of plain Python values."""
        frame = self.tables.get(table)
        if frame is None:
            return []
        bare = without_attrs(frame)
        kept = [name for name in bare.columns if names is None or name in names]
        values = [_plain_column(bare[name]) for name in kept]
        return [dict(zip(map(str, kept), row, strict=True)) for row in zip(*values, strict=True)]

    def of(self, kind: type[Declared]) -> list[Declared]:
        """Rows of a declared table, read once; empty when there is none."""
        if kind not in self._declared:
            self._declared[kind] = rows_of(kind, self.rows(kind.TABLE), self.axes)
        return self._declared[kind]

    @cached_property
    def shares(self) -> dict[tuple[Key, str | None, str, str], Comparison]:
        """The efficiencies among the comparisons, by point, source, metric and phase."""
        return {
            (self.key(row.point), row.source, row.metric, row.phase): row
            for row in self.of(Comparison)
            if row.quantity == EFFICIENCY
        }

    @cached_property
    def _declared(self) -> dict[type, list[Any]]:
        return {}

    def key(self, point: Mapping[str, Any], names: Iterable[str] | None = None) -> Key:
        """Values of the independent parameters (or of ``names``) of a point or table row."""
        return tuple(plain(point.get(n)) for n in (self.leaders if names is None else names))

    def learns(self, row: Mapping[str, Any]) -> bool:
        """Whether a point's input can be learned from."""
        return parameters_at(self.entry, row).get("input") not in DUMMY

    def point_key(self, row: Mapping[str, Any]) -> Key:
        """Point and source of a row."""
        return (*self.key(row, self.axes), row["source"])

    def values(self, name: str) -> list[Any]:
        """Planned values of a parameter, sorted when they are numbers, else in plan order."""
        distinct = dict.fromkeys(plain(run["point"].get(name)) for run in self.entry["runs"])
        values = list(distinct)
        return sorted(values) if all(finite(v) for v in values) else values

    def numeric(self, name: str) -> bool:
        """Whether all planned values of a parameter are numbers."""
        return all(finite(value) for value in self.values(name))

    def label(self, name: str) -> str:
        """Axis label of a parameter with its unit and those that follow it."""
        unit = parameter_of(self.entry, name).get("unit")
        label = name.capitalize() if name == self.scale else name
        label += f" [{unit}]" if unit and name != self.scale else ""
        more = self.followers.get(name, [])
        return label + (f" (with {', '.join(more)})" if more else "")

    def describe(self, point: Mapping[str, Any], names: Sequence[str] | None = None) -> str:
        """``ranks 4, batch_size 8``: the named (default: all independent) parameters."""
        names = self.leaders if names is None else names
        # What follows a parameter is named with it, and not once more.
        described = {follower for name in names for follower in self.followers.get(name, [])}
        parts = []
        for name in [name for name in names if name not in described]:
            if name == self.scale:
                parts.append(self.scaled(self.scale_of(point)))
            else:
                parts.append(f"{name} {text_of(point.get(name))}")
            if follow := [f for f in self.followers.get(name, []) if f in point]:
                parts[-1] += f" ({', '.join(f'{f} {text_of(point[f])}' for f in follow)})"
        return ", ".join(parts) if parts else "the only point"

    @staticmethod
    def named(row: Mapping[str, Any], names: Iterable[str]) -> str:
        """``model a, batch_size 8``: these parameters and no others; empty without any."""
        return ", ".join(f"{name} {text_of(row.get(name))}" for name in names)

    @cached_property
    def series_names(self) -> list[str]:
        """Parameters that distinguish the scaling series."""
        return series_parameters(self.entry) if self.scale in self.axes else []

    @cached_property
    def series_labels(self) -> list[str]:
        """Those of ``series_names`` that differ between finished series and follow no other one:
        what labels name. Of several benchmarks always which one: that the others failed does not
        make a sentence theirs."""
        rows = [row for row in self.scaling if row.get("repeats")]
        follow = {
            follower for name in self.series_names for follower in self.followers.get(name, [])
        }
        return [
            name
            for name in self.series_names
            if name == BENCHMARK
            or (name not in follow and len({plain(row.get(name)) for row in rows}) > 1)
        ]

    @cached_property
    def scaled_measure(self) -> Measure | None:
        """The metric whose efficiency says how an experiment scales: the main one where it has
        efficiencies, else the first that has (a table may lead with a time); None without any."""
        for measure in self.measures.values():
            name = column(f"{measure.stem}_eff", "", measure.steady_phase)
            if any(finite(row.get(name)) for row in self.scaling):
                return measure
        return None

    @cached_property
    def series(self) -> list["Series"]:
        """The scaling series with at least one finished point, in plan order."""
        planned = {self.key(r["point"], self.axes): r.get("work") for r in self.entry["runs"]}
        strong = self.entry["scaling"] == "strong" and bool(self.entry["work"])
        groups: dict[Key, list[Row]] = {}
        for row in self.scaling:
            if row.get("repeats"):
                # The work of a run as planned, else that of an epoch, tells strong series apart.
                work = planned.get(self.key(row, self.axes)) or row.get("samples")
                key = (*self.key(row, self.series_names), row["source"], work if strong else None)
                groups.setdefault(key, []).append(row)
        many_sizes = strong and len({key[-1] for key in groups}) > 1
        result = []
        for (*_, work), rows in groups.items():
            rows.sort(key=self.scale_of)
            words = [self.named(rows[0], self.series_labels)]
            words += [f"{text_of(work)} samples"] if many_sizes else []
            words += [str(rows[0]["source"])] if len(self.sources) > 1 else []
            result.append(Series(", ".join(filter(None, words)), rows, self._holes(rows)))
        return result

    def _holes(self, rows: Sequence[Row]) -> dict[int, str]:
        """Planned rank counts of a series without a result: rank count -> what became of it."""
        there = {self.scale_of(row) for row in rows}
        planned = self._words_of_series[self.key(rows[0], self.series_names)]
        return {n: word for n, word in sorted(planned.items())
                if n not in there and word != Status.DONE}  # fmt: skip

    @cached_property
    def _words_of_series(self) -> dict[Key, dict[int, str]]:
        """What became of the planned points of every series, by rank count."""
        words: dict[Key, dict[int, str]] = {}
        for state in self.states.values():
            point = state.runs[0]["point"]
            of_series = words.setdefault(self.key(point, self.series_names), {})
            of_series[self.scale_of(point)] = state.word
        return words

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """Metrics with at least one value in the points table, the main one first.

        The one that the benchmark names leads, else total throughput, else the first.
        """
        return measures_of(self.entry, self.tables.get("points"), self.points)

    @property
    def target(self) -> float:
        """From which efficiency on a scale is worth running, as a share."""
        return target_efficiency(self.entry)

    @property
    def main(self) -> Measure | None:
        """The metric that figures and findings are about; None when nothing is finished."""
        return next(iter(self.measures.values()), None)

    @cached_property
    def sources(self) -> list[str]:
        """The sources of the finished points: measured, simulated, imported."""
        return sorted({str(row["source"]) for row in self.points if row.get("source")})

    @property
    def mark(self) -> str:
        """``" (simulated)"`` and the like for titles; empty for measured results."""
        other = [source for source in self.sources if source != "measured"]
        if not other:
            return ""
        return f" ({' and '.join([*(['partly'] if 'measured' in self.sources else []), *other])})"


def _plain_column(column: "pd.Series[Any]") -> list[Any]:
    """``plain`` of every value of a column."""
    values = column.tolist()
    if column.dtype != np.float64:
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "ib":
            return values
        return [None if value is pd.NA else plain(value) for value in values]
    return [
        None if v != v else int(v) if v.is_integer() and abs(v) < 1e15 else v  # noqa: PLR0124
        for v in values
    ]
