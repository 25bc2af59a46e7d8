"""How tables of samples are written to files: CSV, Parquet, TFRecord.

Values come as int64 in units of 0.00001. In CSV they are text with five decimals, as long as the
original's on average; in the other two float32.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from harness import staging

UNITS = 100_000  # in one
GROUP_BYTES = 32 << 20  # of a row group in Parquet

Rows = Iterator[tuple[int, np.ndarray]]


def write_csv(path: str, rows: Rows, features: int) -> None:
    """Write a line per row: label and values, no header, as the original's."""
    line = "%d" + ",%.5f" * features + "\n"
    with open(path, "w") as file:  # noqa: PTH123
        for label, values in rows:
            file.write(line % (label, *(values / UNITS).tolist()))


def to_float32(values: np.ndarray) -> np.ndarray:
    """Return what reading the text of these values gives: float32."""
    return (values / UNITS).astype("<f4")


def write_parquet(path: str, rows: Rows, features: int) -> None:
    """Write a label column (int32) and one column of lists of all values (float32).

    A column per value would need a footer of some 10 MB and 60,483 small pages per row group, and
    is read six times slower. Not compressed: random digits would hardly shrink.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([("label", pa.int32()), ("x", pa.list_(pa.float32(), features))])
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    with parquet.ParquetWriter(path, schema, **options) as writer:
        while group := list(islice(rows, max(1, GROUP_BYTES // (4 * features)))):
            values = to_float32(np.concatenate([row for _, row in group]))
            lists = pa.FixedSizeListArray.from_arrays(values, features)
            labels = pa.array([label for label, _ in group], pa.int32())
            writer.write_table(pa.table([labels, lists], schema=schema))


def write_tfrecord(path: str, rows: Rows, features: int) -> None:
    """Write a ``tf.train.Example`` per row: ``label`` (int64) and ``x``, raw float32."""
    staging.write_examples(
        path, ({"label": label, "x": to_float32(row).tobytes()} for label, row in rows)
    )


@dataclass(frozen=True)
class Format:
    """How a format is written."""

    write: Callable[[str, Rows, int], None]
    modules: tuple[str, ...]  # needed to write it
    bytes_per_value: int  # rounded up


FORMATS = {
    "csv": Format(write_csv, (), 10),
    "parquet": Format(write_parquet, ("pyarrow.parquet",), 5),
    "tfrecord": Format(write_tfrecord, ("tensorflow",), 5),
}
