"""Logs of these texts, read."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from scalesweep.importers.imported_run import ImportedRun, Refusal
from tests.fakes.imported_runs import Read, read_source


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write texts (or their lines) into a log each and read them."""

    def reader(
        *texts: Iterable[str], ranks: int | None = None, name: str = "log"
    ) -> tuple[list[ImportedRun], list[Refusal]]:
        for number, text in enumerate(texts):
            (tmp_path / f"{name}_{number}.txt").write_bytes("".join(text).encode())
        return read_source(tmp_path, ranks)[:2]

    return reader
