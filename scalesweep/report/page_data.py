"""What the report's scripts work with: columns of its tables, once, and what its charts are of.

A table's data: ``raw``, columns with all digits, named as in the Parquet file, which is what people
export; and ``shown``, the columns that they see: each refers to a raw column that it sorts and
filters by, and has texts where those differ from the values. Charts refer to raw columns too.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scalesweep.analysis.metrics import column, split_column
from scalesweep.aspects.layouts.study import study_of
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.prediction.table import Prediction, known
from scalesweep.core.formatting import PHASES, as_given, duration, finite, plain, text_of
from scalesweep.core.plan_format import PlanRun
from scalesweep.core.record import FAILURE, RECORD, read_failure
from scalesweep.core.status import Status
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.table.declared import numbers_of
from scalesweep.tables.provenance import Environment, RunFacts

# Values of all tables of a page; a table that would take more than its share keeps fewer columns.
MAX_VALUES = 150_000
# Bits of what a run has: record, stdout, stderr, failure.
_FILES = ((1, RECORD), (8, FAILURE))
_LOGS = ((2, "stdout.log"), (4, "stderr.log"))
LONG = 40  # a list shorter than that is not packed
_LEAST = ("mean", "low", "high", "")

Data = dict[str, Any]


class _Columns:
    """Raw columns of some rows, each once."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._places: dict[str, int] = {}
        self.made: list[Data] = []

    def add(self, name: str) -> int:
        """Place of the column ``name``."""
        if name not in self._places:
            self._places[name] = len(self.made)
            values = [_json(row.get(name)) for row in self._rows]
            self.made.append({"name": name, "values": values})
        return self._places[name]

    def values(self, name: str) -> list[Any]:
        """Values of a column that is there."""
        values: list[Any] = self.made[self._places[name]]["values"]
        return values


def _json(value: Any) -> Any:
    """A value as JSON has it; what is missing (None, NaN, pandas' NA) is null."""
    if type(value) is float:  # nearly all are
        return value if math.isfinite(value) else None
    value = plain(value)
    return value if isinstance(value, str | bool | int) or finite(value) else None


def _parameter(results: ExperimentResults, columns: _Columns, name: str, title: str) -> Data:
    """A shown column of a parameter, with a filter."""
    place = columns.add(name)
    values = columns.values(name)
    texts = [text_of(value) for value in values]
    same = all(isinstance(v, int | str) and not isinstance(v, bool) for v in values)
    column = {"title": title, "name": name, "raw": place, "filter": True}
    column["number"] = results.numeric(name)
    return column if same else column | {"texts": texts}


def _wanted(results: ExperimentResults, names: Sequence[str], rows: int, share: int) -> list[str]:
    """The quantities of a table that the page has room for, in the table's order."""
    quantities = [name for name in names if split_column(name)]
    if rows * len(quantities) <= share:
        return quantities
    parts = {name: split_column(name) for name in quantities}
    few = [name for name, part in parts.items() if part and part.stat in _LEAST]
    if rows * len(few) <= share or results.main is None:
        return few
    stem = results.main.metric.removesuffix("_throughput")
    return [name for name in few if name.startswith((results.main.metric, f"{stem}_"))]


def table_data(
    results: ExperimentResults, table: Table, share: int, runs: Mapping[str, int] | None = None
) -> Data:
    """A table of points. ``share``: how many values it may hold; ``runs``: place of each run by id
    in the experiment's table of runs, whose rows unfold below a point's."""
    columns = _Columns(table.sources)
    shown = [
        _parameter(results, columns, name, title)
        for name, title in zip(results.columns, table.lead, strict=False)
    ]
    lead = len(results.columns)
    for name in ("samples", "source", "repeats", "planned"):
        if any(name in row for row in table.sources):
            columns.add(name)
    names = list(dict.fromkeys(name for row in table.sources[:1] for name in row))
    for name in _wanted(results, names, len(table.rows), share):
        columns.add(name)
    done = {"title": "Runs", "name": "runs", "texts": [row[lead].text for row in table.rows]}
    shown.append(done | {"bad": [n for n, row in enumerate(table.rows) if row[lead].bad]})
    if runs is not None:
        shown[-1]["unfold"] = True
    if len(table.lead) > lead + 1:
        shown.append({"title": "Source", "name": "source", "raw": columns.add("source")})
        shown[-1]["filter"] = True
    place = len(shown)
    for heading, part in table.groups:
        for part_column in part:
            cells = [row[place] for row in table.rows]
            title = f"{part_column.heading}, {heading}" if heading else part_column.heading
            made = {"title": title, "name": part_column.name or title, "number": True}
            if part_column.name:
                made["raw"] = columns.add(part_column.name)
            made["texts"] = [cell.text for cell in cells]
            made["bad"] = [number_ for number_, cell in enumerate(cells) if cell.bad]
            shown.append(made)
            place += 1
    data = {"shown": shown, "raw": columns.made, "rows": len(table.rows)}
    if runs is not None:
        data["points"] = _runs_of(results, table.sources, runs)
    return data


