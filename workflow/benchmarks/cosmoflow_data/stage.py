"""Make or check the CosmoFlow-like data set; `harness.staging` has the frame."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmoflow_data import dataset
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


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    make = Files.from_params
    return staging.main("cosmoflow_data.stage", __doc__, dataset.SPLITS, make, arguments)
