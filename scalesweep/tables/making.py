"""What the tables of an experiment are made of, and what makes a declared one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scalesweep.table.declared import DeclaredRow
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


class Maker(NamedTuple):
    """Makes the rows of a declared table; without any there is no table."""

    table: type[DeclaredRow]
    rows: Callable[[TableInputs], Iterable[DeclaredRow]]


# Frames by name of the table, ready to be written.
Frames = Mapping[str, pd.DataFrame]


def point_columns(point: Point) -> dict[str, Any]:
    """What every declared row says of its point."""
    return {
        "point": point.values,
        "source": point.source,
        "repeats": int(point.rows.size),
        "planned": point.planned,
    }
