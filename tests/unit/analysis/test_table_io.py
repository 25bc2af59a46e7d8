"""Writing tables: numbers and what hangs on a frame come back."""

from pathlib import Path

import pandas as pd

from scalesweep.analysis.table_io import read_table, without_attrs, write_tables


def test_a_table_is_written_with_what_hangs_on_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["=1+1", "b"], "rate": [1.0, 2.0]})
    units = {"rate": {"unit": "1/s"}}
    frame.attrs["units"] = units
    write_tables({"e": {"points": frame}}, tmp_path)
    assert (tmp_path / "e" / "points.csv").read_text() == "text,rate\n=1+1,1.0\nb,2.0\n"
    assert read_table(tmp_path / "e" / "points.parquet").attrs == {"units": units}
    # The columns are shared, the frame is not.
    bare = without_attrs(frame)
    bare["more"] = 1
    assert bare.attrs == {} and list(frame) == ["text", "rate"] and frame.attrs["units"] is units
    assert frame["text"].tolist() == ["=1+1", "b"]