def _runs_of(
    results: ExperimentResults, rows: Sequence[Row], runs: Mapping[str, int]
) -> list[list[int]]:
    """Places of the runs of every row's point; of a point with several sources those of its own
    are unknown before they have run, so each row has all."""
    numbers_of: dict[tuple[Any, ...], list[int]] = {}
    for run in results.entry["runs"]:
        numbers_of.setdefault(results.key(run["point"], results.axes), []).append(
            runs[run["run_id"]]
        )
    return [numbers_of.get(results.key(row, results.axes), []) for row in rows]


def runs_data(
    results: ExperimentResults,
    facts: Mapping[str, RunFacts],
    environments: Sequence[Environment],
    folder: Path,
    base: str,
    share: int,
) -> Data:
    """Every planned run of an experiment: how far it is, its numbers, and where its files are.

    ``folder`` holds the runs of the site, ``base`` is its address; ``environments`` are numbered
    from 1 as the provenance lists them. ``files`` has a bit for each file that a run has.
    """
    known = {row["run_id"]: row for row in results.rows("runs")}
    planned = results.entry["runs"]
    runs = [facts.get(run["run_id"]) for run in planned]
    numbers = {
        tuple(sorted(environment.facts.items())): n for n, environment in enumerate(environments, 1)
    }
    attempts = [_attempt(run, folder, facts) for run in planned]
    rows = [
        {
            **run["point"],
            **known.get(run["run_id"], {}),
            "run_id": run["run_id"],
            "repeat": run["repeat"],
            "status": _STATUS.get(run["status"], run["status"]),
            "cause": run["cause"] or None,
            "started": fact.started if fact else None,
            "wall_s": fact.wall_s if fact else None,
            "hosts": _hosts(fact) if fact else None,
            "environment": numbers.get(tuple(sorted(fact.environment))) if fact else None,
            "attempt": attempt,
        }
        for run, fact, attempt in zip(planned, runs, attempts, strict=True)
    ]
    columns = _Columns(rows)
    shown: list[Data] = []

    def show(title: str, name: str, **more: Any) -> None:
        shown.append({"title": title, "name": name, "raw": columns.add(name), **more})

    show("Run", "run_id", id=True)
    shown += [_parameter(results, columns, name, name) for name in results.columns]
    show("Repeat", "repeat", number=True)
    words = [_word(row, fact is not None) for row, fact in zip(rows, runs, strict=True)]
    show("Status", "status", filter=True, texts=words)
    shown[-1]["bad"] = [
        place for place, row in enumerate(rows) if row["status"] in (Status.FAILED, Status.STALE)
    ]
    shown.append({"title": "Files", "name": "files", "files": True})
    columns.add("cause")
    if len(results.sources) > 1:
        show("Source", "source", filter=True)
    times = [str(row["started"] or "–").replace("T", " ")[:16] for row in rows]
    show("Started, UTC", "started", texts=times)
    show("Time", "wall_s", number=True, texts=[duration(row["wall_s"]) for row in rows])
    for measure in [results.main] if results.main else []:
        for phase in measure.phases:
            cells = [as_given(measure.value(row, "mean", phase)) for row in rows]
            title = f"{measure.axis_label}, {PHASES[phase]}"
            show(title, column(measure.metric, "mean", phase), number=True, texts=cells)
    if len(environments) > 1:
        show("Environment", "environment", number=True, filter=True)
    show("Hosts", "hosts")
    for name in ("source", "attempt", "warnings", "outlier"):
        if any(row.get(name) for row in rows):
            columns.add(name)
    names = list(dict.fromkeys(name for row in known.values() for name in row))
    for name in _wanted(results, names, len(rows), share):
        columns.add(name)
    files = [_files(f"{folder}/{row['run_id']}", row["attempt"]) for row in rows]
    return {"shown": shown, "raw": columns.made, "rows": len(rows), "files": files, "base": base}


