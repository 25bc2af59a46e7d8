"""The stand-in for a data set of images: names, bytes, content; and the real CIFAR-10.

Layout: ``FOLDER/train/part-000000.tfrecord``, TFRecord files of `images_per_file`
``tf.train.Example`` messages with the features ``image/encoded`` (bytes) and ``image/class/label``
(int64, from 0). For imagenet the bytes are a JPEG of 375 x 500 or 500 x 375 pixels of about 110 kB,
as ImageNet's are on average; for cifar10 the 3072 uint8 of ``[32, 32, 3]``.

An image is a coarse pattern of its class, on which random fields and noise are laid: a network can
learn it. TensorFlow is imported only to make imagenet's files.

The real CIFAR-10 is read in its authors' binary version, five batches in a folder and one to test.
A row of a file is a label and the pixels of an image, uint8 ``[3, 32, 32]``.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness import staging
from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, EXIT_PARAMETERS, ProgramError

SEED = 20200805
PATTERNS = 1  # kinds of random numbers; an image's come from its file's
IMAGES = 2
CLASSES = {"imagenet": 1000, "cifar10": 10}
CIFAR10_SHAPE = (32, 32, 3)
CIFAR10_TRAIN = [f"data_batch_{number}.bin" for number in range(1, 6)]
CIFAR10_TEST = ["test_batch.bin"]
JPEG_SHAPES = ((375, 500, 3), (500, 375, 3))
JPEG_QUALITY = 95

# Amplitudes in grey levels. With them a JPEG has the size of ImageNet's.
PATTERN, FIELD, DETAIL, NOISE = 25.0, 24.0, 20.0, 14

_EXAMPLE = 90  # bytes of an Example besides the image, at most


@dataclass(frozen=True)
class StandIn(staging.DataSet):
    """What identifies a data set: equal ones give equal bytes in every file.

    Equal, that is, with the same versions of TensorFlow and NumPy on the same kind of processor.
    """

    splits = ("train",)
    identity: ClassVar[dict[str, int]] = {"format_version": 1, "seed": SEED}

    data_set: str
    images_per_file: int

    @property
    def file_bytes(self) -> int:
        """Size of a file in bytes: an upper bound for cifar10, a little above it for imagenet."""
        image = np.prod(CIFAR10_SHAPE) if self.data_set == "cifar10" else 119_000
        return self.images_per_file * (int(image) + _EXAMPLE + staging.RECORD_FRAME)

    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a file has all its records and nothing behind them."""
        return staging.record_count(path) == self.images_per_file

    def write(self, path: str, split: str, index: int) -> None:
        """Write the images of a file."""
        rng = np.random.default_rng([SEED, IMAGES, self.splits.index(split), index])
        make = _encoded_jpeg if self.data_set == "imagenet" else _raw_cifar10
        drawn = (int(rng.integers(CLASSES[self.data_set])) for _ in range(self.images_per_file))
        images = ({"image/encoded": make(rng, n), "image/class/label": n} for n in drawn)
        staging.write_examples(path, images)


def _enlarge(field: np.ndarray, factor: int) -> np.ndarray:
    """Repeat every pixel of ``[H, W, C]`` in both directions."""
    return field.repeat(factor, axis=0).repeat(factor, axis=1)


def _pattern(label: int, size: int) -> np.ndarray:
    rng = np.random.default_rng([SEED, PATTERNS, label])
    return PATTERN * rng.standard_normal((size, size, 3), np.float32)


def _to_bytes(levels: np.ndarray) -> np.ndarray:
    return np.clip(levels + 128, 0, 255).astype(np.uint8)


def _raw_cifar10(rng: np.random.Generator, label: int) -> bytes:
    levels = _enlarge(_pattern(label, 4), 8)
    levels = levels + _enlarge(FIELD * rng.standard_normal((8, 8, 3), np.float32), 4)
    return _to_bytes(levels + rng.integers(-NOISE, NOISE + 1, CIFAR10_SHAPE)).tobytes()


def _encoded_jpeg(rng: np.random.Generator, label: int) -> bytes:
    import tensorflow as tf

    height, width, _ = shape = JPEG_SHAPES[int(rng.random() < 0.25)]
    field = FIELD * rng.standard_normal((12, 12, 3), np.float32)
    field += _enlarge(_pattern(label, 6), 2)
    detail = DETAIL * rng.standard_normal((height // 4, width // 4, 3), np.float32)
    levels = tf.image.resize(field, (height, width), "bicubic").numpy()
    levels += tf.image.resize(detail, (height, width), "bilinear").numpy()
    levels += rng.integers(-NOISE, NOISE + 1, shape, np.int8)
    return tf.io.encode_jpeg(_to_bytes(levels), quality=JPEG_QUALITY).numpy()


def read_cifar10(names: Sequence[str], count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 ``[N, 32, 32, 3]`` and labels int32 ``[N]``: the first `count`, or all.

    Raises ProgramError when the folder that CIFAR10_DIR names lacks a file (EXIT_MISSING_DATA),
    when that does not hold images (EXIT_BAD_DATA), or when there are fewer (EXIT_PARAMETERS).
    """
    files = [Path(os.environ.get("CIFAR10_DIR", ""), name) for name in names]
    if missing := next((path for path in files if not path.is_file()), None):
        said = f"CIFAR10_DIR must name the folder with {', '.join(names)}: no file {missing}"
        raise ProgramError(EXIT_MISSING_DATA, said)
    size, rows = 1 + int(np.prod(CIFAR10_SHAPE)), []
    for path in files:
        values = np.fromfile(path, np.uint8)
        if not values.size or values.size % size or values[::size].max() > 9:
            said = f"{path}: not rows of {size} bytes that begin with a label from 0 to 9"
            raise ProgramError(EXIT_BAD_DATA, said)
        rows.append(values.reshape(-1, size))
    pixels = np.concatenate(rows)
    if (count or 0) > len(pixels):
        said = f"{count} images are wanted of CIFAR-10, which here has {len(pixels)} of them"
        raise ProgramError(EXIT_PARAMETERS, said)
    images = pixels[:count, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, pixels[:count, 0].astype(np.int32)


main = partial(staging.main, StandIn)
