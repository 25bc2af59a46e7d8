"""The index next to a site's runs: what their records said when they were last read.

Only a cache, ``.index.json``: its format, the entries by run, and the seal of both.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from scalesweep.planning.sealed_json import read_sealed, write_sealed

INDEX = ".index.json"
INDEX_FORMAT = 9  # of the index file; another one is rebuilt from the records


class Entry(NamedTuple):
    """What is kept of a record: ``stamp``, times and sizes of it and the files next to it; what
    ``RunState`` says of ``wall_s`` and ``fixed_s`` (s), ``source`` and ``extract``;
    ``unsupported``, why there can be no result (None if there is one); ``unread``, the files that
    were never read whole, with their checksums; ``unusable``, why no table can be made of the
    record (empty if one can); ``compared``, the key (``agreement.Planned``) of what it was last
    compared with, empty if it never was; ``differs``, in what it disagreed with that: cause ->
    text; ``unfinished``, why an imported run has no result though it began (None if it has)."""

    stamp: str
    wall_s: float | None
    source: str
    fixed_s: float | None
    unsupported: str | None
    extract: str
    unread: dict[str, str]
    unusable: str
    compared: str
    differs: dict[str, str]
    unfinished: str | None = None


class RunIndex:
    """The index of a folder of runs; ``entries`` as they are on disk, by run."""

    def __init__(self, runs_folder: Path) -> None:
        """Read it: empty if it is not there, not whole or of another format."""
        self._path = runs_folder / INDEX
        self.entries = _load(self._path)

    def update(self, entries: Mapping[str, Entry]) -> None:
        """Keep these entries too, on disk; nothing is written that is known already."""
        if all(self.entries.get(run_id) == entry for run_id, entry in entries.items()):
            return
        self.entries.update(entries)
        # Where it cannot be kept (a read-only copy, a number beyond 64 bits), records are read
        # again.
        try:
            write_sealed(self._path, INDEX_FORMAT, {"runs": self.entries}, durable=False)
        except (OSError, orjson.JSONEncodeError):
            return


def _load(path: Path) -> dict[str, Entry]:
    try:
        runs = read_sealed(path, INDEX_FORMAT).get("runs", {})
        entries = {run_id: Entry._make(kept) for run_id, kept in runs.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return {}
    whole = all(isinstance(entry.stamp, str) for entry in entries.values())
    return entries if whole else {}
