"""The index next to a site's runs: what their records said when they were last read.

Only a cache, ``.index.json``: rebuilt from the records if it is not there or not whole.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from scalesweep.state.sealed_json import read_sealed, write_sealed

INDEX = ".index.json"
_FORMAT = 12


class Entry(NamedTuple):
    """What is kept of a record: ``stamp``, times and sizes of it and its samples; what ``RunState``
    says of ``wall_s``, ``source``, ``fixed_s`` and ``extract``; ``ended``, status, cause and detail
    of a run without a result (empty if it has one); ``compared``, the key (``agreement.Planned``)
    of what it was last compared with, empty if it never was; ``differs``, in what it disagreed with
    that: cause -> text."""

    stamp: str
    wall_s: float | None
    source: str
    fixed_s: float | None
    extract: str
    ended: tuple[str, ...]
    compared: str
    differs: dict[str, str]


def read_index(runs_folder: Path) -> dict[str, Entry]:
    """The entries by run; none if the index is not there, not whole or of another format."""
    try:
        runs = read_sealed(runs_folder / INDEX, _FORMAT).get("runs", {})
        return {run_id: Entry(*entry) for run_id, entry in runs.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_index(runs_folder: Path, entries: Mapping[str, Entry]) -> None:
    """Keep the entries for the next look.

    Without a word if that cannot be (a read-only copy, a number beyond 64 bits).
    """
    with contextlib.suppress(OSError, orjson.JSONEncodeError):
        write_sealed(runs_folder / INDEX, _FORMAT, {"runs": entries}, durable=False)
