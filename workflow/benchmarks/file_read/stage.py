"""Make or check the files that file_read reads; `harness.staging` has the frame."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness import staging

SPLITS = ("read",)
MIB = 1 << 20


@dataclass(frozen=True)
class RawFiles:
    """Files of one size, of random bytes: nothing between the disk and here can pack them."""

    file_mib: int

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "RawFiles":
        """Take the size from benchmark parameters; ValueError when it is none."""
        if not isinstance(params.get("file_mib"), int) or params["file_mib"] < 1:
            raise ValueError("file_mib must be 1 or more")
        return cls(params["file_mib"])

    @property
    def file_bytes(self) -> int:
        """Size of one file."""
        return self.file_mib * MIB

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that writing a file needs."""
        return ("numpy",)

    def describe(self) -> dict[str, Any]:
        """Content of ``format.json``."""
        return {"file_mib": self.file_mib}

    def mismatch(self, folder: Path) -> str | None:
        """One line on why the folder does not hold these files, or None when it may."""
        return staging.other_data(folder, self.describe(), ["file_mib"])

    def path(self, folder: str | Path, split: str, index: int) -> str:
        """Path of a file."""
        return f"{folder}/{split}/{index:05d}.bin"

    def is_complete(self, path: str | Path) -> bool:
        """Whether a file is there with its size."""
        try:
            return Path(path).stat().st_size == self.file_bytes
        except FileNotFoundError:
            return False

    def write(self, path: str, split: str, index: int) -> None:
        """Write the random bytes of a file, MiB by MiB."""
        draw = np.random.default_rng([SPLITS.index(split), index])
        with Path(path).open("wb") as file:
            for _ in range(self.file_mib):
                file.write(draw.bytes(MIB))


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    return staging.main("file_read.stage", __doc__, SPLITS, RawFiles.from_params, arguments)
