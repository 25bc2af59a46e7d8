"""The stand-in for a data set of images: names, bytes, content, and what is missing.

Layout: ``FOLDER/train/part-000000.tfrecord``, TFRecord files of `images_per_file`
``tf.train.Example`` messages with the features ``image/encoded`` (bytes) and ``image/class/label``
(int64, from 0). For imagenet the bytes are a JPEG of 375 x 500 or 500 x 375 pixels of about 110 kB,
as ImageNet's are on average; for cifar10 the 3072 uint8 of ``[32, 32, 3]``.

An image is a coarse pattern of its class, on which random fields and noise are laid: a network can
learn it. TensorFlow is imported only to make imagenet's files.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.staging import other_data, write_records

FORMAT_VERSION = 1
SEED = 20200805
PATTERNS = 1  # kinds of random numbers; an image's come from its file's
IMAGES = 2
SPLITS = ("train",)
CLASSES = {"imagenet": 1000, "cifar10": 10}
CIFAR10_SHAPE = (32, 32, 3)
JPEG_SHAPES = ((375, 500, 3), (500, 375, 3))
JPEG_QUALITY = 95

# Amplitudes in grey levels. With them a JPEG has the size of ImageNet's.
PATTERN, FIELD, DETAIL, NOISE = 25.0, 24.0, 20.0, 14

_FRAME = 8 + 4 + 4  # TFRecord: length, its checksum, checksum of the payload
_EXAMPLE = 90  # bytes of an Example besides the image, at most


@dataclass(frozen=True)
class StandIn:
    """What identifies a data set: equal ones give equal bytes in every file.

    Equal, that is, with the same versions of TensorFlow and NumPy on the same kind of processor.
    """

    data_set: str
    images_per_file: int
    preload = ("tensorflow",)  # modules that writing a file needs

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "StandIn":
        """Take the fields from benchmark parameters; ValueError when one is missing or unusable."""
        try:
            data_set, images = str(params["data_set"]), int(params["images_per_file"])
        except KeyError as error:
            raise ValueError(f"parameter {error.args[0]} is missing") from None
        if data_set not in CLASSES:
            raise ValueError(f"data_set must be {' or '.join(CLASSES)}, not {data_set}")
        if images < 1:
            raise ValueError(f"images_per_file must be at least 1, not {images}")
        return cls(data_set, images)

    @property
    def file_bytes(self) -> int:
        """Size of a file in bytes: an upper bound for cifar10, a little above it for imagenet."""
        image = np.prod(CIFAR10_SHAPE) if self.data_set == "cifar10" else 119_000
        return self.images_per_file * (int(image) + _EXAMPLE + _FRAME)

    def describe(self) -> dict[str, Any]:
        """Return the content of the data set's ``format.json``."""
        jpeg = self.data_set == "imagenet"
        return {
            "format_version": FORMAT_VERSION,
            "seed": SEED,
            **asdict(self),
            "image/encoded": "JPEG, RGB" if jpeg else "uint8 in C order of [32, 32, 3]",
            "image/class/label": f"int64, 0 to {CLASSES[self.data_set] - 1}",
            "dependence": "image = pattern of the class + random fields + noise",
        }

    def mismatch(self, folder: Path) -> str | None:
        """Return one line on why `folder` does not hold this data set, or None when it may."""
        keys = ("format_version", "seed", "data_set", "images_per_file")
        return other_data(folder, self.describe(), keys)

    def path(self, folder: str | Path, split: str, index: int) -> str:
        """Return the path of file `index` of `split`."""
        return file_path(folder, index, split)

    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a file has all its records and nothing behind them."""
        return record_count(path) == self.images_per_file

    def write(self, path: str, split: str, index: int) -> None:
        """Write the images of a file."""
        write_records(path, self.records(split, index))

    def records(self, split: str, index: int) -> Iterator[bytes]:
        """Yield the serialised images of a file."""
        rng = np.random.default_rng([SEED, IMAGES, SPLITS.index(split), index])
        make = _encoded_jpeg if self.data_set == "imagenet" else _raw_cifar10
        for _ in range(self.images_per_file):
            label = int(rng.integers(CLASSES[self.data_set]))
            yield _example(make(rng, label), label)


def file_path(folder: str | Path, index: int, split: str = "train") -> str:
    """Return the path of file `index` of `split`."""
    return os.path.join(folder, split, f"part-{index:06d}.tfrecord")  # noqa: PTH118 (hot at scale)


def record_count(path: str | Path) -> int | None:
    """Return the number of records in a TFRecord file, None when it is absent or cut short.

    Goes from one record's length to the next; contents and checksums are not looked at.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            count = at = 0
            while at < size:
                head = os.pread(file.fileno(), 8, at)
                at += _FRAME + int.from_bytes(head, "little")
                count += 1
    except OSError:
        return None
    return count if at == size else None


def _example(image: bytes, label: int) -> bytes:
    """Serialise one ``tf.train.Example``, its features in a fixed order."""
    import tensorflow as tf

    features = {
        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)


def _enlarge(field: np.ndarray, factor: int) -> np.ndarray:
    """Repeat every pixel of ``[H, W, C]`` in both directions."""
    return field.repeat(factor, axis=0).repeat(factor, axis=1)


def _pattern(label: int, shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng([SEED, PATTERNS, label])
    return PATTERN * rng.standard_normal((*shape, 3), np.float32)


def _to_bytes(levels: np.ndarray) -> np.ndarray:
    return np.clip(levels + 128, 0, 255).astype(np.uint8)


def _raw_cifar10(rng: np.random.Generator, label: int) -> bytes:
    levels = _enlarge(_pattern(label, (4, 4)), 8)
    levels = levels + _enlarge(FIELD * rng.standard_normal((8, 8, 3), np.float32), 4)
    return _to_bytes(levels + rng.integers(-NOISE, NOISE + 1, CIFAR10_SHAPE)).tobytes()


def _encoded_jpeg(rng: np.random.Generator, label: int) -> bytes:
    import tensorflow as tf

    height, width, _ = shape = JPEG_SHAPES[int(rng.random() < 0.25)]
    field = FIELD * rng.standard_normal((12, 12, 3), np.float32)
    field += _enlarge(_pattern(label, (6, 6)), 2)
    detail = DETAIL * rng.standard_normal((height // 4, width // 4, 3), np.float32)
    levels = tf.image.resize(field, (height, width), "bicubic").numpy()
    levels += tf.image.resize(detail, (height, width), "bilinear").numpy()
    levels += rng.integers(-NOISE, NOISE + 1, shape, np.int8)
    return tf.io.encode_jpeg(_to_bytes(levels), quality=JPEG_QUALITY).numpy()
