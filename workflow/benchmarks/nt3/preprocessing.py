"""From tables to what is trained on: checks, MaxAbs scaling, tensors, batches."""

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from nt3 import loading

Samples = tuple[tf.Tensor, tf.Tensor]  # x [samples, features, 1] and labels int32 [samples]


def find_fault(table: np.ndarray, path: str) -> str | None:
    """Return one line if a value of a table is not finite or a label not 0 or 1, else None."""
    if np.isfinite(table).all() and np.isin(table[:, 0], (0, 1)).all():
        return None
    return f"{path} is damaged (a value is not finite, or a label not 0 or 1): {loading.ADVICE}"


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
