"""Writing summaries and tables: Parquet with units in its schema, CSV in full precision."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from scalesweep.analysis.parquet import open_parquet, read_frame
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json, replacing


def without_attrs(frame: pd.DataFrame) -> pd.DataFrame:
    """The same columns without ``attrs``, of which pandas makes a copy for each column taken."""
    return pd.DataFrame(frame)


def write_parquet(frame: pd.DataFrame, path: Path, fields: Mapping[str, Mapping[str, str]]) -> None:
    """Write ``frame`` as Parquet, by rename, keeping its ``attrs`` (pandas reads them back).

    ``fields`` maps columns to text kept as metadata of that column in the file's schema.
    """
    # One thread: columns of text are converted under the interpreter's lock.
    table = pa.Table.from_pandas(without_attrs(frame), preserve_index=False, nthreads=1)
    schema = pa.schema(
        [field.with_metadata(dict(fields.get(field.name, {}))) for field in table.schema]
    )
    attrs = json.dumps(frame.attrs).encode()
    metadata = {**(table.schema.metadata or {}), b"PANDAS_ATTRS": attrs}
    table = table.cast(schema.with_metadata(metadata))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a summary or table, or those of the ``columns`` that it has. Raises UserError if it is
    not there or not whole."""
    try:
        if columns is not None:
            with open_parquet(path) as file:
                columns = [name for name in file.schema_arrow.names if name in columns]
        return read_frame(path, columns)
    except Exception as error:  # of Thrift, JSON, pandas and the file system, by what is damaged
        raise UserError(f"{path}: not a readable table ({error})") from None


def write_table(frame: pd.DataFrame, stem: Path) -> list[Path]:
    """Write ``<stem>.csv``, with all digits, and ``<stem>.parquet``, whose columns carry label,
    unit, better and scope (``attrs["units"]``) as metadata, by rename; returns both files."""
    csv, parquet = (stem.with_name(f"{stem.name}.{kind}") for kind in ("csv", "parquet"))
    write_parquet(frame, parquet, frame.attrs.get("units", {}))
    with replacing(csv) as temporary:
        without_attrs(frame).to_csv(temporary, index=False)
    return [csv, parquet]


def write_tables(tables: Mapping[str, Mapping[str, pd.DataFrame]], out: Path) -> list[Path]:
    """Write ``{experiment: {table: frame}}`` below ``out/<experiment>``; returns the files."""
    return [
        file
        for experiment, frames in tables.items()
        for name, frame in frames.items()
        for file in write_table(frame, out / experiment / name)
    ]


def typed_values(values: Sequence[Any], empty: type = str) -> Any:
    """A column of one type: bool, int, float or text, with None as missing.

    Lists, and values of several types, become compact JSON text, each of them. ``empty`` is
    the type where all are missing.
    """
    kinds = {type(value) for value in values if value is not None} or {empty}
    complete = None not in values
    if kinds == {bool}:
        return np.array(values, bool) if complete else pd.array(list(values), dtype="boolean")
    if kinds == {int} and all(v is None or -(2**63) <= v < 2**63 for v in values):
        return np.array(values, np.int64) if complete else pd.array(list(values), dtype="Int64")
    if kinds <= {int, float}:
        return np.array([math.nan if v is None else v for v in values], np.float64)
    if kinds - {str}:
        values = [None if v is None else canonical_json(v) for v in values]
    result = np.empty(len(values), object)
    result[:] = values
    return result
