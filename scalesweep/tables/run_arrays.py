"""The arrays of runs, read again for tables that need more of them than the summary keeps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scalesweep.analysis.arrays import Arrays
from scalesweep.core.record import RECORD, read_samples
from scalesweep.state.record_reader import read_record
from scalesweep.tables.points import ExperimentData, Point


def read_arrays(folder: Path) -> tuple[Mapping[str, Any], Arrays]:
    """Record and arrays of a run; raises UserError, KeyError or what damaged files raise."""
    record = read_record(folder / RECORD)
    return record, arrays_of(record, folder)


def arrays_of(record: Mapping[str, Any], folder: Path) -> Arrays:
    """The arrays of a run whose record has some; raises BadRecordError or what damaged files
    raise."""
    return Arrays(read_samples(folder, record), verified=True)


def ranks_of(data: ExperimentData, point: Point) -> int:
    """How many ranks a point has."""
    return int(point.values.get("ranks") or data.experiment["fixed"].get("ranks") or 1)


def largest_finished(data: ExperimentData, points: Sequence[Point]) -> Point | None:
    """The last of the points, which ascend in scale, that finished on several ranks."""
    finished = [point for point in points if point.rows.size and ranks_of(data, point) > 1]
    return finished[-1] if finished else None
