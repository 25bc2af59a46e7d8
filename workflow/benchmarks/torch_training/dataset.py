"""The stand-in that input staged reads: names, bytes, content. NumPy only.

``FOLDER/train/part-000000.npy`` holds `samples_per_file` samples, a row each: tokens (uint16, or
uint32 of a vocabulary beyond 65,536), or a label (two bytes, little-endian) and the uint8 of an
image ``[H, W, 3]``, not compressed. Half of the tokens follow from the token before, and an image
is a coarse pattern of its class and noise: a network can learn both.
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
SMALL_VOCABULARY = 1 << 16
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
    sequence: int
    vocabulary: int
    samples_per_file: int

    @property
    def dtype(self) -> np.dtype:
        """Type of a row's values."""
        if self.model != "transformer":
            return np.dtype(np.uint8)
        return np.dtype("<u2" if self.vocabulary <= SMALL_VOCABULARY else "<u4")

    @property
    def row(self) -> int:
        """Values of a sample."""
        if self.model == "transformer":
            return self.sequence + 1
        return LABEL_BYTES + int(np.prod(IMAGE_SHAPES[self.model]))

    @property
    def file_bytes(self) -> int:
        """Size of a file in bytes."""
        return self.samples_per_file * self.row * self.dtype.itemsize + 128

    def open(self, path: str | Path) -> np.ndarray:
        """Return the rows of a file ``[sample, value]``, which are read when they are used.

        OSError where it is not there, ValueError where it is not whole.
        """
        rows = np.load(path, mmap_mode="r")
        if rows.dtype != self.dtype or rows.shape != (self.samples_per_file, self.row):
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
        """Write the samples of a file."""
        rng = np.random.default_rng([SEED, SAMPLES, self.splits.index(split), index])
        rows = self._tokens(rng) if self.model == "transformer" else self._images(rng)
        with open(path, "wb") as file:  # noqa: PTH123 (np.save would add a suffix to a name)
            np.save(file, rows)

    def _tokens(self, rng: np.random.Generator) -> np.ndarray:
        """Return sequences in which every second token, by chance, follows from the one before."""
        rows = rng.integers(self.vocabulary, size=(self.samples_per_file, self.row))
        follows = rng.random(rows.shape) < 0.5
        for place in range(1, self.row):
            after = (rows[:, place - 1] * 31 + 7) % self.vocabulary
            rows[:, place] = np.where(follows[:, place], after, rows[:, place])
        return rows.astype(self.dtype)

    def _images(self, rng: np.random.Generator) -> np.ndarray:
        """Return labels and images."""
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
        return rows


main = partial(staging.main, StandIn)
