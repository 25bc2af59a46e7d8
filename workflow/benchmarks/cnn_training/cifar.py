"""Reading the real CIFAR-10, as its authors publish it: six batches in one folder, one to test.

Both of their versions do: ``cifar-10-batches-py`` (pickles of Python) and ``cifar-10-batches-bin``.
"""

import os
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, EXIT_PARAMETERS, ProgramError

VARIABLE = "CIFAR10_DIR"
BATCHES = 5
CLASSES = 10
VALUES = 3 * 32 * 32
FOLDERS = ("cifar-10-batches-py", "cifar-10-batches-bin")
NAMES = ("data_batch_{}", "data_batch_{}.bin")
TEST = {"": "test_batch", ".bin": "test_batch.bin"}  # by the suffix of the training batches


class _Array:
    """What a pickle holds for an array: the bytes and shape it gives, unchecked."""

    __slots__ = ("state",)

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Type:
    """What a pickle holds for an array's type: its code, as ``u1``."""

    __slots__ = ("code",)

    def __init__(self, code: Any) -> None:
        self.code = code.decode() if isinstance(code, bytes) else code

    def __setstate__(self, state: Any) -> None:
        """Leave the state, which says no more of uint8 than its code does."""


class _Maker:
    """Called from a pickle to make a part of an array, of which `name` says the kind."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        if self.name == "array":
            return _Array()
        if self.name == "type":
            return _Type(arguments[0])
        if self.name == "bytes":  # how Python 3 writes bytes in the older protocols
            return arguments[0].encode("latin1")
        raise pickle.UnpicklingError(f"{self.name} is called")


class PlainUnpickler(pickle.Unpickler):
    """Reads dicts, lists, strings, ints and bytes, and uint8 arrays as `_Array`; nothing else.

    No name in the file is ever imported, so none can be called: the few that an array needs have
    stand-ins of our own. Raises pickle.UnpicklingError on any other.
    """

    _KNOWN = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): "array",
        ("numpy._core.multiarray", "_reconstruct"): "array",
        ("numpy", "ndarray"): "class",
        ("numpy", "dtype"): "type",
        ("_codecs", "encode"): "bytes",
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return our stand-in for a name in a pickle; UnpicklingError when there is none."""
        try:
            return _Maker(self._KNOWN[module, name])
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def _array(value: Any) -> np.ndarray:
    """Make the array uint8 ``[N, VALUES]`` of what a pickle gave; ValueError when it is none."""
    try:
        _, shape, kind, by_columns, content = value.state
        code = kind.code
    except (AttributeError, TypeError, ValueError):
        raise ValueError("data is not an array") from None
    if code not in ("u1", "uint8", "|u1") or by_columns or not isinstance(content, bytes):
        raise ValueError("data is not an array of uint8")
    if len(shape) != 2 or shape[1] != VALUES or shape[0] * VALUES != len(content):
        raise ValueError(f"data has the shape {shape}, not (N, {VALUES})")
    return np.frombuffer(content, np.uint8).reshape(-1, VALUES)


def _read_pickle(file: BinaryIO) -> tuple[np.ndarray, np.ndarray]:
    try:
        content = PlainUnpickler(file, encoding="bytes").load()
        content = {k.decode() if isinstance(k, bytes) else k: v for k, v in content.items()}
        data, labels = content["data"], content["labels"]
    except KeyError as error:
        raise ValueError(f"no {error.args[0]}") from None
    except Exception as error:  # whatever a damaged pickle leads to
        raise ValueError(str(error) or type(error).__name__) from None
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise ValueError("labels is not a list of integers")
    return _array(data), np.array(labels, np.int64)


def _read_binary(file: BinaryIO) -> tuple[np.ndarray, np.ndarray]:
    content = np.frombuffer(file.read(), np.uint8)
    if content.size % (VALUES + 1):
        raise ValueError(f"its {content.size} bytes are not a multiple of {VALUES + 1}")
    rows = content.reshape(-1, VALUES + 1)
    return rows[:, 1:], rows[:, 0].astype(np.int64)


def read_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 ``[N, 32, 32, 3]`` and labels int32 ``[N]`` of one file.

    Raises ProgramError with EXIT_BAD_DATA when it does not hold them.
    """
    try:
        with path.open("rb") as file:
            read = _read_binary if path.suffix == ".bin" else _read_pickle
            data, labels = read(file)
        if not 0 < len(data) == len(labels):
            raise ValueError(f"it has {len(data)} images and {len(labels)} labels")
        if not 0 <= labels.min() <= labels.max() < CLASSES:
            raise ValueError(f"a label is not in 0 to {CLASSES - 1}")
    except (OSError, ValueError) as error:
        raise ProgramError(EXIT_BAD_DATA, f"{path}: {error}") from None
    images = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, labels.astype(np.int32)


def find() -> list[Path]:
    """Return the paths of the training batches below the folder that CIFAR10_DIR names.

    Raises ProgramError with EXIT_MISSING_DATA and what was looked for when they are not there.
    """
    folder = os.environ.get(VARIABLE)
    wanted = f"data_batch_1 to {BATCHES} or data_batch_1.bin to {BATCHES}.bin"
    if not folder:
        raise ProgramError(
            EXIT_MISSING_DATA,
            f"{VARIABLE} is not set: it names the folder of CIFAR-10, with {wanted}",
        )
    for below in (".", *FOLDERS):
        for name in NAMES:
            paths = [Path(folder, below, name.format(n)) for n in range(1, BATCHES + 1)]
            if all(path.is_file() for path in paths):
                return paths
    raise ProgramError(
        EXIT_MISSING_DATA,
        f"{VARIABLE} names {folder}, where there is no {wanted}, nor in its {' or '.join(FOLDERS)}",
    )


def read(rank: int, ranks: int, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of one rank: every `ranks`-th image uint8 ``[N, 32, 32, 3]``, and labels.

    `count`: of the first so many images; None: of all. Raises ProgramError when the data are
    missing (EXIT_MISSING_DATA), damaged (EXIT_BAD_DATA) or fewer (EXIT_PARAMETERS).
    """
    images, labels = [], []
    before = 0
    for path in find():
        each_images, each_labels = read_batch(path)
        end = len(each_labels) if count is None else max(0, count - before)
        mine = slice((rank - before) % ranks, end, ranks)
        images.append(each_images[mine])
        labels.append(each_labels[mine])
        before += len(each_labels)
    check_count("data_images", count or 0, before)
    return np.concatenate(images), np.concatenate(labels)


def read_test(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first `count` images of the test batch, as `read` does. Raises ProgramError."""
    training = find()[0]
    path = training.with_name(TEST[training.suffix])
    if not path.is_file():
        raise ProgramError(EXIT_MISSING_DATA, f"{path} is missing, on which epochs are validated")
    images, labels = read_batch(path)
    check_count("validation_images", count, len(labels))
    return images[:count], labels[:count]


def check_count(name: str, wanted: int, there: int) -> None:
    """Raise ProgramError where a parameter asks for more images than there are."""
    if wanted > there:
        raise ProgramError(EXIT_PARAMETERS, f"{name} {wanted}: CIFAR-10 here has {there} images")
