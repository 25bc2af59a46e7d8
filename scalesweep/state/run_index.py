"""The index next to a site's runs: what their records said when they were last read.

Only a cache, ``.index.json``: rebuilt from the records if it cannot be read.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from scalesweep.core.files import write_atomic

INDEX = ".index.json"
_FORMAT = 15


class Entry(NamedTuple):
    """What is kept of a record: ``stamp``, times and sizes of it and its samples; what ``RunState``
    says of ``wall_s`` and ``source``; ``ended``, status, cause and detail of a run without a result
    (empty if it has one); ``compared``, the key (``agreement.Planned``)
    of what it was last compared with, empty if it never was; ``differs``, in what it disagreed with
    that: cause -> text."""

    stamp: str
    wall_s: float | None
    source: str
    ended: tuple[str, ...]
    compared: str
    differs: dict[str, str]


def read_index(runs_folder: Path) -> dict[str, Entry]:
    """The entries by run; none if the index is not there or of another format."""
    try:
        index = orjson.loads((runs_folder / INDEX).read_bytes())
        runs = index["runs"] if index["format"] == _FORMAT else {}
        return {run_id: Entry(*entry) for run_id, entry in runs.items()}
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return {}


def write_index(runs_folder: Path, entries: Mapping[str, Entry]) -> None:
    """Keep the entries for the next look.

    Without a word if that cannot be (a read-only copy, a number beyond 64 bits).
    """
    with contextlib.suppress(OSError, orjson.JSONEncodeError):
        content = orjson.dumps({"format": _FORMAT, "runs": entries}, default=list)
        write_atomic(runs_folder / INDEX, content, durable=False)
