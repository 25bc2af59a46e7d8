"""The index next to a site's runs: what their records said when they were last read.

Only a cache, ``.index.json``: its format, the entries by run, and the seal of both.
"""

from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from scalesweep.state.sealed_json import read_sealed, write_sealed

INDEX = ".index.json"
INDEX_FORMAT = 11  # of the index file; another one is rebuilt from the records


class Entry(NamedTuple):
    """What is kept of a record: ``stamp``, times and sizes of it and the files next to it; what
    ``RunState`` says of ``wall_s`` and ``fixed_s`` (s), ``source`` and ``extract``;
    ``unsupported``, why there can be no result (None if there is one); ``unread``, the files that
    were never read whole, with their checksums; ``unusable``, why no table can be made of the
    record (empty if one can); ``compared``, the key (``agreement.Planned``) of what it was last
    compared with, empty if it never was; ``differs``, in what it disagreed with that: cause ->
    text; ``unfinished``, why an imported run has no result though it began (None if it has), and
    ``failed``, the cause where its source says that it failed."""

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
    failed: str | None = None


# What a run has of its own; ``unread`` too, which few have. The rest many runs share.
_OWN = ("stamp", "wall_s", "fixed_s")


class RunIndex:
    """The index of a folder of runs, by run, as it is on disk.

    ``stamps``: of each run its stamp. The rest of an entry is made when it is asked for: a call
    that finds everything done asks for none.
    """

    def __init__(self, runs_folder: Path) -> None:
        """Read it: empty if it is not there, not whole or of another format."""
        self._path = runs_folder / INDEX
        self.stamps: dict[str, str] = {}
        self._places: dict[str, int] = {}
        self._own: dict[str, list[Any]] = {name: [] for name in _OWN}
        self._kind: list[int] = []  # of each run which of these it has the rest of
        self._kinds: list[Entry] = []
        self.unread: dict[str, dict[str, str]] = {}
        self._load()

    def entry(self, run_id: str) -> Entry | None:
        """What is kept of a run's record; None if nothing is."""
        place = self._places.get(run_id)
        if place is None:
            return None
        own = {name: column[place] for name, column in self._own.items()}
        unread = self.unread.get(run_id, {})
        return self._kinds[self._kind[place]]._replace(**own, unread=unread)

    def without(self, fits: Callable[[Entry], bool]) -> Set[str]:
        """The runs whose entries do not fit, by what they share with others."""
        odd = {number for number, kind in enumerate(self._kinds) if not fits(kind)}
        if odd.isdisjoint(self._kind):
            return frozenset()
        return {i for i, kind in zip(self._places, self._kind, strict=True) if kind in odd}

    def update(self, entries: Mapping[str, Entry]) -> None:
        """Keep these entries too, on disk; nothing is written that is known already."""
        new = {i: entry for i, entry in entries.items() if self.entry(i) != entry}
        if not new:
            return
        kinds = {_content(kind): number for number, kind in enumerate(self._kinds)}
        for run_id, entry in new.items():
            place = self._places.setdefault(run_id, len(self._places))
            kind = entry._replace(**_NOTHING)
            number = kinds.setdefault(_content(kind), len(kinds))
            self._kinds[number:] = self._kinds[number:] or [kind]
            self._kind[place : place + 1] = [number]
            for name, column in self._own.items():
                column[place : place + 1] = [getattr(entry, name)]
            self.stamps[run_id] = entry.stamp
            self.unread.pop(run_id, None)
            if entry.unread:
                self.unread[run_id] = entry.unread
        runs = {"runs": list(self._places), **self._own, "kind": self._kind}
        shared = {"unread": self.unread, "kinds": [kind._asdict() for kind in self._kinds]}
        # Where it cannot be kept (a read-only copy, a number beyond 64 bits), records are read
        # again.
        try:
            write_sealed(self._path, INDEX_FORMAT, runs | shared, durable=False)
        except (OSError, orjson.JSONEncodeError):
            return

    def _load(self) -> None:
        try:
            content = read_sealed(self._path, INDEX_FORMAT)
            runs, kind, unread = content["runs"], content["kind"], content["unread"]
            own = {name: content[name] for name in _OWN}
            kinds = [Entry(**shared) for shared in content["kinds"]]
            places = dict(zip(runs, range(len(runs)), strict=True))
            stamps = dict(zip(runs, own["stamp"], strict=True))
            columns = [runs, kind, *own.values()]
            whole = {*map(type, columns)} == {list} and {*map(len, columns)} == {len(places)}
            whole = whole and {*map(type, [*runs, *own["stamp"]])} <= {str}
            whole = whole and {*kind} <= {*range(len(kinds))} and isinstance(unread, dict)
        except (OSError, ValueError, AttributeError, TypeError, KeyError):
            return
        if whole:
            self.stamps, self.unread = stamps, unread
            self._places, self._own, self._kind, self._kinds = places, own, kind, kinds


_NOTHING: dict[str, Any] = {**dict.fromkeys(_OWN), "stamp": "", "unread": {}}


def _content(kind: Entry) -> bytes:
    return orjson.dumps(list(kind))
