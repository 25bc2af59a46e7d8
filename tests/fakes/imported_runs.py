"""Imported runs, and their records, without the command that prints what became of each."""

from collections.abc import Callable, Iterable
from pathlib import Path

from scalesweep.compute.log_reader import Reader
from scalesweep.importers.detect_logs import read_items
from scalesweep.importers.imported_run import NOT_READ, ImportedRun, Refusal
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.write_records import RecordStore, Written, write_runs

Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]


def import_runs(
    runs: Iterable[ImportedRun], runs_folder: Path
) -> tuple[list[Written], list[Refusal]]:
    """Write a record for every run below ``runs_folder``: what ``write_runs`` yields, as lists."""
    results = list(write_runs(runs, RecordStore(runs_folder, False)))
    written = [result for result in results if isinstance(result, Written)]
    return written, [result for result in results if isinstance(result, Refusal)]


def read_source(
    path: Path, ranks: int | None = None, test: str | None = None, reader: Reader | None = None
) -> tuple[list[ImportedRun], list[Refusal], list[Path]]:
    """Runs, refusals and the files that are no logs, of a log or a folder of them."""
    items = list(read_items(path, RankMap({}, ranks), test, reader))
    runs = [item for item in items if isinstance(item, ImportedRun)]
    others = [item for item in items if isinstance(item, Refusal)]
    refusals = [item for item in others if item.what != NOT_READ]
    return runs, refusals, [item.file for item in others if item.what == NOT_READ]
