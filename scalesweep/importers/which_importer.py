"""What a source is that is to be imported, by its first files."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.importers import COSMOFLOW, LOGS, PROFILES, TABLE, cosmoflow, detect_logs
from scalesweep.importers.imported_run import files_below
from scalesweep.importers.profiles.detect import instead_of, reader_of
from scalesweep.importers.table_file import read_table, tables_of

# As much is looked at: a source that another importer reads shows it soon.
_MOST_FILES = 200
_MOST_S = 2.0  # of CPU time
_WHAT = {
    LOGS: "logs of training programs",
    COSMOFLOW: "result folders of cosmoflow-benchmark",
    PROFILES: "profiles of other tools",
    TABLE: "a table",
}


def kind_of(source: Path) -> str:
    """What a source is, of ``SOURCES``, by its first files. Raises UserError for one that is none,
    or may be several.

    A table is what nothing else reads.
    """
    if not source.exists():
        raise UserError(f"{source}: no such file or folder")
    kinds = list(_kinds(source))
    if len(kinds) > 1:
        ways = " or ".join(f"--as {kind} ({_WHAT[kind]})" for kind in kinds)
        raise UserError(f"{source}: can be read in several ways: add {ways}")
    if kinds:
        return kinds[0]
    why = instead_of(source) or _no_table(source)
    if why is None:
        return TABLE
    raise UserError(
        f"{source}: {why}; read are logs of {detect_logs.NAMES}, "
        f"{_WHAT[COSMOFLOW]}, {_WHAT[PROFILES]} and tables (CSV, Markdown, JSON, Parquet); "
        "the log of a program of your own: --reader FILE.yaml"
    )


def _kinds(source: Path) -> Iterator[str]:
    """The kinds that a source may be of, as far as its first files show, tables apart."""
    files = [file for file in islice(files_below(source, []), _MOST_FILES) if file.is_file()]
    folders: dict[Path, list[str]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file.name)
    if source.is_dir() and any(cosmoflow.is_result(names) for names in folders.values()):
        yield COSMOFLOW
    end = time.process_time() + _MOST_S
    if any(detect_logs.is_log(file, end) for file in files):
        yield LOGS
    if any(map(_is_profile, files)):
        yield PROFILES


def _is_profile(file: Path) -> bool:
    try:
        return reader_of(file) is not None
    except OSError:
        return False


def _no_table(source: Path) -> str | None:
    """Why a source is no table; None if it is one, or a folder of tables of one form."""
    files = tables_of(source)
    if source.is_dir() and len({file.suffix for file in files}) != 1:
        return "not recognised: a folder of no logs and no profiles, and not of tables of one form"
    try:
        if not read_table(source).rows:
            return "holds no row that can be read"
    except UserError as error:
        return str(error).removeprefix(f"{source}: ")
    return None
