"""What an import did not take: printed by kind, and kept whole in a file next to the results."""

import csv
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scalesweep.core.csv_cells import CsvWriter, read_rows
from scalesweep.importers.imported_run import NotRead, Refusal, shown

FILE = "refused.csv"
REFUSED, COPY, NOT_READ = "refused", "copy", "not read"
COLUMNS = ("file", "line", "what", "benchmark", "reason")
# Of each kind, so many are named on the terminal and in the report.
NAMED = 5
_MOST_KINDS = 200
_VARIABLE = re.compile(r"'[^']*'|\S*/\S+|\d[\d.,]*")
_NOT_READ_REASON = "no log of a known kind"


@dataclass
class Kind:
    """Refusals for one reason."""

    what: str
    benchmark: str
    reason: str
    count: int = 0
    places: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def entry(self) -> dict[str, Any]:
        """What a campaign says of it."""
        return {
            "benchmark": self.benchmark,
            "reason": self.reason,
            "count": self.count,
            "places": self.places,
        }


class RefusalList:
    """The refusals of a site's imports, as they come.

    ``refused.csv`` keeps those of earlier imports, except of what is below ``source``, which is
    read again now. Used as a context: the file is there, whole, once it is left.
    """

    def __init__(self, folder: Path, source: Path) -> None:
        """Begin the list of ``folder``."""
        self.path = folder / FILE
        self.kinds: dict[tuple[str, str, str], Kind] = {}
        # Of this import alone.
        self.new: dict[tuple[str, str, str], Kind] = {}
        self._source = source
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".refused-")
        self._draft = Path(name)
        self._file = os.fdopen(handle, "w", encoding="utf-8", newline="")
        self._writer = CsvWriter(self._file)

    def __enter__(self) -> Self:
        """Take over what is still to be said of other sources."""
        self._writer.writerow(COLUMNS)
        for row in self._earlier():
            self._keep(row, self.kinds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None
    ) -> None:
        """Put the file in its place, unless something went wrong."""
        self._file.close()
        if kind is None and self.kinds:
            self._draft.replace(self.path)
        else:
            self._draft.unlink()
            if kind is None:
                self.path.unlink(missing_ok=True)

    def add(self, item: Refusal | NotRead) -> None:
        """Take what was not imported."""
        if isinstance(item, NotRead):
            row = {"file": shown(item.file), "line": "", "what": NOT_READ, "benchmark": ""}
            row["reason"] = _NOT_READ_REASON
        else:
            row = {
                "file": shown(item.file),
                "line": "" if item.line is None else str(item.line),
                "what": COPY if item.copy else REFUSED,
                "benchmark": item.benchmark,
                "reason": shown(item.reason),
            }
        self._keep(row, self.kinds)
        self._count(row, self.new, item.kind if isinstance(item, Refusal) else "")

    def counts(self, what: str) -> int:
        """How many of this import there are."""
        return sum(kind.count for kind in self.new.values() if kind.what == what)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All refused runs by kind, as a campaign has them; no copies, and no other files."""
        entries = [kind.entry for kind in self.kinds.values() if kind.what == REFUSED]
        return sorted(entries, key=lambda entry: (entry["benchmark"], entry["reason"]))

    def lines(self) -> Iterator[str]:
        """What to print of this import: of each kind the first, and how many more there are."""
        for kind in self.new.values():
            if kind.what == NOT_READ:
                named = ", ".join(kind.places)
                more = kind.count - len(kind.places)
                yield f"{kind.reason}: {named}{f' and {more:,} more: {self.path}' if more else ''}"
                continue
            for message in kind.messages:
                yield f"{'copy' if kind.what == COPY else 'refused'}: {message}"
            if more := kind.count - len(kind.messages):
                word = "copies" if kind.what == COPY else "refused"
                yield f"{word}: {more:,} more like these: {self.path}"

    def _keep(self, row: Mapping[str, str], kinds: dict[tuple[str, str, str], Kind]) -> None:
        self._writer.writerow([row[name] for name in COLUMNS])
        self._count(row, kinds)

    def _count(
        self, row: Mapping[str, str], kinds: dict[tuple[str, str, str], Kind], kind_text: str = ""
    ) -> None:
        like = kind_text or _VARIABLE.sub("…", row["reason"])
        key = row["what"], row["benchmark"], like
        if key not in kinds and len(kinds) >= _MOST_KINDS:
            key = row["what"], row["benchmark"], ""
        kind = kinds.setdefault(key, Kind(row["what"], row["benchmark"], row["reason"]))
        kind.reason = _shared(kind.reason, row["reason"])
        kind.count += 1
        if kind.count <= NAMED:
            place = row["file"] + (f":{row['line']}" if row["line"] else "")
            kind.places.append(place)
            kind.messages.append(f"{place}: {row['reason']}")

    def _earlier(self) -> Iterable[Mapping[str, str]]:
        """Rows of the list as it is, without those below the source; none if it is not whole."""
        try:
            with self.path.open(encoding="utf-8", newline="") as file:
                for row in read_rows(file, COLUMNS):
                    if not self._is_source(Path(row["file"])):
                        yield row
        except (OSError, ValueError, csv.Error):
            return

    def _is_source(self, file: Path) -> bool:
        return file.absolute().is_relative_to(shown(self._source.absolute()))


def _shared(reason: str, other: str) -> str:
    """A reason in which a number, or a name, that others of its kind have another of is ``…``."""
    known, given = _VARIABLE.findall(reason), _VARIABLE.findall(other)
    if reason == other or len(known) != len(given):
        return reason
    words = iter([mine if mine == its else "…" for mine, its in zip(known, given, strict=True)])
    return _VARIABLE.sub(lambda _: next(words), reason)
