"""Format of the synthetic CosmoFlow-like data set: names, bytes, content.

Layout: ``FOLDER/{train,valid}/part-000000.tfrecord``, TFRecord files of `samples_per_file`
``tf.train.Example`` messages with two features: ``x``, the raw little-endian int16 of one sample,
and ``y``, four float32. TensorFlow is imported only to write files.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness import staging

SEED = 20200805
SPLITS = ("train", "valid")
TARGETS = 4
Y_ENTRY_BYTES = 11 + 4 * TARGETS  # of an Example, which it ends

# Mean count of a voxel in channel c: exp(LOG_RATE + RATE_SLOPE * y[c]) with y uniform in [-1, 1],
# that is 1.1 to 8.2 counts. This is the dependence a training benchmark can learn.
LOG_RATE = 1.1
RATE_SLOPE = 1.0


@dataclass(frozen=True)
class Format(staging.DataSet):
    """What identifies a data set: x[..., c] is Poisson distributed, y uniform in [-1, 1]."""

    splits = SPLITS
    identity: ClassVar[dict[str, int]] = {"format_version": 1, "seed": SEED}

    sample_shape: tuple[int, ...]
    samples_per_file: int = 1
    compression: str = "none"

    @property
    def file_bytes(self) -> int:
        """Size of one file before compression, in bytes; exact."""
        value = 2 * int(np.prod(self.sample_shape, dtype=np.int64))
        # An Example has features, of which one is named x and has a list of one value.
        entry = _field(1) + _field(_field(_field(value)))
        return self.samples_per_file * (
            staging.RECORD_FRAME + _field(_field(entry) + Y_ENTRY_BYTES)
        )

    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a file is there, with the size it must have if it is not compressed."""
        try:
            size = os.stat(path).st_size  # noqa: PTH116 (hot at scale)
        except OSError:
            return False
        return size == self.file_bytes if self.compression == "none" else size > 0

    def write(self, path: str, split: str, index: int) -> None:
        """Write the serialised samples of a file."""
        every = ({"x": x.tobytes(), "y": y} for x, y in samples(self, split, index))
        staging.write_examples(path, every, self.compression)


def _field(length: int) -> int:
    """Return the bytes of a protobuf field of so many: its tag, its length and themselves."""
    return 1 + max(1, -(-length.bit_length() // 7)) + length


def parse(record: bytes, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return x int16 of `shape` and y float32 ``[4]`` of a record, in which y is last."""
    values = int(np.prod(shape))
    begin = len(record) - Y_ENTRY_BYTES - 2 * values
    x = np.frombuffer(record, "<i2", values, begin)
    return x.reshape(shape), np.frombuffer(record, "<f4", TARGETS, len(record) - 4 * TARGETS)


def poisson_quantiles(rate: float, entries: int = 65536) -> np.ndarray:
    """Tabulate the inverse distribution function of Poisson(`rate`): int16 ``[entries]``.

    Entry i is the quantile at ``(i + 0.5) / entries``; drawing i uniformly samples the distribution
    with its tail cut at a probability of ``0.5 / entries``.
    """
    counts = np.arange(int(rate + 12 * np.sqrt(rate) + 24))
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    cumulative = np.cumsum(np.exp(counts * np.log(rate) - rate - log_factorial))
    points = (np.arange(entries) + 0.5) / entries
    return np.searchsorted(cumulative, points).astype("<i2")


def samples(fmt: Format, split: str, index: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (x, y) of every sample in one file: int16 ``sample_shape`` and float32 ``[4]``.

    Depends on the split and the file's index alone, so a data set can grow file by file.
    """
    rng = np.random.default_rng([SEED, SPLITS.index(split), index])
    for _ in range(fmt.samples_per_file):
        y = rng.uniform(-1.0, 1.0, TARGETS).astype(np.float32)
        draws = rng.integers(0, 65536, fmt.sample_shape, dtype=np.uint16)
        x = np.empty(fmt.sample_shape, "<i2")
        for channel in range(fmt.sample_shape[-1]):
            rate = float(np.exp(LOG_RATE + RATE_SLOPE * y[channel % TARGETS]))
            x[..., channel] = poisson_quantiles(rate)[draws[..., channel]]
        yield x, y


main = partial(staging.main, Format)
