"""Reading Parquet on the thread that asks for it.

Arrow's own threads may outlive a read by a moment. If one then lets go of a Python object while
the interpreter exits, the process is aborted although its work is done (apache/arrow issue 34314;
3 in 100 short processes here). So nothing in scalesweep calls ``pandas.read_parquet`` or
``pyarrow.parquet.read_table``, which ``make lint`` holds.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def open_parquet(source: Path | bytes, **options: Any) -> pq.ParquetFile:
    """Open a file, or the content of one; ``options`` as of ``pyarrow.parquet.ParquetFile``. Raises
    OSError or an error of Arrow if it is not there or not whole."""
    file = pa.BufferReader(source) if isinstance(source, bytes) else str(source)
    return pq.ParquetFile(file, pre_buffer=False, **options)


def read_arrow(
    source: Path | bytes, columns: Sequence[str] | None = None, **options: Any
) -> pa.Table:
    """Read these columns, or all; errors and ``options`` as ``open_parquet``."""
    with open_parquet(source, **options) as file:
        return file.read(columns, use_threads=False)


def read_frame(source: Path | bytes, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read these columns, or all, with the frame's ``attrs``, as pandas writes and reads them."""
    table = read_arrow(source, columns)
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    frame.attrs = json.loads((table.schema.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
    return frame
