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
    and a function that makes its frame.
    """

    table: type[DeclaredRow] | str
    make: Callable[[TableInputs], Iterable[DeclaredRow] | pd.DataFrame | None]

    def frames(self, inputs: TableInputs) -> Frames:
        """The table by its name; nothing where it has no rows."""
        made = self.make(inputs)
        frame = made if made is None or isinstance(made, pd.DataFrame) else frame_of(made)
        name = self.table if isinstance(self.table, str) else self.table.TABLE
        return {} if frame is None else {name: frame}


def point_columns(point: Point) -> dict[str, Any]:
    """What every declared row says of its point."""
    return {
        "point": point.values,
        "source": point.source,
        "repeats": int(point.rows.size),
        "planned": point.planned,
    }
