"""The arrays of runs, read again for tables that need more of them than the summary keeps."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scalesweep.analysis.types import Arrays, open_arrays
from scalesweep.core.errors import UserError
from scalesweep.core.record import (
    NO_USE,
    NOT_ARRAYS,
    RECORD,
    read_record,
    read_samples,
    told_arrays,
)
from scalesweep.tables.points import ExperimentData, Point

_log = logging.getLogger(__name__)


def each_run(
    data: ExperimentData, rows: Iterable[int], runs: Path, of: str
) -> Iterator[tuple[int, Mapping[str, Any], Arrays]]:
    """Row, record and arrays of the runs that keep arrays of their own, one at a time; a damaged
    one is left out ``of`` what is made of them, with a line."""
    for row in rows:
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            record, samples = read_arrays(runs / run_id)
            samples = told_arrays(record, samples) if samples else samples
        except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
            if run_id not in data.unread:
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of %s", run_id, error, of)
            continue
        if samples:
            yield row, record, samples


def read_arrays(folder: Path) -> tuple[Mapping[str, Any], Arrays]:
    """Record and arrays of a run, none if it has none; raises UserError, KeyError or what damaged
    files raise."""
    record = read_record(folder / RECORD)
    none = record["samples"] is None
    return record, {} if none else open_arrays(read_samples(folder, record))


def ranks_of(data: ExperimentData, point: Point) -> int:
    """How many ranks a point has."""
    return int(point.values.get("ranks") or data.experiment["fixed"].get("ranks") or 1)


def largest_finished(data: ExperimentData, points: Sequence[Point]) -> Point | None:
    """The last of the points, which ascend in scale, that finished on several ranks."""
    finished = [point for point in points if point.rows.size and ranks_of(data, point) > 1]
    return finished[-1] if finished else None
