"""Records of imported runs without the command that prints what became of each."""

from collections.abc import Iterable
from pathlib import Path

from scalesweep.importers.imported_run import ImportedRun, Refusal
from scalesweep.importers.write_records import RecordStore, Written, write_runs


def import_runs(
    runs: Iterable[ImportedRun], runs_folder: Path, startable: bool = False
) -> tuple[list[Written], list[Refusal]]:
    """Write a record for every run below ``runs_folder``: what ``write_runs`` yields, as lists."""
    results = list(write_runs(runs, RecordStore(runs_folder, startable)))
    written = [result for result in results if isinstance(result, Written)]
    return written, [result for result in results if isinstance(result, Refusal)]
