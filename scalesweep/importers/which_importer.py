"""Which importer reads a source that another one was given."""

import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path

from scalesweep.compute.log_lines import open_packed
from scalesweep.importers import cosmoflow, detect_logs, extra_p_file
from scalesweep.importers.imported_run import shown
from scalesweep.importers.profiles.detect import is_profile

LOGS, COSMOFLOW, TABLE = "import_logs", "import_cosmoflow", "import_table"
PROFILES = "import_profiles"
# As much is looked at: a source that another importer reads shows it soon.
_MOST_FILES = 200
_MOST_S = 2.0  # of CPU time
_HEAD = 65_536
_TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".xlsx")


def hint(source: Path, importer: str) -> str:
    """``: snakemake NAME reads ...`` where another importer than this one would; else empty."""
    found = next((name for name in _readers(source) if name != importer), None)
    if found is None:
        return ""
    return f"; `snakemake {found} --config source={shown(source)}` reads {_WHAT[found]}"


_WHAT = {
    LOGS: "logs of training programs",
    COSMOFLOW: "result folders of cosmoflow-benchmark",
    PROFILES: "profiles of other tools",
    TABLE: "tables",
}


def _readers(source: Path) -> Iterator[str]:
    """Importers that would read a source, as far as its first files show."""
    files = list(_files(source))
    folders: dict[Path, list[str]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file.name)
    if source.is_dir() and any(cosmoflow.is_result(names) for names in folders.values()):
        yield COSMOFLOW
    end = time.process_time() + _MOST_S
    if any(detect_logs.is_log(file, max(end - time.process_time(), 1e-3)) for file in files):
        yield LOGS
    if any(is_profile(file) for file in files):
        yield PROFILES
    if any(_is_table(file) for file in files):
        yield TABLE


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    count = 0
    for root, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            if (path := Path(root, name)).is_file() and count < _MOST_FILES:
                count += 1
                yield path


def _is_table(file: Path) -> bool:
    """Whether a file's name is that of a table and, of text, its first lines have equal columns; or
    its first lines are those of a file of Extra-P's."""
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    kind = next((suffix for suffix in suffixes if suffix in _TABLES), None)
    if kind not in (None, ".csv", ".tsv"):
        return True
    try:
        with open_packed(file) as content:
            text = content.read(_HEAD).decode("utf-8-sig", "replace")
        if kind is None:
            return extra_p_file.begins(text)
        csv.Sniffer().sniff(text, ",;\t")
    except (OSError, csv.Error):
        return False
    return True