_STATUS: dict[str, str] = {Status.NEW: "pending"}


def _word(row: Row, read: bool) -> str:
    more = str(row["cause"] or "") if row["status"] in (Status.FAILED, Status.STALE) else ""
    more = "record cannot be read" if row["status"] == Status.DONE and not read else more
    return f"{row['status']}: {more}" if more else str(row["status"])


def _hosts(facts: RunFacts) -> str:
    return ", ".join(facts.hosts[:3]) + (", …" if len(facts.hosts) > 3 else "")


def _attempt(run: PlanRun, folder: Path, facts: Mapping[str, RunFacts]) -> int | None:
    """The attempt whose logs are a run's: of the record, or of the failure."""
    if (known := facts.get(run["run_id"])) is not None:
        return known.attempt or None
    if run["status"] != Status.FAILED:
        return None
    failure = read_failure(folder / run["run_id"]) or {}
    attempt = failure.get("attempt")
    return attempt if isinstance(attempt, int) else None


def _files(folder: str, attempt: int | None) -> int:
    # As text, because a Path for each of four looks per run takes longer than the looks.
    bits = sum(bit for bit, name in _FILES if os.path.isfile(f"{folder}/{name}"))  # noqa: PTH113
    if attempt:
        logs = f"{folder}/attempt-{attempt}"
        bits += sum(bit for bit, name in _LOGS if os.path.isfile(f"{logs}/{name}"))  # noqa: PTH113
    return bits


def run_files(runs: Data, place: int) -> list[tuple[str, str]]:
    """What a run has: (what, address); scripts make the same of ``files`` and ``base``."""
    raw = {run["name"]: run["values"] for run in runs["raw"]}
    folder = f"{runs['base']}/{quote(raw['run_id'][place])}"
    bits = runs["files"][place]
    files = [(name, f"{folder}/{name}") for bit, name in _FILES if bits & bit]
    files += [
        (name, f"{folder}/attempt-{raw['attempt'][place]}/{name}")
        for bit, name in _LOGS
        if bits & bit
    ]
    return [(name.partition(".")[0], href) for name, href in files]


def packed(data: Any) -> Any:
    """The same, with every long list that repeats itself as its levels and a place for each."""
    if isinstance(data, dict):
        return {name: packed(value) for name, value in data.items()}
    if not isinstance(data, list):
        return data
    if len(data) < LONG or isinstance(data[0], dict | list):
        return [packed(part) for part in data] if data and isinstance(data[0], dict) else data
    # By type too: 1, 1.0 and true are equal, but not the same.
    levels: dict[tuple[type, Any], int] = {}
    at = [levels.setdefault((type(value), value), len(levels)) for value in data]
    if len(levels) * 4 > len(data):
        return data
    return {"levels": [value for _, value in levels], "at": at if len(levels) > 1 else len(at)}


def predicted_marks(results: ExperimentResults, columns: Sequence[str]) -> list[Data]:
    """Predicted counts for a chart whose measures are these columns of the scaling table.

    Of each the ``texts`` of the axes (None where it changes along the series), the count ``x``,
    the place of its ``measure``, and ``y`` with its 95 % bounds.
    """
    marks: list[Data] = []
    for row in known(results.of(Prediction)):
        measure = results.measures.get(row.metric)
        stem = "total" if row.metric == "total_throughput" else row.metric
        texts = [
            None if row.point[name] is None else text_of(row.point[name])
            for name in results.columns
        ]
        for column_name, estimate, scale in (
            (column(row.metric, "mean", row.phase), row.value, measure.factor if measure else 1.0),
            (column(f"{stem}_eff", "", row.phase), row.efficiency, 1.0),
        ):
            if column_name in columns:
                y, bottom, top = (number or 0.0 for number in numbers_of(estimate, scale))
                place = list(columns).index(column_name)
                mark = {"texts": texts, "x": results.scale_of(row.point), "measure": place}
                marks.append(mark | {"y": y, "low": bottom, "high": top})
    return marks


