"""A table as it was published: text with any separator, Markdown, JSON or Parquet.

Nothing is guessed where two readings give two numbers: a comma that may be a decimal comma or stand
between thousands is refused until the map says which.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.compute.log_lines import PACKED, open_packed
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.importers.imported_run import Refusal

MAX_BYTES = 64 << 20
SEPARATORS = (",", ";", "\t", "|", "  ")
# Heading of a column without a name that comes first, as pandas writes its index.
INDEX = "index"
_ENDS = (".csv", ".tsv", ".md", ".json", ".jsonl", ".ndjson", ".parquet")

Cell = str | int | float | bool | None
Line = tuple[int, dict[str, Cell]]  # where a row is, and its cells by column
Fields = tuple[int, list[str]]

# Words in the cell of a metric that say that the run failed.
FAILED = {
    "oom": Cause.OUT_OF_MEMORY, "out of memory": Cause.OUT_OF_MEMORY, "timeout": Cause.TIMEOUT,
    "time out": Cause.TIMEOUT, "failed": Cause.NOT_STATED, "fail": Cause.NOT_STATED,
    "error": Cause.NOT_STATED, "crash": Cause.NOT_STATED, "crashed": Cause.NOT_STATED,
    "dnf": Cause.NOT_STATED, "killed": Cause.KILLED,
}  # fmt: skip
_MISSING = frozenset(("", "-", "--", "na", "n/a", "nan", "none", "null"))
_EXPONENT = r"(?:[eE][+-]?\d{1,4})?"
_POINT = re.compile(rf"[+-]?\d*\.\d+{_EXPONENT}", re.ASCII)
_COMMA = re.compile(rf"[+-]?\d+,\d+{_EXPONENT}", re.ASCII)
_UNSURE = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([.,' _])\d{3})(?:\1\d{3})*(?:[.,]\d+)?", re.ASCII)
# Lines below a heading of Markdown, and borders: | --- | ---: |, +-----+-----+.
_RULE = re.compile(r"\s*[|+](?=.*-)[\s|+:=-]*\s*|\s*:?-+:?\s*(?:[|+]\s*:?-+:?\s*)+")
_MARKS = re.compile(r"\*\*|`|(?<!\w)__|__(?!\w)|\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Row:
    """A row: its file, its line there (its number, from 1, in JSON and Parquet), and its cells.

    ``side``: of values side by side, which are rows of their own, the place in the map of the
    parameter's value, that of the repeat, and the value.
    """

    file: Path
    line: int
    cells: Mapping[str, Cell]
    side: tuple[int, int, str] | None = None


@dataclass(frozen=True)
class Table:
    """What a file holds, or all files of a folder.

    ``refusals`` are rows that cannot be read, ``notes`` what to know of it. ``decimal`` is the mark
    that its numbers have, None where they show none; ``thousands`` what a map says that stands
    between thousands.
    """

    file: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    decimal: str | None = "."
    thousands: str | None = None

    def number(self, cell: Cell) -> float | int | None:
        """The number in a cell, None where it is empty; 95 % is 0.95.

        Raises ValueError with the reason if it is no finite number.
        """
        text = str(cell).strip()
        if cell is None or text.lower() in _MISSING:
            return None
        value = cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None
        if isinstance(cell, str):
            value = self._number(text.removesuffix("%").rstrip())
            value = value / 100 if text.endswith("%") else value
        if value is None or not math.isfinite(value):
            raise ValueError(f"{text[:30]!a} is not a {'' if value is None else 'finite '}number")
        return value

    def _number(self, text: str) -> float | int:
        """The number of a text. Raises ValueError if it is none, or a comma may be either mark."""
        if "..." in text:
            raise ValueError("'...': values were left out when the table was printed")
        if self.decimal is None and _UNSURE.fullmatch(text):
            raise ValueError(
                f"{text[:30]!a}: the comma may be a decimal comma or stand between thousands; "
                "say which in the map: table: {decimal: ','} or {decimal: '.'}"
            )
        mark = self.decimal or "."
        between = self.thousands or ("," if mark == "." else "")
        groups = rf"|\d{{1,3}}(?:{re.escape(between)}\d{{3}})+" if between else ""
        pattern = rf"[+-]?(?=\W?\d)(?:\d*{groups})(?:{re.escape(mark)}\d*)?{_EXPONENT}"
        if re.fullmatch(pattern, text, re.ASCII):
            plain = text.replace(between, "") if between else text
            plain = plain.replace(mark, ".")
            return int(plain) if re.fullmatch(r"[+-]?\d{1,18}", plain) else float(plain)
        grouped = None if self.thousands else _GROUPED.fullmatch(text)
        hint = grouped and (
            f", as the decimal mark is {mark!r}; if {grouped[1]!r} stands between thousands, say "
            f'so in the map: table: {{thousands: "{grouped[1]}"}}'
        )
        raise ValueError(f"{text[:30]!a} is not a number{hint or ''}")


def read_table(
    source: Path,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Table:
    """Read a table whole, or the tables of a folder as one; what is not given is found out.

    Raises UserError naming the file if it is no table.
    """
    files = tables_of(source)
    if not files:
        raise UserError(f"{source}: no such file, or a folder without tables")
    rows: list[Row] = []
    refusals: list[Refusal] = []
    notes: dict[str, None] = {}
    columns: dict[str, None] = {}
    for file in files:
        names, lines = _read(file, separator, refusals, notes)
        for place, name in enumerate(names, 1):
            if not name or not name.isprintable():
                raise UserError(f"{file}: column {place} has no name that can be printed")
            if names.index(name) < place - 1:
                raise UserError(f"{file}: two columns are named {name[:40]!r}")
        columns |= dict.fromkeys(names)
        rows += [Row(file, line, cells) for line, cells in lines]
    empty: dict[str, Cell] = dict.fromkeys(columns)
    whole = tuple(Row(row.file, row.line, {**empty, **row.cells}) for row in rows)
    mark = decimal or ("." if thousands and thousands != "." else "," if thousands else None)
    return Table(
        source, tuple(columns), whole, tuple(refusals), tuple(notes), mark or _decimal(whole),
        thousands,
    )  # fmt: skip


def tables_of(source: Path) -> list[Path]:
    """A file, or the files of a folder whose names are those of tables."""
    if not source.is_dir():
        return [source] if source.is_file() else []
    ends = tuple(f"{end}{packed}" for end in _ENDS for packed in ("", *PACKED))
    return sorted(p for p in source.iterdir() if p.is_file() and p.name.lower().endswith(ends))


def _read(
    file: Path, separator: str | None, refusals: list[Refusal], notes: dict[str, None]
) -> tuple[Sequence[str], Sequence[Line]]:
    """The columns and rows of a file; adds what cannot be read, and what to know of it."""
    try:
        with open_packed(file) as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or 'cannot be read'}") from None
    if len(content) > MAX_BYTES or not content.strip():
        raise UserError(f"{file}: is empty, or has more than {MAX_BYTES:,} bytes")
    if content.startswith(b"PAR1"):
        return _parquet(content, file)
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise UserError(f"{file}: a workbook or an archive: save the sheet as CSV")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        words = "not UTF-8: convert the file (iconv -f latin1 -t utf-8)"
        raise UserError(f"{file}:{line}: {words}") from None
    if text.lstrip().startswith(("{", "[")):
        return _json(text, file, refusals, notes)
    (_, heading), *records = _boxed(text, file) or _records(text, file, separator)
    names = [name or ("" if place else INDEX) for place, name in enumerate(heading)]
    lines: list[Line] = []
    for line, cells in records:
        if len(cells) == len(names):
            lines.append((line, dict(zip(names, cells, strict=True))))
        else:
            why = f"{len(cells)} fields, the heading has {len(names)}: a cut or damaged line"
            refusals.append(Refusal(file, why, line))
    if lines and not text.endswith(("\n", "\r")):
        notes[f"{file}: the last line has no line end: check that it is whole"] = None
    return names, lines


def _boxed(text: str, file: Path) -> list[Fields]:
    """The lines of a table with bars and rules (Markdown, or borders); empty if there is none.

    Raises UserError for tables of several headings.
    """
    blocks: list[list[Fields]] = [[]]
    ruled = False
    for line, words in enumerate([*text.splitlines(), ""], 1):
        if _RULE.fullmatch(words):
            ruled = True
        elif "|" in words:
            plain = _MARKS.sub(lambda match: match[1] or "", words).strip().strip("|")
            blocks[-1].append((line, [field.strip() for field in plain.split("|")]))
        elif blocks[-1]:
            blocks = [*(blocks if ruled else blocks[:-1]), []]
            ruled = False
    tables = [block for block in blocks if len(block) > 1]
    if len({tuple(block[0][1]) for block in tables}) > 1:
        places = ", ".join(str(block[0][0]) for block in tables)
        raise UserError(f"{file}: tables of several headings (lines {places}): keep one of them")
    return tables[0][:1] + [row for block in tables for row in block[1:]] if tables else []


def _records(text: str, file: Path, mark: str | None) -> list[Fields]:
    """The line and the fields of every record that is not empty, the heading first.

    The separator is, if not given, the one that the most of the first lines have equally often;
    of two that split all lines alike, the one that makes more columns (1,5;2,5).
    """
    first = "\n".join([line for line in text[:100_000].splitlines() if line.strip()][:20])
    scores = {}
    try:
        for each in (mark,) if mark else SEPARATORS:
            counts = [len(fields) for _, fields in _split(first, each)]
            if counts and counts[0] > 1:
                scores[each] = (sum(count == counts[0] for count in counts), counts[0])
        if not scores:
            raise UserError(
                f"{file}: no table: the first line names no columns with a comma, semicolon, tab, "
                "bar or two blanks between them"
            )
        best = max(scores, key=scores.__getitem__)
        return [(line, fields) for line, fields in _split(text, best) if any(fields)]
    except csv.Error as error:
        raise UserError(f"{file}: not CSV ({error})") from None


def _split(text: str, mark: str) -> Iterator[Fields]:
    if mark == "  ":
        for line, words in enumerate(text.splitlines(), 1):
            yield line, re.split(r"\s{2,}", words.strip())
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    first = 1
    for fields in reader:
        yield first, [field.strip() for field in fields]
        first = reader.line_num + 1


def _decimal(rows: Sequence[Row]) -> str | None:
    """The decimal mark that the numbers show; None where all with a comma may be thousands."""
    cells = [cell for row in rows for cell in row.cells.values() if isinstance(cell, str)]
    points = [cell for cell in cells if _POINT.fullmatch(cell)]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    sure = any(not _UNSURE.fullmatch(cell) for cell in commas)
    if points and not (sure and all(map(_GROUPED.fullmatch, points))):  # 2.001 beside 926,5
        return "."
    return "," if sure else None if commas else "."


def _json(
    text: str, file: Path, refusals: list[Refusal], notes: dict[str, None]
) -> tuple[Sequence[str], Sequence[Line]]:
    """The objects of JSON: one, a list of them (or all that an object holds), or one on each line;
    values of objects in them are OUTER.INNER, lists are left out."""
    items: list[tuple[int, Any]] = []
    try:
        whole = json.loads(text)
        inner = [*whole.values()] if isinstance(whole, dict) and len(whole) == 1 else [whole]
        items = list(enumerate(inner[0] if isinstance(inner[0], list) else [whole], 1))
    except (ValueError, RecursionError):
        for line, words in enumerate(text.splitlines(), 1):
            try:
                items += [(line, json.loads(words))] if words.strip() else []
            except (ValueError, RecursionError):
                refusals.append(Refusal(file, "not JSON: a cut line?", line))
    lines: list[Line] = []
    for line, item in items:
        if isinstance(item, dict):
            cells = dict(_plain_values(item, ""))
            lists = [name for name, value in cells.items() if isinstance(value, list)]
            notes |= {f"left out, as it holds lists: {name}": None for name in lists}
            lines.append((line, {n: _cell(it) for n, it in cells.items() if n not in lists}))
        else:
            refusals.append(Refusal(file, "not an object of names and values", line))
    if not lines:
        raise UserError(f"{file}: holds no object of JSON with names and values")
    return list(dict.fromkeys(name for _, cells in lines for name in cells)), lines


def _plain_values(item: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, value in item.items():
        if isinstance(value, dict):
            yield from _plain_values(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _parquet(content: bytes, file: Path) -> tuple[Sequence[str], Sequence[Line]]:
    # Imported on use: most tables are text.
    import pyarrow

    from scalesweep.analysis.parquet import open_parquet

    try:
        frame = open_parquet(content).read(use_threads=False)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{file}: not a whole Parquet file ({str(error)[:100]})") from None
    rows = [{name: _cell(cell) for name, cell in row.items()} for row in frame.to_pylist()]
    return frame.column_names, list(enumerate(rows, 1))


def _cell(value: Any) -> Cell:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, str | int | float | bool) else str(value)
