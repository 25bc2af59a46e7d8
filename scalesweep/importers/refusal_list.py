"""What an import did not take: printed by kind, and kept whole in a file next to the results."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.core.files import write_atomic
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import REFUSED, Refusal

FILE = "refused.csv"
# Of each kind, so many are named on the terminal and in the report.
NAMED = 5
_VARIABLE = re.compile(r"'[^']*'|\S*/\S+|\d[\d.,]*")


class Entry(NamedTuple):
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


class RefusalList:
    """The refusals of a site's imports, as they come.

    ``refused.csv`` keeps those of earlier imports, except of what is below ``source``, which is
    read again now.
    """

    def __init__(self, folder: Path, source: Path) -> None:
        """Take over what is still to be said of other sources."""
        self.path = folder / FILE
        self.before: list[Entry] = []
        self.new: list[Entry] = []
        if self.path.is_file():
            with self.path.open(encoding="utf-8", newline="") as file:
                rows = [Entry(*row) for row in list(csv.reader(file))[1:] if len(row) == 5]
            top = visible(str(source.absolute()))
            self.before = [it for it in rows if not Path(it.file).absolute().is_relative_to(top)]

    def add(self, it: Refusal) -> None:
        """Take what was not imported."""
        entry = (str(it.file), str(it.line or ""), it.what, it.benchmark, it.reason)
        self.new.append(Entry(*map(visible, entry)))

    def write(self) -> None:
        """Write the file, or remove it if nothing is refused any more."""
        rows = [*self.before, *self.new]
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([Entry._fields, *rows])
        write_atomic(self.path, text.getvalue())

    def count(self, what: str) -> int:
        """How many of this import there are."""
        return sum(entry.what == what for entry in self.new)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All refused runs by kind, as a campaign has them; no copies, and no other files."""
        refused = [it for it in (*self.before, *self.new) if it.what == REFUSED]
        entries = [
            {
                "benchmark": alike[0].benchmark,
                "reason": alike[0].reason if len(alike) == 1 else reason,
                "count": len(alike),
                "places": [entry.place for entry in alike[:NAMED]],
            }
            for (*_, reason), alike in _by_kind(refused).items()
        ]
        return sorted(entries, key=lambda entry: (entry["benchmark"], entry["reason"]))

    def lines(self) -> Iterator[str]:
        """What to print of this import: of each kind the first, and how many more there are."""
        for (what, *_), alike in _by_kind(self.new).items():
            for entry in alike[:NAMED]:
                yield f"{what}: {entry.place}: {entry.reason}"
            if (more := len(alike) - NAMED) > 0:
                yield f"{what}: {more:,} more like these: {self.path}"


def _by_kind(entries: Sequence[Entry]) -> dict[tuple[str, str, str], list[Entry]]:
    """Entries whose reasons differ in numbers and names alone, by the reason with … for these."""
    kinds: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        key = entry.what, entry.benchmark, _VARIABLE.sub("…", entry.reason)
        kinds.setdefault(key, []).append(entry)
    return kinds
