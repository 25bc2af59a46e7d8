"""The summary as it was left for the next one, which takes over the rows that have not changed."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.analysis.metrics import column
from scalesweep.core.files import seal, unseal, write_atomic
from scalesweep.tables.epoch_curves import CURVES
from scalesweep.tables.epoch_quantities import EPOCH_COLUMNS

# Raised when a column changes its meaning: rows of other versions are computed again.
SUMMARY_VERSION = 27

IDENTITY = (
    "run_id",
    "benchmark",
    "version",
    "site",
    "source",
    "repeat",
    "started",
    "wall_s",
    "hosts",
    "samples",
    "bytes",
    "warnings",
)
# What a row was made from: the path of the record, and times and sizes of it and its samples.
KEY = ("_record", "_files")


class Row(NamedTuple):
    """The row of a run: what it is, its point, and its quantities by column."""

    identity: dict[str, Any]
    point: Mapping[str, Any]
    epochs: dict[str, float]
    plain: dict[str, float]
    meanings: dict[str, dict[str, str]]
    curves: dict[str, str | None]


def keep_summary(summary: Path, kept: Path) -> None:
    """Copy a summary for the next one, with a checksum at its end: a flipped bit is no result."""
    write_atomic(kept, seal(summary.read_bytes()), durable=False)


class KeptSummary:
    """Rows of a kept summary by what they were made from."""

    def __init__(self, path: Path | None) -> None:
        """Read what ``keep_summary`` left; nothing if it is not there, not whole, or older."""
        self._index: dict[tuple[str, str], int] = {}
        self._columns: dict[str, list[Any]] = {}
        self._parsed = cache(json.loads)  # the repeats of a point say the same
        try:
            content = None if path is None else unseal(path.read_bytes())
        except OSError:
            return
        if content is None:
            return
        # Not before the first summary, which imports pandas while records are read.
        import pandas as pd

        from scalesweep.analysis.parquet import read_frame

        frame = read_frame(content)
        if frame.attrs.get("summary_version") != SUMMARY_VERSION:
            return
        self._columns = {
            str(name): [None if value is pd.NA else value for value in frame[name].tolist()]
            for name in frame.columns
        }
        keys = zip(*(self._columns[name] for name in KEY), strict=True)
        self._index = {key: index for index, key in enumerate(keys)}

    def row(self, key: tuple[str, str]) -> Row | None:
        """The row that was made from this; None if there is none."""
        index = self._index.get(key)
        if index is None:
            return None
        columns = self._columns
        meanings = self._parsed(columns["_metrics"][index])
        plain = [column(name, "mean", "run") for name in meanings]
        return Row(
            {name: columns[name][index] for name in IDENTITY},
            self._parsed(columns["_point"][index]),
            {name: columns[name][index] for name in EPOCH_COLUMNS},
            {name: columns[name][index] for name in plain},
            meanings,
            {name: columns[name][index] for name in CURVES},
        )
