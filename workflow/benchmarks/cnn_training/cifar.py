"""Reading the real CIFAR-10 in its authors' binary version: five batches in a folder, one to test.

A row of a file is a label and the pixels of an image, uint8 ``[3, 32, 32]``.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, EXIT_PARAMETERS, ProgramError

VARIABLE = "CIFAR10_DIR"
TRAIN = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEST = ["test_batch.bin"]
CLASSES = 10
ROW = 1 + 3 * 32 * 32


def read(names: Sequence[str], count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 ``[N, 32, 32, 3]`` and labels int32 ``[N]``: the first `count`, or all.

    Raises ProgramError when the folder that CIFAR10_DIR names lacks a file (EXIT_MISSING_DATA),
    when that does not hold images (EXIT_BAD_DATA), or when there are fewer (EXIT_PARAMETERS).
    """
    files = [Path(os.environ.get(VARIABLE, ""), name) for name in names]
    if missing := next((path for path in files if not path.is_file()), None):
        said = f"{VARIABLE} must name the folder with {', '.join(names)}: no file {missing}"
        raise ProgramError(EXIT_MISSING_DATA, said)
    rows = []
    for path in files:
        values = np.fromfile(path, np.uint8)
        if not values.size or values.size % ROW or values[::ROW].max() >= CLASSES:
            said = f"{path}: not rows of {ROW} bytes that begin with a label from 0 to 9"
            raise ProgramError(EXIT_BAD_DATA, said)
        rows.append(values.reshape(-1, ROW))
    pixels = np.concatenate(rows)
    if (count or 0) > len(pixels):
        said = f"{count} images are wanted of CIFAR-10, which here has {len(pixels)} of them"
        raise ProgramError(EXIT_PARAMETERS, said)
    images = pixels[:count, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, pixels[:count, 0].astype(np.int32)
