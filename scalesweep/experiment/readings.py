"""What an experiment read, against what plain reads reach: rows of the table `reading`."""

from dataclasses import dataclass
from typing import Any

from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.tables.reading import reading_column

# Of the bytes of an epoch: below this they come from elsewhere, and their rate is not of files.
FROM_FILES = 0.5


@dataclass(frozen=True)
class Reading:
    """A point in a phase; rates in bytes/s, ``share`` is rate / ceiling."""

    row: Row  # of the table
    phase: str
    state: str  # cold | warm
    rate: float
    low: float | None
    high: float | None
    ceiling: float
    where: str
    share: float
    share_low: float | None
    share_high: float | None
    from_files: bool  # else its bytes come from a cache of the pipeline's own


def readings(study: ExperimentResults, phase: str | None = None) -> list[Reading]:
    """The rows of a phase, by default the one in which points are compared, in plan order."""
    rows = study.rows("reading")
    if not rows:
        return []
    later = any(row["phase"] == "later" for row in rows)
    wanted = phase or ("later" if later else "init")
    kept = [row for row in rows if row["phase"] == wanted]
    cached: set[Key] = _cached(study) if wanted == "later" else set()
    state, rate, ceiling, where = (
        reading_column(name, study.axes) for name in ("state", "rate", "ceiling", "where")
    )
    return [
        Reading(
            row=row,
            phase=wanted,
            state=str(row[state]),
            rate=float(row[rate]),
            low=_known(row["low"]),
            high=_known(row["high"]),
            ceiling=float(row[ceiling]),
            where=str(row[where]),
            share=float(row["share"]),
            share_low=_known(row["share_low"]),
            share_high=_known(row["share_high"]),
            from_files=(*study.key(row, study.axes), row["source"]) not in cached,
        )
        for row in kept
    ]


def _known(value: Any) -> float | None:
    return float(value) if finite(value) else None


def _cached(study: ExperimentResults) -> set[Key]:
    """Points whose last epoch read fewer bytes than its samples take in files."""
    measure = study.measures.get("bytes_read_per_byte")
    if measure is None:
        return set()
    return {
        (*study.key(row, study.axes), row["source"])
        for row in study.points
        if (read := measure.value(row, "mean", "run")) is not None and read < FROM_FILES
    }
