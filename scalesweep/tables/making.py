"""What the tables of an experiment are made of, and what makes a declared one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scalesweep.table.declared import DeclaredRow, frame_of
from scalesweep.tables.machine import Machine
from scalesweep.tables.points import ExperimentData, Point


@dataclass(frozen=True)
class TableInputs:
    """An experiment's runs and what they are held against."""

    data: ExperimentData
    points: Sequence[Point]
    series: Sequence[Sequence[Point]]  # points that differ in their scale alone
    machine: Machine
    runs: Path | None  # folder of the site's runs, where their files can be read


# Frames by name of the table, ready to be written.
Frames = Mapping[str, pd.DataFrame]


class Maker(NamedTuple):
    """Makes the rows of a declared table; without any there is no table.

    A table with a row per rank, epoch or sample, or with columns that no class can name, has a name
    and a function that makes its frame. Several tables are made at once of what is read once.
    """

    table: type[DeclaredRow] | tuple[type[DeclaredRow], ...] | str
    make: Callable[[TableInputs], Iterable[DeclaredRow] | pd.DataFrame | None]

    def frames(self, inputs: TableInputs) -> Frames:
        """The tables by name; without those that have no rows."""
        made = self.make(inputs)
        frames: dict[str, pd.DataFrame | None] = {}
        if made is None or isinstance(made, pd.DataFrame):
            frames[str(self.table)] = made
        else:
            rows = list(made)
            for kind in self.kinds:
                frames[kind.TABLE] = frame_of(row for row in rows if type(row) is kind)
        return {name: frame for name, frame in frames.items() if frame is not None}

    @property
    def kinds(self) -> tuple[type[DeclaredRow], ...]:
        """The classes of its rows; none where it makes a frame."""
        if isinstance(self.table, str):
            return ()
        return self.table if isinstance(self.table, tuple) else (self.table,)


def point_columns(point: Point) -> dict[str, Any]:
    """What every declared row says of its point."""
    return {
        "point": point.values,
        "source": point.source,
        "repeats": int(point.rows.size),
        "planned": point.planned,
    }
