"""A table that is declared once is written and read back as it was declared."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import read_table, write_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import (
    DeclaredRow,
    Estimate,
    PointRow,
    column,
    columns_of,
    frame_of,
    rows_of,
)
from tests.fakes.plan import whole_plan


@dataclass(frozen=True, kw_only=True)
class Speed(PointRow, table="speed", leading=("hosts",)):
    """Rows of a made-up table."""

    phase: str = column("the phase")
    rate: Estimate = column("bytes over time", "bytes/s", ends=("low", "high"))
    hosts: int = column("hosts", "1")
    note: str | None = column("what was noted")
    share: Estimate = column("rate / ceiling", "1")
    derived: bool = False  # no column


def speed(point: Mapping[str, Any], **values: Any) -> Speed:
    known = {"source": "measured", "repeats": 3, "planned": 3, "phase": "later", "hosts": 2,
             "rate": Estimate(1.0, 0.5, 2.0), "note": None, "share": Estimate(0.5)}  # fmt: skip
    return Speed(point=point, **{**known, **values})


def read_back(frame: pd.DataFrame, axes: list[str]) -> list[Speed]:
    (entry,) = whole_plan({"experiments": [{"name": "e", "axes": axes, "runs": []}]})["experiments"]
    return ExperimentResults(entry, {"speed": frame}).of(Speed)


def test_columns_follow_the_declaration() -> None:
    names = [item.name for item in columns_of(Speed)]
    assert names == [
        "source", "repeats", "planned", "phase", "rate", "low", "high", "hosts", "note", "share",
        "share_low", "share_high",
    ]  # fmt: skip
    kinds = {item.name: (item.kind, item.unit) for item in columns_of(Speed)}
    assert kinds["low"] == (float, "bytes/s") and kinds["note"] == (str, "")
    frame = frame_of([speed({"ranks": 1})])
    assert list(frame) == ["hosts", "ranks", *(name for name in names if name != "hosts")]
    assert frame.attrs["units"]["share_low"]["unit"] == "1"
    assert frame["share_low"].dtype == float  # also where no row has an interval
    assert frame_of([]) is None


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [
        speed({"ranks": 1, "phase": "cold"}),
        speed({"ranks": 2, "phase": "warm"}, note="odd", share=Estimate(0.1, 0.05, 0.2)),
    ]
    frame = frame_of(rows)
    assert (
        list(frame)[1:3] == ["ranks", "parameter_phase"] and list(frame["phase"]) == ["later"] * 2
    )
    write_tables({"e": {"speed": frame}}, tmp_path)
    assert read_back(read_table(tmp_path / "e" / "speed.parquet"), ["ranks", "phase"]) == rows
    assert read_back(frame, ["ranks", "phase"])[0].row["phase"] == "cold"


def test_a_row_of_no_point_with_a_list_a_missing_estimate_and_values_of_several_types() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Limit(DeclaredRow, table="limit"):
        size: float = column("a whole number in every row")
        value: int | float | str = column("of several types")
        places: list[int] = column("where")
        share: Estimate | None = column("of what there is", "1", default=None)
        rate: float | None = column("what was reached", "1", if_known=True, default=None)

    rows = [
        Limit(size=4, value=256, places=[1, 20]),
        Limit(size=8, value=512, places=[], share=Estimate(0.5, 0.25, 0.75)),
    ]  # fmt: skip
    frame = frame_of(rows)
    assert list(frame) == ["size", "value", "places", "share", "share_low", "share_high"]
    assert frame["size"].dtype == float and list(frame["places"]) == ["[1,20]", "[]"]
    plain = frame.astype(object).replace({math.nan: None}).to_dict("records")
    assert rows_of(Limit, plain, []) == rows
    assert "rate" in frame_of([*rows, replace(rows[0], rate=2.5)])
