"""The stand-in that input staged reads: names, bytes, content. NumPy only.

``FOLDER/train/part-000000.npy`` holds `samples_per_file` samples, a row each: a label (two bytes,
little-endian) and the uint8 of an image ``[H, W, 3]``, not compressed. An image is a coarse pattern
of its class and noise: a network can learn it.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness import staging

IMAGE_SHAPES = {"mlp": (32, 32, 3), "resnet20": (32, 32, 3), "resnet50": (224, 224, 3)}
CLASSES = {"mlp": 10, "resnet20": 10, "resnet50": 1000}
SEED = 20261123
LABEL_BYTES = 2
COARSE = 8  # edges of the squares that a class's pattern is made of, by image: pixels / COARSE
SAMPLES, PATTERNS = 1, 2  # kinds of random numbers


@dataclass(frozen=True)
class StandIn(staging.DataSet):
    """What identifies a data set of a model."""

    splits = ("train",)
    identity: ClassVar[dict[str, int]] = {"format_version": 1, "seed": SEED}
    suffix = "npy"
    preload = ("numpy",)

    model: str
    samples_per_file: int

    @property
    def row(self) -> int:
        """Bytes of a sample."""
        return LABEL_BYTES + int(np.prod(IMAGE_SHAPES[self.model]))

    @property
    def file_bytes(self) -> int:
        """Size of a file in bytes."""
        return self.samples_per_file * self.row + 128

    def open(self, path: str | Path) -> np.ndarray:
        """Return the rows of a file ``[sample, value]``, which are read when they are used.

        OSError where it is not there, ValueError where it is not whole.
        """
        rows = np.load(path, mmap_mode="r")
        if rows.dtype != np.uint8 or rows.shape != (self.samples_per_file, self.row):
            raise ValueError(f"{path} holds {rows.dtype} {rows.shape}")
        return rows

    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a file is there and has all its samples."""
        try:
            self.open(path)
        except (OSError, ValueError, EOFError):
            return False
        return True

    def write(self, path: str, split: str, index: int) -> None:
        """Write labels and images of a file."""
        rng = np.random.default_rng([SEED, SAMPLES, self.splits.index(split), index])
        height, width, channels = IMAGE_SHAPES[self.model]
        labels = rng.integers(CLASSES[self.model], size=self.samples_per_file).astype("<u2")
        rows = np.empty((self.samples_per_file, self.row), np.uint8)
        rows[:, :LABEL_BYTES] = labels.view(np.uint8).reshape(-1, LABEL_BYTES)
        for row, label in zip(rows, labels, strict=True):
            drawn = np.random.default_rng([SEED, PATTERNS, int(label)])
            coarse = drawn.integers(64, 192, size=(COARSE, COARSE, channels), dtype=np.uint8)
            pattern = coarse.repeat(height // COARSE, 0).repeat(width // COARSE, 1)
            noise = rng.integers(64, size=pattern.shape, dtype=np.uint8)
            row[LABEL_BYTES:] = (pattern + noise).ravel()
        with open(path, "wb") as file:  # noqa: PTH123 (np.save would add a suffix to a name)
            np.save(file, rows)


main = partial(staging.main, StandIn)
