"""What an import did not take: printed by kind, and kept whole in a file next to the results."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.core.files import write_atomic
from scalesweep.importers.imported_run import NotRead, Refusal, shown

FILE = "refused.csv"
REFUSED, COPY, NOT_READ = "refused", "copy", "not read"
# Of each kind, so many are named on the terminal and in the report.
NAMED = 5
_VARIABLE = re.compile(r"'[^']*'|\S*/\S+|\d[\d.,]*")


@dataclass(frozen=True)
class Entry:
    """A row of the file."""

    file: str
    line: str
    what: str
    benchmark: str
    reason: str

    @property
    def place(self) -> str:
        """Where it was read."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def like(self) -> tuple[str, str, str]:
        """What refusals of one kind share."""
        return self.what, self.benchmark, _VARIABLE.sub("…", self.reason)


class RefusalList:
    """The refusals of a site's imports, as they come.

    ``refused.csv`` keeps those of earlier imports, except of what is below ``source``, which is
    read again now.
    """

    def __init__(self, folder: Path, source: Path) -> None:
        """Take over what is still to be said of other sources."""
        self.path = folder / FILE
        top = shown(source.absolute())
        others = (e for e in self._earlier() if not Path(e.file).absolute().is_relative_to(top))
        self.before = list(others)
        self.new: list[Entry] = []

    def _earlier(self) -> Iterator[Entry]:
        if self.path.is_file():
            with self.path.open(encoding="utf-8", newline="") as file:
                for row in csv.reader(file):
                    if len(row) == 5 and row[0] != "file":
                        yield Entry(*row)

    def add(self, item: Refusal | NotRead) -> None:
        """Take what was not imported."""
        if isinstance(item, NotRead):
            entry = Entry(shown(item.file), "", NOT_READ, "", "no log of a known kind")
        else:
            line = "" if item.line is None else str(item.line)
            what = COPY if item.copy else REFUSED
            entry = Entry(shown(item.file), line, what, item.benchmark, shown(item.reason))
        self.new.append(entry)

    def write(self) -> None:
        """Write the file, or remove it if nothing is refused any more."""
        rows = [*self.before, *self.new]
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("file", "line", "what", "benchmark", "reason"))
        writer.writerows((e.file, e.line, e.what, e.benchmark, e.reason) for e in rows)
        write_atomic(self.path, text.getvalue())

    def count(self, what: str) -> int:
        """How many of this import there are."""
        return sum(entry.what == what for entry in self.new)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All refused runs by kind, as a campaign has them; no copies, and no other files."""
        kinds = _by_kind([e for e in (*self.before, *self.new) if e.what == REFUSED])
        entries = [
            {
                "benchmark": alike[0].benchmark,
                "reason": alike[0].reason if len(alike) == 1 else _shared(alike),
                "count": len(alike),
                "places": [entry.place for entry in alike[:NAMED]],
            }
            for alike in kinds
        ]
        return sorted(entries, key=lambda entry: (entry["benchmark"], entry["reason"]))

    def lines(self) -> Iterator[str]:
        """What to print of this import: of each kind the first, and how many more there are."""
        for alike in _by_kind(self.new):
            more = len(alike) - NAMED
            if alike[0].what == NOT_READ:
                named = ", ".join(entry.place for entry in alike[:NAMED])
                yield f"{alike[0].reason}: {named}{f' and {more:,} more' if more > 0 else ''}"
                continue
            word = "copy" if alike[0].what == COPY else "refused"
            for entry in alike[:NAMED]:
                yield f"{word}: {entry.place}: {entry.reason}"
            if more > 0:
                yield f"{word}: {more:,} more like these: {self.path}"


def _by_kind(entries: list[Entry]) -> list[list[Entry]]:
    kinds: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        kinds.setdefault(entry.like, []).append(entry)
    return list(kinds.values())


def _shared(alike: list[Entry]) -> str:
    """The reason of several, in which numbers and names that differ are ``…``."""
    variable = [_VARIABLE.findall(entry.reason) for entry in alike]
    if len({len(words) for words in variable}) > 1:
        return alike[0].reason
    words = iter([it[0] if len(set(it)) == 1 else "…" for it in zip(*variable, strict=True)])
    return _VARIABLE.sub(lambda _: next(words), alike[0].reason)
