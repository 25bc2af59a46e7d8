"""From tables to what is trained on: checks, MaxAbs scaling, tensors, batches."""

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from nt3 import loading

Samples = tuple[tf.Tensor, tf.Tensor]  # x [samples, features, 1] and labels int32 [samples]


def find_fault(table: np.ndarray, path: str, first: int) -> str | None:
    """Return one line on a value that is not finite or a label that is not 0 or 1, or None.

    `table` is float32 ``[rows, 1 + features]``, its first row number `first` (from 0) of the file.
    """
    for row, values in enumerate(table, first + 1):
        finite = np.isfinite(values)
        if not finite.all():
            column = int(finite.argmin()) + 1
            if path.endswith(".csv") and (fault := loading.fault_in_csv(path, len(values) - 1)):
                return fault  # readers fill a row that is too short
            return f"{path} row {row}, column {column}: {values[column - 1]} is no finite number"
        if values[0] not in (0, 1):
            return f"{path} row {row}: the label is {values[0]:g}, not 0 or 1"
    return None


def scale(
    train: np.ndarray, test: np.ndarray, over_ranks: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Divide every feature by its largest absolute value over both tables, in place.

    What scikit-learn's MaxAbsScaler does; a feature that is 0 throughout stays so. `over_ranks`
    returns the largest values over all ranks, of which each may have other rows.
    """
    largest = np.zeros(train.shape[1] - 1, np.float32)
    for table in (train, test):
        for first in range(0, len(table), 64):  # so that what is in between stays small
            block = np.abs(table[first : first + 64, 1:]).max(0)
            np.maximum(largest, block, out=largest)
    largest = over_ranks(largest)
    largest[largest == 0] = 1
    for table in (train, test):
        table[:, 1:] /= largest


def to_tensors(table: np.ndarray) -> Samples:
    """Return the values and the labels of a table on the device that trains."""
    return tf.constant(table[:, 1:, None]), tf.constant(table[:, 0].astype(np.int32))


def batches(samples: Samples, size: int, order: np.ndarray) -> Iterator[Samples]:
    """Yield batches of samples in `order`, the last one smaller where `size` does not divide."""
    for first in range(0, len(order), size):
        chosen = tf.constant(order[first : first + size])
        yield tf.gather(samples[0], chosen), tf.gather(samples[1], chosen)
