"""Reading Parquet: what pandas wrote comes back, and no thread is left behind."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.parquet import read_frame
from scalesweep.analysis.table_io import read_table, without_attrs, write_tables
from tests.conftest import ROOT


def frame() -> pd.DataFrame:
    made = pd.DataFrame(
        {
            "text": ["a", None, "c"],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "real": np.array([0.5, np.nan, 2.0]),
            "yes": pd.array([True, None, False], dtype="boolean"),
        }
    )
    made.attrs = {"metrics": {"a": {"unit": "s"}}}
    return made


def test_a_frame_comes_back_as_pandas_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame().to_parquet(path)
    for source in (path, path.read_bytes()):
        found = read_frame(source)
        pd.testing.assert_frame_equal(found, pd.read_parquet(path))
        assert found.attrs == frame().attrs
    assert list(read_frame(path, ["real", "text"]).columns) == ["real", "text"]


PROGRAM = """
import os, sys
from pathlib import Path
import pandas, pyarrow.parquet
from scalesweep.analysis.table_io import read_table
path = Path(sys.argv[1])
before = len(os.listdir("/proc/self/task"))
read_table(path)
read_table(path, ["text"])
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.slow
def test_a_read_starts_no_thread_that_could_outlive_the_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame().to_parquet(path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


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
