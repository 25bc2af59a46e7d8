"""Reading a table into float32 ``[rows, 1 + features]``, the label first, in one of several ways.

Loading dominated the published study of NT3. ``pandas`` is the original's call: it types each of
60,484 columns again for every internal chunk of 256 kB, less than one row. ``pandas_whole`` has
``low_memory=False``; ``pandas_chunked`` adds chunks of rows, by which the authors reduced this cost
later. pandas and pyarrow are imported by the readers that need them and by no other.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED

CHUNK_ROWS = 128  # of pandas_chunked
BLOCK_BYTES = 64 << 20  # of Arrow's CSV reader: many rows, as each block has all columns
PARSE_ROWS = 32  # records that are parsed together
ADVICE = "remove it, and the next `snakemake` makes it again"

Problem = tuple[int, str]


@dataclass(frozen=True)
class Part:
    """Rows to read of a table: `count` from `start` on; `whole` if that is all of them."""

    start: int
    count: int
    whole: bool

    def rows(self, skip: str, take: str) -> dict[str, int]:
        """Return arguments of a reader that names them so; none for the whole table."""
        return {} if self.whole else {skip: self.start, take: self.count}


def read_pandas(path: str, features: int, part: Part, **options: Any) -> np.ndarray:
    """Read by pandas: without options as the original does, which infers every type."""
    import pandas as pd

    rows = part.rows("skiprows", "nrows")
    table = pd.read_csv(path, header=None, **rows, **options)
    if "chunksize" in options:
        table = pd.concat(list(table), ignore_index=True)
    return table.values.astype("float32", copy=False)


def read_numpy(path: str, features: int, part: Part) -> np.ndarray:
    """Read with NumPy's own parser (in C since 1.23), which needs no other package."""
    rows = part.rows("skiprows", "max_rows")
    return np.loadtxt(path, np.float32, delimiter=",", comments=None, ndmin=2, **rows)


def read_pyarrow(path: str, features: int, part: Part) -> np.ndarray:
    """Read with Arrow's threaded reader, a column at a time; it always reads to the end."""
    from pyarrow import csv, float32

    names = [str(column) for column in range(features + 1)]
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=names, skip_rows=part.start, block_size=BLOCK_BYTES),
        csv.ParseOptions(quote_char=False),
        csv.ConvertOptions(column_types=dict.fromkeys(names, float32())),
    )
    if not part.whole:
        table = table.slice(0, part.count)
    rows = np.empty((table.num_rows, features + 1), np.float32)
    for column, values in enumerate(table.columns):
        rows[:, column] = values.to_numpy()
    return rows


def read_parquet(path: str, features: int, part: Part) -> np.ndarray:
    """Read batches of rows, each as one block of values, to the end."""
    from pyarrow import parquet

    blocks = []
    for batch in parquet.ParquetFile(path).iter_batches(PARSE_ROWS, columns=["label", "x"]):
        rows = np.empty((len(batch), len(batch["x"].flatten()) // len(batch) + 1), np.float32)
        rows[:, 0] = batch["label"]
        rows[:, 1:] = np.reshape(batch["x"].flatten(), (len(batch), -1))
        blocks.append(rows)
    table = np.concatenate(blocks)
    return table if part.whole else table[part.start : part.start + part.count]


def read_tfrecord(path: str, features: int, part: Part) -> np.ndarray:
    """Read and parse records with tf.data."""
    import tensorflow as tf

    keys = {"label": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([], tf.string)}

    def parse(records: tf.Tensor) -> tf.Tensor:
        parsed = tf.io.parse_example(records, keys)
        values = tf.io.decode_raw(parsed["x"], tf.float32, little_endian=True)
        label = tf.cast(parsed["label"], tf.float32)[:, None]
        return tf.concat([label, values], 1)

    records = tf.data.TFRecordDataset(path)
    if not part.whole:
        records = records.skip(part.start).take(part.count)
    with tf.device("CPU:0"):
        rows = records.batch(PARSE_ROWS).map(parse).prefetch(2)
        return np.concatenate(list(rows.as_numpy_iterator()))


WHOLE = {"low_memory": False}  # types are inferred once for the whole table, or chunk
# How a table is read, and the module that this needs, by csv_reader or data_format.
READERS: dict[str, tuple[Callable[[str, int, Part], np.ndarray], str | None]] = {
    "pandas": (read_pandas, "pandas"),
    "pandas_whole": (partial(read_pandas, **WHOLE), "pandas"),
    "pandas_float32": (partial(read_pandas, **WHOLE, dtype=np.float32), "pandas"),
    "pandas_chunked": (partial(read_pandas, **WHOLE, chunksize=CHUNK_ROWS), "pandas"),
    "pyarrow": (read_pyarrow, "pyarrow.csv"),
    "numpy": (read_numpy, None),
    "parquet": (read_parquet, "pyarrow.parquet"),
    "tfrecord": (read_tfrecord, None),
}


def import_package(name: str) -> tuple[str | None, Problem | None]:
    """Import what a reader needs; return ``package version``, and what went wrong or None.

    To be called after TensorFlow was imported without pandas (`harness.import_without`).
    """
    _, module = READERS[name]
    if module is None:
        return None, None
    package = module.partition(".")[0]
    if "pandas" in sys.modules and sys.modules["pandas"] is None:
        del sys.modules["pandas"]  # also for pyarrow, which asks whether it is there
    try:
        importlib.import_module(module)
    except ImportError as error:
        message = f"reader {name}: needs the Python package {package} ({error})"
        return None, (EXIT_UNSUPPORTED, message)
    return f"{package} {sys.modules[package].__version__}", None


def load(
    name: str, path: str, features: int, part: Part
) -> tuple[np.ndarray | None, Problem | None]:
    """Read a table with a reader; return it, or exit code and message of what went wrong.

    The values are not looked at, which is not loading; `preprocessing.find_fault` does that.
    """
    import tensorflow as tf

    try:
        table = READERS[name][0](path, features, part)
    except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
        said = getattr(error, "message", error)  # pandas' and Arrow's errors are ValueErrors
        return None, (EXIT_BAD_DATA, f"{path} is damaged ({said}): {ADVICE}")
    shape = (part.count, features + 1)
    if table.shape != shape:
        return None, (EXIT_BAD_DATA, f"{path} has {table.shape} values, not {shape}: {ADVICE}")
    return table, None