def chart_data(results: ExperimentResults, table: Table, data: Data) -> Data | None:
    """The chart over a table of points: its axes and measures as places among the raw columns.

    None where there are fewer than two points with a result, or nothing varies.
    """
    finished = [row for row in table.sources if row.get("repeats")]
    if len(finished) < 2 or not results.columns or results.main is None:
        return None
    places = {column["name"]: place for place, column in enumerate(data["raw"])}
    leaders = {
        follower: results.columns.index(leader)
        for leader in results.followers
        for follower in results.named_with(leader)
    }
    if (
        results.scale in results.columns
    ):  # what makes the scale (devices of a rank) tells no series apart
        for name in set(results.columns) - {results.scale, *results.series_names, *leaders}:
            leaders[name] = results.columns.index(results.scale)
    axes = [
        {
            "shown": place,
            "title": results.label(name),
            "scale": name == results.scale,
            "leader": leaders.get(name, place),
        }
        for place, name in enumerate(results.columns)
    ]
    measures = [
        made
        for measure in results.measures.values()
        for phase in sorted(measure.phases, key=lambda phase: phase != measure.steady_phase)
        for made in _charted(measure, phase, places)
    ]
    several = len(results.sources) > 1 or "measured" not in results.sources
    chart: Data = {
        "axes": axes,
        "measures": measures,
        "source": places["source"] if several else None,
    }
    predicted = predicted_marks(
        results, [data["raw"][measure["mean"]]["name"] for measure in measures]
    )
    if start := _layout_start(results, data["raw"], measures):
        chart["start"] = start
    return chart | ({"predicted": predicted} if predicted else {})


def _layout_start(
    results: ExperimentResults, raw: Sequence[Data], measures: Sequence[Data]
) -> Data | None:
    """What a chart of layouts begins with: all of them, by the first axis of their mesh that is
    chosen (``by``), with their utilisation where there is one (``measure``); None of other studies.
    ``whole``: the axes whose points are not held at one value."""
    study = study_of(results.entry)
    if study is None:
        return None
    held = {results.scale, *study.workload}
    start: Data = {"whole": [n for n, name in enumerate(results.columns) if name not in held]}
    chosen = [name for name in study.free if name in results.columns]
    if chosen:
        start["by"] = results.columns.index(chosen[0])
    metric = next((row.utilisation_metric for row in results.of(BestLayout)), None)
    wanted = {f"{metric}_mean_{phase}" for phase in PHASES}
    places = [n for n, measure in enumerate(measures) if raw[measure["mean"]]["name"] in wanted]
    return start | ({"measure": places[0]} if metric and places else {})


def _charted(measure: Measure, phase: str, places: Mapping[str, int]) -> list[Data]:
    """A metric in a phase, and its efficiency and speedup where the table has them."""
    mean = places.get(column(measure.metric, "mean", phase))
    if mean is None:
        return []
    epochs = PHASES[phase]
    unit = f" [{measure.unit}]" if measure.unit else ""
    line: Data = {"title": f"{measure.label}, {epochs}{unit}", "mean": mean}
    for stat in ("low", "high"):
        line[stat] = places.get(column(measure.metric, stat, phase))
    if measure.factor != 1.0:
        line["factor"] = measure.factor
    stem = measure.metric.removesuffix("_throughput")
    made = [line]
    for name in dict.fromkeys((stem, measure.metric)):
        if (ideal := places.get(f"{name}_ideal_{phase}")) is not None:
            line["ideal"] = ideal
        for part, title, share in (("eff", "Efficiency", True), ("speedup", "Speedup", False)):
            if (place := places.get(f"{name}_{part}_{phase}")) is None:
                continue
            bounds = [places.get(f"{name}_{part}_{stat}_{phase}") for stat in ("low", "high")]
            label = f"{title} ({measure.label.lower()}), {epochs}"
            made.append({"title": label, "mean": place, "low": bounds[0], "high": bounds[1]})
            made[-1]["share"] = share
    return made
