"""Writing tables: what hangs on a frame is written once, and not copied for each column."""

from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import read_table, without_attrs, write_tables


class Counted(dict[str, Any]):
    """A mapping that counts the copies that are made of it."""

    copies = 0

    def __deepcopy__(self, memo: object) -> "Counted":
        Counted.copies += 1
        return self


def test_what_hangs_on_a_frame_is_not_copied_to_write_it(tmp_path: Path) -> None:
    """Of a table of 80 columns pandas made 80 copies, most of the time that writing took."""
    frame = pd.DataFrame({"text": ["=1+1", "b"], "rate": [1.0, 2.0]})
    units = Counted(rate={"unit": "1/s"})
    frame.attrs["units"] = units
    Counted.copies = 0
    write_tables({"e": {"points": frame}}, tmp_path)
    assert Counted.copies == 0
    assert (tmp_path / "e" / "points.csv").read_text() == "text,rate\n=1+1,1.0\nb,2.0\n"
    assert read_table(tmp_path / "e" / "points.parquet").attrs == {"units": units}
    # The columns are shared, the frame is not.
    bare = without_attrs(frame)
    bare["more"] = 1
    assert bare.attrs == {} and list(frame) == ["text", "rate"] and frame.attrs["units"] is units
    assert frame["text"].tolist() == ["=1+1", "b"]
