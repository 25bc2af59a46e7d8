"""The table `power`: watts over time of a few runs of an experiment."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.record import POWER, RECORD
from scalesweep.state.record_reader import read_record
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.power_series import Channel, mean_power, read_power
from scalesweep.tables.training_facts import knows_energy

_log = logging.getLogger(__name__)

MAX_RUNS = 6
MAX_ROWS = 1500  # of a run, a third of them of its total
MAX_HOSTS = 4  # more are only in the total and in power.csv
MAX_DOMAINS = 7
ALL, TOTAL = "all", "total"

# Host, domain and the channels that add up to them.
_Line = tuple[str, str, bool, list[Channel]]


def power_frame(inputs: TableInputs) -> pd.DataFrame | None:
    """Watts over time of at most six runs: the first with power.csv of points over the scale.

    Rows: run_id, repeat, varying parameters, source, host, domain, ``counted`` (part of the
    total), ``seconds`` since the run began (end of the row's interval), ``watts`` (mean over it),
    ``phase`` in the middle of it. Host ``all`` is the sum over hosts, domain ``total`` that over
    the counted domains. ``attrs["spans"]`` holds each run's [phase, begin, end] in these seconds.
    None if no run has any. One that is not whole is left out, with a line.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None or not knows_energy(data):
        return None
    frames: list[pd.DataFrame] = []
    spans: dict[str, list[list[Any]]] = {}
    for point, row in _chosen(data, inputs.points, runs):
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            record = read_record(runs / run_id / RECORD)
            channels = read_power(runs / run_id / POWER, record.get("energy") or {})
            rows = _of_run(record, channels)
        except (UserError, *NOT_ARRAYS, *NO_USE) as error:
            data.unread.append(run_id)
            _log.warning("%s: %s: left out of the table of power", run_id, error)
            continue
        if rows is None:
            continue
        spans[run_id] = rows.attrs.pop("spans")
        identity = {
            "run_id": run_id,
            "repeat": int(data.summary["repeat"].iloc[row]),
            **{name: point.values[name] for name in data.axes},
            "source": point.source,
        }
        fixed = {name: typed_values([value] * len(rows)) for name, value in identity.items()}
        frames.append(pd.concat([pd.DataFrame(fixed), rows], axis=1))
    if not frames:
        return None
    columns = {str(name): [v for frame in frames for v in frame[name].tolist()] for name in
               frames[0]}  # fmt: skip
    frame = pd.DataFrame({name: typed_values(values) for name, values in columns.items()})
    frame.attrs["spans"] = spans
    frame.attrs["units"] = {
        "seconds": {"label": "Time", "unit": "s", "better": "lower", "scope": "total"},
        "watts": {"label": "Power", "unit": "W", "better": "lower", "scope": "total"},
    }
    return frame


def _of_run(record: Mapping[str, Any], channels: Sequence[Channel]) -> pd.DataFrame | None:
    """Rows of a run, with its phases in ``attrs["spans"]``; None where nothing is counted."""
    if not any(channel.counted for channel in channels):
        return None
    begin = min(float(channel.times[0]) for channel in channels)
    phases = [(str(s[0]), float(s[1]), float(s[2])) for s in record.get("phase_spans") or []]
    begin = min([begin, *(start for _, start, _ in phases)])
    spans = [[name, start - begin, end - begin] for name, start, end in phases]
    rows = _rows(channels, begin, spans)
    rows.attrs["spans"] = spans
    return rows


def _chosen(data: ExperimentData, points: Sequence[Point], runs: Path) -> list[tuple[Point, int]]:
    """Up to six points, evenly over the scale, with the row of their first run that has power."""
    run_ids = data.summary["run_id"].tolist()
    finished = [point for point in points if point.rows.size]
    if data.scale in data.axes:
        finished.sort(key=lambda point: float(point.values[data.scale]))
    joules = data.numbers("energy", "mean", "run")
    chosen = []
    for point in finished:
        sampled = [row for row in point.rows.tolist() if np.isfinite(joules[row])]
        row = next((r for r in sampled if (runs / run_ids[r] / POWER).is_file()), None)
        if row is not None:
            chosen.append((point, row))
    if len(chosen) > MAX_RUNS:
        chosen = [chosen[round(i)] for i in np.linspace(0, len(chosen) - 1, MAX_RUNS)]
    return chosen


def _lines(channels: Sequence[Channel]) -> list[_Line]:
    """The total, each domain over the hosts, and each of a few hosts over its domains."""
    counted = [channel for channel in channels if channel.counted]
    lines: list[_Line] = [(ALL, TOTAL, True, counted)]
    by_domain: dict[tuple[str, bool], list[Channel]] = {}
    by_host: dict[str, list[Channel]] = {}
    for channel in channels:
        by_domain.setdefault((channel.domain, channel.counted), []).append(channel)
    for channel in counted:
        by_host.setdefault(channel.host, []).append(channel)
    domains = sorted(by_domain.items(), key=lambda item: not item[0][1])
    domains = [item for item in domains if item[1] != counted]  # which would be the total again
    lines += [(ALL, name, part, list_) for (name, part), list_ in domains[:MAX_DOMAINS]]
    if 1 < len(by_host) <= MAX_HOSTS:
        lines += [(host, TOTAL, True, list_) for host, list_ in by_host.items()]
    return lines


def _edges(channels: Sequence[Channel], rows: int) -> Floats:
    """Where intervals begin and end: at the samples, or evenly if these are too many."""
    densest = np.unique(max(channels, key=lambda channel: channel.times.size).times)
    return densest if densest.size <= rows + 1 else np.linspace(densest[0], densest[-1], rows + 1)


def _rows(
    channels: Sequence[Channel], begin: float, spans: Sequence[Sequence[Any]]
) -> pd.DataFrame:
    """Rows of all lines of a run; the total has a third of them, the others share the rest."""
    lines = _lines(channels)
    others = len(lines) - 1
    room = [MAX_ROWS // 3, *[MAX_ROWS * 2 // 3 // max(others, 2)] * others]
    blocks = []
    for (host, domain, counted, series), rows in zip(lines, room, strict=True):
        edges = _edges(series, rows)
        middle = (edges[1:] + edges[:-1]) / 2 - begin
        block = {
            "host": [host] * middle.size,
            "domain": [domain] * middle.size,
            "counted": [counted] * middle.size,
            "seconds": edges[1:] - begin,
            "watts": mean_power(series, edges),
            "phase": [_phase_at(moment, spans) for moment in middle.tolist()],
        }
        blocks.append(pd.DataFrame(block))
    return pd.concat(blocks, ignore_index=True)


def _phase_at(moment: float, spans: Sequence[Sequence[Any]]) -> str | None:
    return next((str(name) for name, start, end in spans if start <= moment < end), None)


MAKERS = (Maker("power", power_frame),)
