"""The files that file_read reads: random bytes, which nothing on their way can pack."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness import staging

MIB = 1 << 20


@dataclass(frozen=True)
class RawFiles(staging.DataSet):
    """Files of one size, of random bytes."""

    splits = ("read",)
    identity: ClassVar[dict[str, int]] = {}
    suffix = "bin"
    preload = ("numpy",)

    file_mib: int

    @property
    def file_bytes(self) -> int:
        """Size of one file."""
        return self.file_mib * MIB

    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a file is there with its size."""
        try:
            return Path(path).stat().st_size == self.file_bytes
        except FileNotFoundError:
            return False

    def write(self, path: str, split: str, index: int) -> None:
        """Write the random bytes of a file, MiB by MiB."""
        draw = np.random.default_rng([self.splits.index(split), index])
        with Path(path).open("wb") as file:
            for _ in range(self.file_mib):
                file.write(draw.bytes(MIB))


main = partial(staging.main, RawFiles)
