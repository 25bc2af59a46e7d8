"""Format of the synthetic CosmoFlow-like data set: names, bytes, content, and what is missing.

Layout: ``FOLDER/{train,valid}/part-000000.tfrecord``, TFRecord files of `samples_per_file`
``tf.train.Example`` messages with two features: ``x``, the raw little-endian int16 of one sample,
and ``y``, four float32. Needs NumPy only, so that checking a data set never starts TensorFlow.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from harness.staging import other_data

FORMAT_VERSION = 1
SEED = 20200805
SPLITS = ("train", "valid")
TARGETS = 4

# Mean count of a voxel in channel c: exp(LOG_RATE + RATE_SLOPE * y[c]) with y uniform in [-1, 1],
# that is 1.1 to 8.2 counts. This is the dependence a training benchmark can learn.
LOG_RATE = 1.1
RATE_SLOPE = 1.0

_RECORD_FRAME = 8 + 4 + 4  # TFRecord: length, its checksum, checksum of the payload


@dataclass(frozen=True)
class Format:
    """What identifies a data set: equal formats give equal bytes in every file."""

    sample_shape: tuple[int, ...]
    samples_per_file: int = 1
    compression: str = "none"

    @classmethod
    def from_params(cls, params: dict) -> "Format":
        """Take the fields from benchmark parameters; ValueError when one is missing or unusable."""
        try:
            shape = tuple(int(size) for size in params["sample_shape"])
            samples = int(params["samples_per_file"])
            compression = str(params["compression"])
        except KeyError as error:
            raise ValueError(f"parameter {error.args[0]} is missing") from None
        if len(shape) != 4 or min(shape) < 1:
            raise ValueError(f"sample_shape must be 4 positive integers, not {list(shape)}")
        if samples < 1:
            raise ValueError(f"samples_per_file must be at least 1, not {samples}")
        if compression not in ("none", "GZIP"):
            raise ValueError(f"compression must be none or GZIP, not {compression}")
        return cls(shape, samples, compression)

    @property
    def values(self) -> int:
        """Number of int16 values in one sample."""
        return int(np.prod(self.sample_shape, dtype=np.int64))

    @property
    def file_bytes(self) -> int:
        """Size of one file before compression, in bytes; exact."""
        payload = example_bytes(b"", np.zeros(TARGETS, np.float32), x_length=2 * self.values)
        return self.samples_per_file * (_RECORD_FRAME + len(payload) + 2 * self.values)

    def describe(self) -> dict:
        """Return the content of the data set's ``format.json``."""
        return {
            "format_version": FORMAT_VERSION,
            "seed": SEED,
            **asdict(self),
            "sample_shape": list(self.sample_shape),
            "x": "int16, little-endian, in C order of sample_shape",
            "y": f"{TARGETS} float32, uniform in [-1, 1]",
            "dependence": f"x[..., c] ~ Poisson(exp({LOG_RATE} + {RATE_SLOPE} * y[c % {TARGETS}]))",
        }


def file_path(folder: str | Path, split: str, index: int) -> str:
    """Return the path of file `index` of `split`."""
    return os.path.join(folder, split, f"part-{index:06d}.tfrecord")  # noqa: PTH118 (hot at scale)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, length: int) -> bytes:
    """Tag and length of a length-delimited protobuf field."""
    return _varint(number << 3 | 2) + _varint(length)


def example_bytes(x: bytes, y: np.ndarray, x_length: int | None = None) -> bytes:
    """Serialise one ``tf.train.Example`` with features ``x`` (bytes) and ``y`` (float32 list).

    Written out by hand because the order of a protobuf map is not fixed, and files are to be
    reproducible byte for byte. With `x_length` the lengths are those of an x of that many bytes.
    """
    length = len(x) if x_length is None else x_length
    packed = y.astype("<f4").tobytes()
    y_list = _field(1, len(packed)) + packed
    y_feature = _field(2, len(y_list)) + y_list
    y_entry = _field(1, 1) + b"y" + _field(2, len(y_feature)) + y_feature

    x_head = _field(1, length)
    x_feature = _field(1, len(x_head) + length) + x_head
    x_size = len(x_feature) + length
    x_entry = _field(1, 1) + b"x" + _field(2, x_size) + x_feature
    x_entry_size = len(x_entry) + length

    head = _field(1, x_entry_size) + x_entry
    tail = _field(1, len(y_entry)) + y_entry
    return b"".join((_field(1, len(head) + length + len(tail)), head, x, tail))


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


def is_complete(path: str | Path, fmt: Format) -> bool:
    """Tell whether a file is there with the size it must have.

    For GZIP the size before compression is compared, which the last four bytes state modulo 2**32.
    """
    try:
        if fmt.compression == "none":
            return os.stat(path).st_size == fmt.file_bytes  # noqa: PTH116 (hot at scale)
        with open(path, "rb") as file:  # noqa: PTH123
            file.seek(-4, os.SEEK_END)
            return int.from_bytes(file.read(4), "little") == fmt.file_bytes % 2**32
    except OSError:
        return False


def check_format(folder: Path, fmt: Format) -> str | None:
    """Return one line on why `folder` does not hold data of this format, or None when it may."""
    keys = ("format_version", "seed", "sample_shape", "samples_per_file", "compression")
    return other_data(folder, fmt.describe(), keys)


def missing_by_name(folder: str | Path, files: dict[str, int]) -> str | None:
    """Return one line on the files that are not in `folder`, or None when all are there.

    `files` gives the number of files needed of each split. Only names are listed: no file is opened
    and no attribute asked for, so that a parallel file system's caches stay as cold as they were.
    """
    gaps = []
    for split, count in files.items():
        if count == 0:
            continue
        try:
            with os.scandir(Path(folder) / split) as entries:
                present = {entry.name for entry in entries}
        except OSError:
            present = set()
        absent = [
            path
            for index in range(count)
            if os.path.basename(path := file_path("", split, index)) not in present  # noqa: PTH119
        ]
        if absent:
            gaps.append(f"{len(absent)} of {count} {split} files (first {absent[0]})")
    return f"missing in {folder}: {', '.join(gaps)}" if gaps else None
