"""The table `ranks`: step times of every rank, of the runs at the largest scale of every series."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.rank_stats import (
    NOTABLE,
    Spread,
    by_host,
    chances,
    own_times,
    rank_matrix,
    spread_of,
)
from scalesweep.analysis.step_work import BadSpansError, step_work
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats, Places
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.core.record import RECORD, holds_matches
from scalesweep.state.record_reader import read_record
from scalesweep.table.declared import parameter_column
from scalesweep.tables.epoch_curves import run_seconds
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import arrays_of, largest_finished, ranks_of

_log = logging.getLogger(__name__)

MAX_RUNS = 60
MAX_ROWS = 32_768
_KINDS = 2  # of times that a run may have
_SECONDS = {
    "median": "Median", "max": "Longest",
    **{f"p{n}": f"{int(n)} % quantile" for n in ("05", "25", "75", "95")},
}  # fmt: skip


@dataclass(frozen=True)
class _Ranks:
    """What is kept of one run: its times by whose time it is, and the host of each rank."""

    run_id: str
    repeat: int
    spreads: Mapping[str, Spread]
    hosts: Sequence[str]
    spans: tuple[str, ...]  # that its own work is made of


def rank_table(inputs: TableInputs) -> pd.DataFrame | None:
    """A row per point, run, rank and kind of time (``time``, see ``ranktimes``).

    Of the points of each series by scale the largest finished one of several ranks
    is taken, with all its repeats; of many series as many, evenly, as 60 runs and 32,768 rows
    hold (``attrs["left_out"]`` counts the others). One run is in memory at a time.
    Rows: varying parameters, source, run_id, repeat, rank, host (missing where the record does not
    tell that of every rank), time, ``steps`` (values of the rank), quantiles and ``max`` in s,
    ``slow`` (the rank's median over that of all ranks) with its interval over the steps,
    ``excess`` (the same difference as a share of a whole step, of the medians or the means,
    whichever is less), ``chance`` (of all runs of the
    point; missing where no rank has 5 % to excess), and, where hosts are not ranks by another
    name, ``host_slow``, ``host_low``, ``host_high`` and ``host_chance``. None without any.
    A run whose files are damaged is left out, with a line.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return None
    finished = [largest_finished(data, points) for points in inputs.series]
    points = [point for point in finished if point is not None]
    taken = _fitting(data, points)
    frames: list[dict[str, Any]] = []
    for point in taken:
        frames += _rows_of(data, point, _read(data, point, runs))
    if not frames:
        return None
    table: dict[str, Any] = {}
    for name in frames[0]:
        parts = [frame[name] for frame in frames]
        whole = [value for part in parts for value in part]
        table[name] = np.concatenate(parts) if _numbers(parts) else typed_values(whole)
    result = pd.DataFrame(table)
    result.attrs["left_out"] = len(points) - len(taken)
    meaning = {"unit": "s", "better": "lower", "scope": "rank"}
    result.attrs["units"] = {
        name: {"label": f"{label} of a rank's times", **meaning} for name, label in _SECONDS.items()
    }
    return result


def _numbers(parts: Sequence[Any]) -> bool:
    return all(isinstance(part, np.ndarray) and part.dtype.kind in "fi" for part in parts)


def _fitting(data: ExperimentData, points: Sequence[Point]) -> list[Point]:
    """As many of the points, evenly from all, as there is room for; one at least."""
    count = len(points)
    while count > 1:
        chosen = [points[round(i)] for i in np.linspace(0, len(points) - 1, count)]
        runs = [point.rows.size for point in chosen]
        ranks = [ranks_of(data, point) for point in chosen]
        rows = sum(n * size * _KINDS for n, size in zip(runs, ranks, strict=True))
        if sum(runs) <= MAX_RUNS and rows <= MAX_ROWS:
            return chosen
        count = min(count - 1, round(count * 0.9))
    return list(points[:1])


def _read(data: ExperimentData, point: Point, runs: Path) -> list[_Ranks]:
    """The point's runs that have times by rank, reduced one by one."""
    runs_read = []
    ranks = ranks_of(data, point)
    most = max(1, min(MAX_RUNS, MAX_ROWS // (ranks * _KINDS)))
    for row in point.rows[:most].tolist():
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            record = read_record(runs / run_id / RECORD)
            spreads, spans = _spreads(record, runs / run_id, ranks)
        except (UserError, *NOT_ARRAYS, *NO_USE) as error:
            data.unread.append(run_id)
            _log.warning("%s: %s: left out of the table of ranks", run_id, error)
            continue
        if spreads:
            repeat = int(data.summary["repeat"].iloc[row])
            runs_read.append(_Ranks(run_id, repeat, spreads, _hosts(record, ranks), spans))
    return _with_same_spans(runs_read)


def _with_same_spans(runs: list[_Ranks]) -> list[_Ranks]:
    """The runs with the same spans, most of them, the most spans of as many: the work of others is
    something else, and no mean is taken over both."""
    counts = Counter(run.spans for run in runs)
    usual = max(counts, key=lambda spans: (counts[spans], len(spans)), default=())
    for run in runs:
        if run.spans != usual:
            _log.warning("%s: other spans: left out of the table of ranks", run.run_id)
    return [run for run in runs if run.spans == usual]


def _spreads(
    record: Mapping[str, Any], folder: Path, ranks: int
) -> tuple[dict[str, Spread], tuple[str, ...]]:
    """Times by whose time it is, and the spans that the rank's own work is made of; none where its
    steps cannot be true."""
    if record["samples"] is None or holds_matches(record):
        return {}, ()
    samples = arrays_of(record, folder)
    try:
        step_work(samples, record.get("notes") or {}, ranks, run_seconds(record))
    except BadSpansError:  # as the summary says
        return {}, ()
    spreads = {
        kind: spread_of(times, whole) for kind, (times, whole) in own_times(samples, ranks).items()
    }
    spans = ("span_compute", "span_input")
    return spreads, tuple(name for name in spans if rank_matrix(samples, name, ranks) is not None)


def _hosts(record: Mapping[str, Any], ranks: int) -> list[str]:
    """The host of each rank; the names Slurm gave come first. Empty where one is not known."""
    hosts = by_rank(machine_column(record["resources"]), ranks)
    return [str(host) for host in hosts] if hosts and all(hosts) else []


def _rows_of(data: ExperimentData, point: Point, runs: Sequence[_Ranks]) -> list[dict[str, Any]]:
    """Columns of the rows of a point, a part for each run and kind of time."""
    frames = []
    ranks = ranks_of(data, point)
    for kind in dict.fromkeys(kind for run in runs for kind in run.spreads):
        chosen = [run for run in runs if kind in run.spreads]
        notable = any((run.spreads[kind].excess >= NOTABLE).any() for run in chosen)
        every = np.arange(ranks)
        chance = np.full(ranks, np.nan)
        if notable and ranks > 2:
            blocks = [run.spreads[kind].blocks for run in chosen]
            chance = chances(blocks, [every] * len(chosen), ranks)
        by_run = _of_hosts(chosen, kind, notable)
        for run, of_hosts in zip(chosen, by_run, strict=True):
            spread = run.spreads[kind]
            columns = {
                "source": [point.source] * ranks, "run_id": [run.run_id] * ranks,
                "repeat": np.full(ranks, run.repeat), "rank": every,
                "host": list[str | None](run.hosts) or [None] * ranks, "time": [kind] * ranks,
                "steps": np.full(ranks, spread.steps), **spread.quantiles,
                "slow": spread.slow, "slow_low": spread.low, "slow_high": spread.high,
                "excess": spread.excess, "chance": chance, **of_hosts,
            }  # fmt: skip
            frames.append(
                {
                    parameter_column(name, columns): [value] * ranks
                    for name, value in point.values.items()
                }
                | columns
            )
    return frames


def _of_hosts(runs: Sequence[_Ranks], kind: str, notable: bool) -> list[dict[str, Floats]]:
    """For each run what is known of its ranks' hosts, ``[rank]``.

    All missing where a rank's host is unknown, there is one host, or each rank has its own in all
    runs: then hosts are the ranks.
    """
    names = ("host_slow", "host_low", "host_high", "host_chance")
    first = runs[0].hosts
    same_hosts = len(set(first)) == len(first) and all(run.hosts == first for run in runs)
    if same_hosts or any(len(set(run.hosts)) < 2 for run in runs):
        size = [run.spreads[kind].slow.size for run in runs]
        return [{name: np.full(n, np.nan) for name in names} for n in size]
    order: dict[str, int] = {}
    blocks: list[Floats] = []
    places: list[Places] = []
    spreads: list[Spread] = []
    for run in runs:
        hosts, of_hosts = by_host(run.spreads[kind].blocks, run.hosts)
        places.append(np.array([order.setdefault(host, len(order)) for host in hosts], np.intp))
        blocks.append(of_hosts)
        spreads.append(spread_of(of_hosts, of_hosts))
    chance = np.full(len(order), np.nan)
    if notable and all(place.size > 2 for place in places):
        chance = chances(blocks, places, len(order))
    result = []
    for run, columns, spread in zip(runs, places, spreads, strict=True):
        where = {int(place): column for column, place in enumerate(columns)}
        at = [where[order[host]] for host in run.hosts]
        values = (spread.slow, spread.low, spread.high, chance[columns])
        result.append(dict(zip(names, (value[at] for value in values), strict=True)))
    return result


MAKERS = (Maker("ranks", rank_table),)
