"""The table `power`: watts over time of a few runs of an experiment."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed, text_of
from scalesweep.core.record import NO_USE, NOT_ARRAYS, POWER, RECORD, read_record
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.power_series import Channel, mean_power, read_power
from scalesweep.tables.provenance import RunFacts

_log = logging.getLogger(__name__)

MAX_RUNS = 6
MAX_ROWS = 1500  # of a run, a third of them of its total
MAX_DOMAINS = 7
TOTAL = "total"


@dataclass(frozen=True, kw_only=True)
class Power(DeclaredRow, table="power", leading=("run_id", "repeat")):
    """A domain over a time: of at most six runs over the scale, each point's first with power.csv.

    A run has at most 1,500 rows, a third of them of its total.
    """

    run_id: str = column("the run")
    repeat: int = column("its repeat")
    source: str | None = column("measured, simulated or imported")
    domain: str = column("a domain of all hosts, or `total`: the sum over those that are counted")
    counted: bool = column("whether it is part of the total")
    seconds: float = column("end of the time, since the run began", "s")
    watts: float = column("mean power over it; missing if not all of it was watched", "W")
    phase: str | None = column("phase of rank 0 in its middle")


def power_rows(inputs: TableInputs) -> Iterator[Power]:
    """The rows of all runs; one that is not whole is left out, with a line."""
    data, runs = inputs.data, inputs.runs
    if runs is None or not data.knows_energy:
        return
    for point, row in _chosen(data, inputs.points, runs):
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            record = read_record(runs / run_id / RECORD)
            channels = read_power(runs / run_id / POWER, record.get("energy") or {})
        except (UserError, *NOT_ARRAYS, *NO_USE) as error:
            data.unread.append(run_id)
            _log.warning("%s: %s: left out of the table of power", run_id, error)
            continue
        repeat = int(data.summary["repeat"].iloc[row])
        head: dict[str, Any] = {
            "point": point.values, "run_id": run_id, "repeat": repeat, "source": point.source,
        }  # fmt: skip
        if any(channel.counted for channel in channels):
            spans = [(str(s[0]), float(s[1]), float(s[2])) for s in record.get("phase_spans") or []]
            yield from (Power(**head, **cells) for cells in _rows(channels, spans))


def _chosen(data: ExperimentData, points: Sequence[Point], runs: Path) -> list[tuple[Point, int]]:
    """Up to six points, evenly over the scale, with the row of their first run that has power."""
    run_ids, joules = data.summary["run_id"].tolist(), data.numbers("energy", "mean", "run")
    finished = [point for point in points if point.rows.size]
    if data.scale in data.axes:
        finished.sort(key=lambda point: float(point.values[data.scale]))
    chosen = []
    for point in finished:
        sampled = [row for row in point.rows.tolist() if np.isfinite(joules[row])]
        row = next((r for r in sampled if (runs / run_ids[r] / POWER).is_file()), None)
        if row is not None:
            chosen.append((point, row))
    if len(chosen) > MAX_RUNS:
        chosen = [chosen[round(i)] for i in np.linspace(0, len(chosen) - 1, MAX_RUNS)]
    return chosen


def _rows(
    channels: Sequence[Channel], spans: Sequence[tuple[str, float, float]]
) -> Iterator[dict[str, Any]]:
    """Rows of the total and of each domain; the total has a third of them, the others share the
    rest. Intervals begin and end at the samples, or are even if these are too many."""
    begin = min([*(float(c.times[0]) for c in channels), *(start for _, start, _ in spans)])
    lines = {(TOTAL, True): [channel for channel in channels if channel.counted]}
    alone = len({channel.domain for channel in channels if channel.counted}) == 1
    for channel in sorted(channels, key=lambda channel: not channel.counted):
        if not (alone and channel.counted):  # which would be the total again
            lines.setdefault((channel.domain, channel.counted), []).append(channel)
    shown = [*lines.items()][: MAX_DOMAINS + 1]
    for (domain, in_total), series in shown:
        most = MAX_ROWS // 3 if domain == TOTAL else MAX_ROWS * 2 // 3 // max(len(shown) - 1, 2)
        edges = np.unique(max(series, key=lambda channel: channel.times.size).times)
        if edges.size > most + 1:
            edges = np.linspace(edges[0], edges[-1], most + 1)
        for first, last, watts in zip(edges, edges[1:], mean_power(series, edges), strict=False):
            middle = (first + last) / 2
            phase = next((name for name, *ends in spans if ends[0] <= middle < ends[1]), None)
            seconds = float(last - begin)
            yield {"domain": domain, "counted": in_total, "seconds": seconds,
                   "watts": float(watts), "phase": phase}  # fmt: skip


MAKERS = (Maker(Power, power_rows),)


MAX_REASONS = 3
# Of the metrics that the launcher adds to a program's own.
DEFINITIONS = {
    "energy": "joules of all hosts and counted domains while the program ran",
    "energy_per_sample": "energy in the phases that handle samples / samples handled in them",
    "energy_delay_product": "energy x wall time of the program",
    "mean_power": "energy / the time it was measured over, of all hosts together",
    "peak_power": "highest power over one sampling interval, of all hosts together",
}


def energy_lines(results: ExperimentResults, facts: Mapping[str, RunFacts]) -> list[str]:
    """What is to be said of how energy was measured in an experiment's runs, or why it was not.

    Records without this information are listed where runs train: elsewhere no reader expects it.
    """
    done = [run["run_id"] for run in results.entry["runs"] if run["status"] == Status.DONE]
    runs = [facts[run_id] for run_id in dict.fromkeys(done) if run_id in facts]
    known = [run.energy for run in runs if run.energy is not None]
    measured = [energy for energy in known if energy["joules"] is not None]
    lines = []
    if measured:
        sources = listed([*{source: None for of in measured for source in of["sources"] or ()}])
        every = {text_of(of["interval_s"]): None for of in measured if of["interval_s"]}
        sampled = f", sampled every {' or '.join(every)} s" if every else ""
        whole = counted(len(runs), "run")
        lines = [f"Energy: measured in {len(measured):,} of {whole} with {sources}{sampled}."]
    if notes := {note: None for energy in measured for note in energy["notes"] or ()}:
        lines.append(f"Of the meters: {listed([*notes], MAX_REASONS)}.")
    reasons = Counter(e["missing"] or "no reason recorded" for e in known if e["joules"] is None)
    silent = len(runs) - len(known)
    if silent and (reasons or measured or "training_time" in results.measures):
        reasons["the records hold no energy data"] += silent
    for reason, count in reasons.most_common(MAX_REASONS):
        share = "" if count == len(runs) else f" in {count:,} of {counted(len(runs), 'run')}"
        lines.append(f"Energy: not measured{share}: {reason}.")
    return lines


SECTION = Section("Energy", table=lambda *_: None, notes=lambda _results: [], of_runs=energy_lines)
