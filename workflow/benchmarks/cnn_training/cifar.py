"""Reading the real CIFAR-10 in its authors' binary version: five batches in a folder, one to test.

A row of a file is a label and the pixels of an image, uint8 ``[3, 32, 32]``.
"""

import os
from pathlib import Path

import numpy as np

from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, EXIT_PARAMETERS, ProgramError

VARIABLE, FOLDER = "CIFAR10_DIR", "cifar-10-batches-bin"
NAMES = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEST = "test_batch.bin"
CLASSES = 10
ROW = 1 + 3 * 32 * 32


def read_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 ``[N, 32, 32, 3]`` and labels int32 ``[N]`` of one file.

    Raises ProgramError with EXIT_BAD_DATA when it does not hold them.
    """
    values = np.fromfile(path, np.uint8)
    if not values.size or values.size % ROW or values[::ROW].max() >= CLASSES:
        message = f"{path}: not rows of {ROW} bytes that begin with a label from 0 to 9"
        raise ProgramError(EXIT_BAD_DATA, message)
    rows = values.reshape(-1, ROW)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, rows[:, 0].astype(np.int32)


def find() -> Path:
    """Return the folder with the batches: the one that CIFAR10_DIR names, or FOLDER in it.

    Raises ProgramError with EXIT_MISSING_DATA and what was looked for when they are not there.
    """
    wanted = f"the folder with {NAMES[0]} to {NAMES[-1]}, or of its {FOLDER}"
    if not (named := os.environ.get(VARIABLE)):
        raise ProgramError(EXIT_MISSING_DATA, f"{VARIABLE} is not set: it names {wanted}")
    for folder in (Path(named), Path(named, FOLDER)):
        if all((folder / name).is_file() for name in NAMES):
            return folder
    raise ProgramError(EXIT_MISSING_DATA, f"{VARIABLE} is {named}: it must name {wanted}")


def read(rank: int, ranks: int, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of one rank: every `ranks`-th image uint8 ``[N, 32, 32, 3]``, and labels.

    `count`: of the first so many images; None: of all. Raises ProgramError when the data are
    missing (EXIT_MISSING_DATA), damaged (EXIT_BAD_DATA) or fewer (EXIT_PARAMETERS).
    """
    folder = find()
    images, labels = map(np.concatenate, zip(*(read_batch(folder / n) for n in NAMES), strict=True))
    check_count("data_images", count or 0, len(labels))
    return images[:count][rank::ranks], labels[:count][rank::ranks]


def read_test(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first `count` images of the test batch, as `read` does. Raises ProgramError."""
    path = find() / TEST
    if not path.is_file():
        raise ProgramError(EXIT_MISSING_DATA, f"{path} is missing, on which epochs are validated")
    images, labels = read_batch(path)
    check_count("validation_images", count, len(labels))
    return images[:count], labels[:count]


def check_count(name: str, wanted: int, there: int) -> None:
    """Raise ProgramError where a parameter asks for more images than there are."""
    if wanted > there:
        raise ProgramError(EXIT_PARAMETERS, f"{name} {wanted}: CIFAR-10 here has {there} images")
