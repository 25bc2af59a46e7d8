"""Energy of an MLPerf run, from the power logs of its nodes and switches.

They lie in ``power/RESULT/node_*.txt`` and ``sw_*.txt`` beside ``RESULT.txt``. MLPerf's joules of a
node are its mean power over the measurement times the run's time (mlcommons/logging,
result_summarizer.py: _compute_power_node, _compute_power_sw):

    E = conversion_eff x sum W_i (t_i - t_{i-1}) x time to train / (t_stop - t_start)

with t_0 = power_measurement_start, and the last reading's time for a stop that is not there or not
after it; those of a switch are conversion_eff x interconnect_power_est x time to train. A switch
that was measured instead (Dell in v4.1) counts as a node does; the summary counts 0 J for it.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.log_lines import read_lines
from scalesweep.core.files import natural_order
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.mlperf_log import is_number, read_events

FOLDER = "power"
_FILE = re.compile(r"(?P<kind>node|sw)_.{0,80}\.txt")
_START, _READING, _STOP = "power_measurement_start", "power_reading", "power_measurement_stop"
_EFFICIENCY, _ESTIMATE = "conversion_eff", "interconnect_power_est"
KEYS = (_START, _READING, _STOP, _EFFICIENCY, _ESTIMATE)
_MOST_WATTS = 1e9
# A loss of half, for readings behind it; a percentage is far above.
_MOST_EFFICIENCY = 2.0
# MLPerf's readings are two seconds apart; a gap above this is told.
_GAP_S = 60.0
# Notes name a node that was measured during less of the run than this share.
_COVERED = 0.9
Span = tuple[float, float]  # begin and end, ms
# Notes name readings so many times as high as nearly all others, of so many at least.
_SPIKE, _FEWEST = 3.0, 20


@dataclass(frozen=True)
class Energy:
    """What the power logs of a run give: metrics, and notes on where they are from."""

    metrics: dict[str, dict[str, Any]]
    notes: Mapping[str, Any]


@dataclass(frozen=True)
class _Part:
    """Joules of a node or a switch during the run, and of a node during the whole measurement;
    ``watts`` of each of its readings, and the share of the run during which they were taken."""

    name: str
    joules: float
    measured: float | None
    watts: Sequence[float]
    hints: Sequence[str]
    covered: float = 1.0


def run_log_of(file: Path) -> Path | None:
    """The log of the run that a power log belongs to by its name, whether it is there or not; None
    for any other file."""
    folder = file.absolute().parent
    if not _FILE.fullmatch(file.name) or folder.parent.name != FOLDER:
        return None
    return folder.parent.parent / f"{folder.name}.txt"


def energy_of(log: Path, run: Span, of_system: int | None = None) -> Energy | None:
    """Joules of a run by the power logs beside its log; None without any.

    ``run``: its begin and end (Unix time, ms); ``of_system``: the nodes of its system, where that
    is known. Raises ImportRefusedError, with the file, where one of them is damaged or lacking: a
    sum without a node would be none.
    """
    seconds = (run[1] - run[0]) / 1000
    folder = log.absolute().parent / FOLDER / log.name.partition(".")[0]
    files = [path for path in folder.glob("*.txt") if _FILE.fullmatch(path.name)]
    parts: dict[str, list[_Part]] = {"node": [], "sw": []}
    for path in sorted(files, key=natural_order):
        match = _FILE.fullmatch(path.name)
        assert match is not None
        reader = _node if match["kind"] == "node" else _switch
        parts[match["kind"]].append(reader(path, run))
    nodes, switches = parts["node"], parts["sw"]
    if not nodes:
        return None
    if of_system and len(nodes) < of_system:
        raise ImportRefusedError(
            f"{FOLDER}/{folder.name} has logs of {len(nodes)} nodes, the system has {of_system}"
        )
    joules = math.fsum(part.joules for part in (*nodes, *switches))
    values = {"energy": (joules, "J"), "mean_power": (joules / seconds, "W")}
    return Energy(
        {
            name: {"value": value, "unit": unit, "better": "lower", "scope": "total"}
            for name, (value, unit) in values.items()
        },
        {
            "source": f"logs of {len(nodes)} nodes and {len(switches)} switches in "
            f"{FOLDER}/{folder.name}",
            "formula": "mean power of the measurement x the run's time (MLCommons)",
            "joules": {part.name: part.joules for part in (*nodes, *switches)},
            "measured_joules": {part.name: part.measured for part in nodes},
            "readings": sum(len(part.watts) for part in (*nodes, *switches)),
            **({"share_of_run_measured": shares} if (shares := _shares(nodes)) else {}),
            **({"hints": hints} if (hints := _hints((*nodes, *switches))) else {}),
        },
    )


def _hints(parts: Sequence[_Part]) -> list[str]:
    return [hint for part in parts for hint in part.hints]


def _shares(parts: Sequence[_Part]) -> dict[str, float]:
    """Of nodes that were measured during less of the run, by the clocks of both logs: the mean
    power of another time may be another one."""
    return {part.name: part.covered for part in parts if part.covered < _COVERED}


def _events(path: Path) -> Iterator[tuple[str, float, float | None, int]]:
    """Key, time (ms), value and line of what a power log says; None for a value that it has not."""
    try:
        for event in read_events(read_lines(path), KEYS):
            value = event.value
            if isinstance(value, dict):
                value = value.get("value")
            if event.key in (_START, _STOP):
                yield event.key, event.ms, None, event.line
            elif is_number(value) and -_MOST_WATTS < value < _MOST_WATTS:
                yield event.key, event.ms, float(value), event.line
            else:
                raise ImportRefusedError(f"{event.key} {str(value)[:30]!a} is no number")
    except OSError as error:
        raise ImportRefusedError(f"{_shown(path)}: {error.strerror}") from None
    except ImportRefusedError as error:
        raise ImportRefusedError(f"{_shown(path)}: {error}") from None


def _shown(path: Path) -> str:
    return f"{FOLDER}/{path.parent.name}/{path.name}"


def _conversion(path: Path, efficiency: float) -> float:
    """What a reading is multiplied by; raises ImportRefusedError where nothing can come out."""
    if 0 < efficiency <= _MOST_EFFICIENCY:
        return efficiency
    raise ImportRefusedError(
        f"{_shown(path)}: {_EFFICIENCY} {efficiency:g} is not above 0 and at most "
        f"{_MOST_EFFICIENCY:g}"
    )


def _node(path: Path, run: Span) -> _Part:
    """Joules of a node; raises ImportRefusedError without a measurement."""
    events = sorted(_events(path), key=lambda event: event[1])
    start = next((ms for key, ms, _, _ in events if key == _START), None)
    if start is None:
        raise ImportRefusedError(f"{_shown(path)}: no {_START}")
    # Most logs of v4.0 write a stop with the time of the start: that is none.
    stop = next((ms for key, ms, _, _ in events if key == _STOP and ms > start), None)
    efficiency = next((value for key, _, value, _ in events if key == _EFFICIENCY), None)
    before, total, gap = start, 0.0, 0.0
    watts: list[float] = []
    negative = 0
    # Events of one moment are in the file's order: a reading at the stop's own time may be behind.
    for key, ms, value, _ in events:
        if key == _STOP and ms == stop:
            break
        if key == _READING and value is not None and value < 0:
            negative += 1  # a sensor that failed (-9 W in v4.0): the next one holds since the last
        elif key == _READING and ms >= start and value is not None:
            total += value * (ms - before)
            gap, before = max(gap, ms - before), ms
            watts.append(value)
    end = before if stop is None else stop
    if watts and not max(watts) > 0:
        raise ImportRefusedError(f"{_shown(path)}: every {_READING} is 0")
    if not watts or end <= start:
        raise ImportRefusedError(f"{_shown(path)}: no power_reading within the measurement")
    hints = (
        [f"{path.name}: no {_STOP} after its start; the last reading ends it"]
        if stop is None
        else []
    )
    if gap > 1000 * _GAP_S:
        hints.append(f"{path.name}: {gap / 1000:.0f} s without a reading")
    if negative:
        hints.append(f"{path.name}: {negative} readings below 0 W are left out")
    if len(watts) >= _FEWEST and max(watts) > _SPIKE * (most := float(np.quantile(watts, 0.95))):
        hints.append(
            f"{path.name}: readings of up to {max(watts):.6g} W count, where 95 % are at most "
            f"{most:.6g} W"
        )
    length = run[1] - run[0]
    covered = max(0.0, min(end, run[1]) - max(start, run[0])) / length
    measured = _conversion(path, 1.0 if efficiency is None else efficiency) * total / 1000
    joules = measured * length / (end - start)
    return _Part(path.stem, joules, measured, watts, hints, covered)


def _switch(path: Path, run: Span) -> _Part:
    """Joules of a switch by its estimate, or as of a node where it was measured; raises
    ImportRefusedError without either."""
    efficiency, watts, measured = 1.0, None, False
    for key, _, value, _ in _events(path):
        measured = measured or key == _READING
        if key == _EFFICIENCY and value is not None:
            efficiency = value
        elif key == _ESTIMATE:
            watts = value
            break
    if watts is None and measured:
        part = _node(path, run)
        hint = f"{path.name}: measured, not estimated; MLCommons' summary counts 0 J for it"
        return replace(part, hints=[*part.hints, hint])
    if watts is None:
        raise ImportRefusedError(f"{_shown(path)}: neither {_ESTIMATE} nor {_READING}")
    if watts < 0:
        raise ImportRefusedError(f"{_shown(path)}: {_ESTIMATE} {watts:g} is below 0")
    joules = _conversion(path, efficiency) * watts * (run[1] - run[0]) / 1000
    return _Part(path.stem, joules, None, (), ())
