"""The stand-in for NT3's tables: what identifies them and what is in them.

The original are RNA-sequence expressions of normal and tumor tissue, 1,120 rows to train on and 280
to test, each a label and 60,483 values. Here a value is drawn as

    x[f] = scale[f] * exp(SPREAD * z + shift)

with z normal, scales of features from 0.1 to 1,000, and a shift of ``+-SHIFT / 2`` in the features
that carry the signal. These form blocks, of which half are higher in class 1 and half in class
0, so that no mean over all features tells the classes apart. One feature tells little, all together
tell everything. SHIFT and SIGNAL are set so that the first epochs at the original's width and rate
are much like its own (training accuracy 0.56, 0.64, 0.74, 0.84 with 16 filters
a layer; the public log of the original has 0.56, 0.71, 0.82, 0.86).

All is looked up in tables of integers, in units of 0.00001, so that no rounding of a processor or
of a version of NumPy shows: equal parameters give equal tables, and equal bytes of CSV.

Needs NumPy only, so that checking a data set never starts TensorFlow.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from harness import staging
from nt3 import formats

SEED = 20200213
SPLITS = ("train", "test")
FEATURES, LABELS, ROWS = 1, 2, 3  # kinds of random numbers, kept apart

SCALES = (-1.0, 3.0)  # log10 of a feature's median, uniform between
SPREAD = 0.7  # standard deviation of the logarithm of a value
BLOCK = 64  # features in a row that carry the signal or do not
SIGNAL = 0.1  # share of the blocks that differ between the classes, one at least
SHIFT = 0.4  # by which their logarithm does

_STEPS = 65536  # entries of a table of quantiles, and its unit


def quantiles(shift: float) -> np.ndarray:
    """Tabulate ``exp(SPREAD * z + shift)`` for z normal: int64 ``[65536]``, in units of 1/65536.

    Entry i is the quantile at ``(i + 0.5) / 65536``.
    """
    normal = NormalDist()
    values = (normal.inv_cdf((entry + 0.5) / _STEPS) for entry in range(_STEPS))
    return np.array([round(_STEPS * math.exp(SPREAD * z + shift)) for z in values], np.int64)


@dataclass(frozen=True)
class Tables(staging.DataSet):
    """What identifies the two tables of a data set, each one file."""

    splits = SPLITS
    identity: ClassVar[dict[str, int]] = {"format_version": 1, "seed": SEED}
    suffix = property(lambda self: self.data_format)
    preload = property(lambda self: formats.FORMATS[self.data_format].modules)

    features: int
    train_samples: int
    test_samples: int
    data_format: str

    @property
    def file_bytes(self) -> int:
        """Size of the larger table in bytes, rounded up."""
        rows = max(self.train_samples, self.test_samples)
        return rows * (self.features + 1) * formats.FORMATS[self.data_format].bytes_per_value

    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a table is there: one that is cut short is found when it is loaded."""
        return Path(path).is_file()

    def write(self, path: str, split: str, index: int) -> None:
        """Write the table of `split`, row by row."""
        formats.FORMATS[self.data_format].write(path, self.rows(split), self.features)

    def rows(self, split: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield label and values of every row, int64 ``[features]`` in units of 0.00001.

        Labels are as often 0 as 1, shuffled.
        """
        scales, kinds, tables = self._features
        number, samples = SPLITS.index(split), (self.train_samples, self.test_samples)
        labels = np.random.default_rng([SEED, LABELS, number])
        for row, label in enumerate(labels.permutation(np.arange(samples[number]) % 2)):
            rng = np.random.default_rng([SEED, ROWS, number, row])
            draws = rng.integers(0, _STEPS, self.features, dtype=np.uint16)
            # Tables 0, 1 and 2 are of no shift, up and down; the other class has it reversed.
            place = (kinds if label else (3 - kinds) % 3) * _STEPS + draws
            yield int(label), (scales * tables[place] + _STEPS // 2) // _STEPS

    @cached_property
    def _features(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scale and kind (0 no signal, 1 up, 2 down) ``[features]``; the tables behind another."""
        rng = np.random.default_rng([SEED, FEATURES])
        exponents = rng.uniform(*SCALES, self.features)
        scales = np.rint(formats.UNITS * 10.0**exponents).astype(np.int64)
        blocks = np.zeros(-(-self.features // BLOCK), np.int64)
        count = max(1, round(SIGNAL * len(blocks)))
        blocks[rng.permutation(len(blocks))[:count]] = 1 + np.arange(count) % 2
        kinds = blocks.repeat(BLOCK)[: self.features]
        tables = np.concatenate([quantiles(shift) for shift in (0.0, SHIFT / 2, -SHIFT / 2)])
        return scales, kinds, tables


main = partial(staging.main, Tables)
