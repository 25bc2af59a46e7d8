"""Make or check the data set of the data-loading benchmark; `harness.staging` has the frame."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dataset
from harness import staging


@dataclass(frozen=True)
class Files:
    """The data set of one format, as the frame wants to see it."""

    fmt: dataset.Format

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "Files":
        """Take the format from benchmark parameters; ValueError when they will not do."""
        return cls(dataset.Format.from_params(params))

    @property
    def file_bytes(self) -> int:
        """Size of one file before compression, in bytes; exact."""
        return self.fmt.file_bytes

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that writing a file needs."""
        return ("tensorflow",)

    def describe(self) -> dict[str, Any]:
        """Content of ``format.json``."""
        return self.fmt.describe()

    def mismatch(self, folder: Path) -> str | None:
        """One line on why the folder does not hold this data set, or None when it may."""
        return dataset.check_format(folder, self.fmt)

    def path(self, folder: str | Path, split: str, index: int) -> str:
        """Path of a file."""
        return dataset.file_path(folder, split, index)

    def is_complete(self, path: str | Path) -> bool:
        """Whether a file is there with the size it must have."""
        return dataset.is_complete(path, self.fmt)

    def write(self, path: str, split: str, index: int) -> None:
        """Write the serialised samples of a file."""
        samples = dataset.samples(self.fmt, split, index)
        records = (dataset.example_bytes(x.tobytes(), y) for x, y in samples)
        staging.write_records(path, records, self.fmt.compression)


if __name__ == "__main__":
    sys.exit(staging.main(__doc__.splitlines()[0], dataset.SPLITS, Files.from_params))
