"""A table as it was published: CSV with any separator, Parquet or JSON lines.

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

from scalesweep.compute.log_lines import open_packed
from scalesweep.core.csv_cells import text_of_cell
from scalesweep.core.errors import UserError
from scalesweep.importers.imported_run import Refusal

MAX_BYTES = 64 << 20
MAX_ROWS = 100_000
MAX_COLUMNS = 4096
SEPARATORS = ",;\t|"
# Heading of a column without a name that comes first, as pandas writes its index.
INDEX = "index"
HIDDEN = "..."  # what pandas prints for columns that it does not print

Cell = str | int | float | bool | None

_MISSING = frozenset(("", "-", "--", "na", "n/a", "nan", "none", "null"))
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d{1,4})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([.,' _])\d{3})(?:\1\d{3})*(?:[.,]\d+)?", re.ASCII)
_UNSURE = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d{1,4})?", re.ASCII)


def is_percentage(cell: Cell) -> bool:
    """Whether a cell is written as a percentage, such as ``95 %``."""
    return isinstance(cell, str) and cell.rstrip().endswith("%")


@dataclass(frozen=True)
class Row:
    """A row: its line in the file (its number, from 1, in Parquet), and its cells by column."""

    line: int
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """What a file holds; ``refusals`` are rows that cannot be read, ``notes`` what to know of it.

    ``decimal`` is the mark that its numbers have, None where they show none; ``thousands`` what a
    map says that stands between thousands.
    """

    file: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str | None = "."
    thousands: str | None = None

    def number(self, cell: Cell) -> float | int | None:
        """The number in a cell, None where it is empty; 95 % is 0.95.

        Raises ValueError with the reason if it is no finite number.
        """
        if cell is None or isinstance(cell, bool):
            if cell is None:
                return None
            raise ValueError(f"{cell} is not a number")
        if not isinstance(cell, str):
            if not math.isfinite(cell):
                raise ValueError(f"{cell} is not a finite number")
            return cell
        text = cell.strip()
        if text.lower() in _MISSING:
            return None
        if HIDDEN in text:
            raise ValueError("'...': values were left out when the table was printed")
        percent = is_percentage(text)
        value = self._plain(text.removesuffix("%").strip(), text)
        return value / 100 if percent else value

    def _plain(self, text: str, shown: str) -> float | int:
        """The number of a cell without its unit; ``shown`` is the cell in messages.

        Marks between thousands and decimals are those of the table. Raises ValueError if it is no
        finite number, or a comma may be either mark.
        """
        if self.thousands is not None:
            mark, rest = re.escape(self.thousands), re.escape(self.decimal or ".")
            if re.fullmatch(rf"[+-]?\d{{1,3}}(?:{mark}\d{{3}})+(?:{rest}\d+)?", text, re.ASCII):
                text = text.replace(self.thousands, "")
            elif self.thousands in text:
                raise ValueError(f"{shown[:30]!a}: {self.thousands!r} is not between thousands")
        if self.decimal == "," and (_COMMA.fullmatch(text) or _PLAIN.fullmatch(text)):
            if "." in text:
                raise ValueError(
                    f"{shown[:30]!a} has a decimal point, others a decimal comma; if it stands "
                    "between thousands, say so in the map: table: {thousands: '.'}"
                )
            text = text.replace(",", ".")
        elif self.decimal is None and _UNSURE.fullmatch(text):
            raise ValueError(
                f"{shown[:30]!a}: the comma may be a decimal comma or stand between thousands; "
                "say which in the map: table: {decimal: ','} or {decimal: '.'}"
            )
        elif self.decimal != "," and _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        if not _PLAIN.fullmatch(text):
            grouped = None if self.thousands else _GROUPED.fullmatch(text)
            raise ValueError(
                f"{shown[:30]!a} is not a number"
                + (
                    f"; if {grouped[1]!r} stands between thousands, say so in the map: table: "
                    f'{{thousands: "{grouped[1]}"}}'
                    if grouped
                    else ""
                )
            )
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"{shown[:30]!a} is not a finite number")
        return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) else value


def half_unit(cell: Cell) -> float:
    """Half of the last digit that a cell prints: how far its number may be from what it rounds.

    Of a number that is stored rather than printed, next to nothing.
    """
    if not isinstance(cell, str):
        return 1e-12 * abs(float(cell or 0))
    text = cell.strip()
    scale = 0.01 if text.endswith("%") else 1.0
    mantissa, _, exponent = text.rstrip("% ").lower().partition("e")
    mark = max(mantissa.rfind("."), -1 if "." in mantissa else mantissa.rfind(","))
    digits = len(mantissa) - mark - 1 if mark >= 0 else 0
    power = int(exponent) if re.fullmatch(r"[+-]?\d{1,4}", exponent) else 0
    return float(0.5 * scale * 10.0 ** (power - digits))


def read_table(
    file: Path,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Table:
    """Read a table whole; separator and decimal mark are looked up in it unless they are given,
    what stands between thousands is only looked up where it is a comma.

    Raises UserError naming the file if it is no table, or one that cannot be trusted.
    """
    content = _content(file)
    if content[:4] == b"PAR1":
        return _parquet(content, file)
    for magic, what in (
        (b"PK\x03\x04", "a workbook or an archive"),
        (b"\xd0\xcf\x11\xe0", "a workbook"),
    ):
        if content.startswith(magic):
            raise UserError(
                f"{file}: {what}, which no installed library reads: save the sheet as CSV"
            )
    text = _text(content, file)
    start = text.lstrip()[:1]
    if start == "{":
        return _json_lines(text, file)
    if start == "[":
        raise UserError(f"{file}: a JSON array, not JSON lines: write one object on each line")
    return _csv(text, file, separator, decimal, thousands)


def _content(file: Path) -> bytes:
    try:
        if not file.is_file():
            what = "no such file" if not file.exists() else "not a regular file"
            raise UserError(f"{file}: {what}")
        with open_packed(file) as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or 'cannot be read'}") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{file}: more than {MAX_BYTES} bytes, which is no table of results")
    if not content.strip():
        raise UserError(f"{file}: is empty")
    return content


def _text(content: bytes, file: Path) -> str:
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        if wide:
            raise UserError(f"{file}: begins as UTF-16, but is not") from None
        line = content[: error.start].count(b"\n") + 1
        raise UserError(
            f"{file}:{line}: byte 0x{content[error.start]:02x} is not UTF-8: convert the file "
            "(iconv -f latin1 -t utf-8)"
        ) from None
    if "\0" in text:
        raise UserError(f"{file}: holds NUL characters: not a table of text")
    return text


def _csv(
    text: str, file: Path, separator: str | None, decimal: str | None, thousands: str | None
) -> Table:
    """The table of a CSV file: the first record is its heading, each further one a row.

    None for a separator or a mark: find out which it is. A record with another number of fields is
    refused; raises UserError if the heading cannot be one.
    """
    mark = separator or _separator(text, file)
    records = _records(text, file, mark)
    _, heading = next(records, (0, []))
    names = [name.strip() for name in heading]
    if names and not names[0]:
        names[0] = INDEX
    notes = []
    if HIDDEN in names:
        notes.append("columns were left out where it says '...'")
    columns = tuple(name for name in names if name != HIDDEN)
    _check_columns(columns, file)
    rows: list[Row] = []
    refusals: list[Refusal] = []
    for line, fields in records:
        if len(fields) != len(names):
            reason = f"{len(fields)} fields, the heading has {len(names)}: a cut or damaged line"
            refusals.append(Refusal(file, reason, line))
            continue
        cells = dict(zip(names, (text_of_cell(field.strip()) for field in fields), strict=True))
        rows.append(Row(line, {name: cells[name] for name in columns}))
    if rows and not text.endswith(("\n", "\r")):
        notes.append(f"line {rows[-1].line}, the last, has no line end: check that it is whole")
    return Table(
        file,
        columns,
        tuple(rows),
        tuple(refusals),
        tuple(notes),
        mark,
        decimal or _decimal(rows),
        thousands,
    )


def _separator(text: str, file: Path) -> str:
    """The separator that the most of the first lines have equally often."""
    lines = [line for line in text[:100_000].splitlines() if line.strip()][:20]
    best, score = "", 0
    for mark in SEPARATORS:
        counts = [len(fields) for fields in csv.reader(lines, delimiter=mark)]
        alike = sum(count == counts[0] for count in counts) if counts[0] > 1 else 0
        # Of two that split all lines alike, the one that makes more columns (1,5;2,5).
        if alike > score or (alike == score > 0 and counts[0] > _fields(lines[0], best)):
            best, score = mark, alike
    if not best:
        raise UserError(
            f"{file}: no table: the first line names no columns separated by a comma, semicolon, "
            "tab or |"
        )
    return best


def _fields(line: str, mark: str) -> int:
    return len(next(csv.reader([line], delimiter=mark)))


def _records(text: str, file: Path, mark: str) -> Iterator[tuple[int, list[str]]]:
    """The line and the fields of every record that is not empty, the heading first."""
    before = csv.field_size_limit(MAX_BYTES)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        first, count = 1, 0
        for fields in reader:
            line, first = first, reader.line_num + 1
            if not any(text_of_cell(field.strip()) for field in fields):
                continue
            if (count := count + 1) > MAX_ROWS + 1:
                raise UserError(f"{file}: more than {MAX_ROWS} rows")
            yield line, fields
    except csv.Error as error:
        raise UserError(f"{file}:{reader.line_num}: not CSV ({error})") from None
    finally:
        csv.field_size_limit(before)


def _check_columns(columns: Sequence[str], file: Path) -> None:
    if len(columns) > MAX_COLUMNS:
        raise UserError(f"{file}: {len(columns)} columns, at most {MAX_COLUMNS} are read")
    for place, name in enumerate(columns, 1):
        if not name:
            raise UserError(f"{file}: column {place} has no name")
        if columns.count(name) > 1:
            raise UserError(f"{file}: two columns are named {name[:40]!r}")
        if not name.isprintable():
            raise UserError(
                f"{file}: the name of column {place} holds characters that do not print"
            )


def _decimal(rows: Sequence[Row]) -> str | None:
    """The decimal mark that the numbers show; None where all with a comma may be thousands."""
    cells = [cell for row in rows for cell in row.cells.values() if isinstance(cell, str)]
    points = [cell for cell in cells if _POINT.fullmatch(cell)]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    sure = any(not _UNSURE.fullmatch(cell) for cell in commas)
    if points and not (sure and all(map(_GROUPED.fullmatch, points))):  # 2.001 beside 926,5
        return "."
    if sure:
        return ","
    return None if commas else "."


def _json_lines(text: str, file: Path) -> Table:
    rows: list[Row] = []
    refusals: list[Refusal] = []
    columns: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if len(rows) + len(refusals) >= MAX_ROWS:
            raise UserError(f"{file}: more than {MAX_ROWS} rows")
        try:
            cells = _object(line)
        except ValueError as error:
            refusals.append(Refusal(file, str(error), number))
            continue
        columns.update(dict.fromkeys(cells))
        rows.append(Row(number, cells))
    _check_columns(tuple(columns), file)
    whole = [Row(row.line, {name: row.cells.get(name) for name in columns}) for row in rows]
    return Table(file, tuple(columns), tuple(whole), tuple(refusals))


def _object(line: str) -> dict[str, Cell]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(items)) < len(items):
            raise ValueError("a name occurs twice in the object")
        return dict(items)

    try:
        cells = json.loads(line, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}: a cut line?") from None
    if not isinstance(cells, dict):
        raise ValueError("not an object of names and values")
    for name, value in cells.items():
        if isinstance(value, dict | list):
            raise ValueError(f"{name[:40]!r} is not one value")
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
            raise ValueError(f"{name[:40]!r} is beyond 64 bits")
    # As pandas writes what is missing.
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in cells.items()
    }


def _parquet(content: bytes, file: Path) -> Table:
    # Imported on use: most tables are text.
    import pyarrow

    from scalesweep.analysis.parquet import open_parquet

    try:
        source = open_parquet(content)
        if source.metadata.num_rows > MAX_ROWS:
            raise UserError(f"{file}: more than {MAX_ROWS} rows")
        frame = source.read(use_threads=False)
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        words = str(error).splitlines()[0][:100] if str(error) else "damaged"
        raise UserError(f"{file}: not a whole Parquet file ({words})") from None
    _check_columns(frame.column_names, file)
    plain = {name: _cells(frame.column(name)) for name in frame.column_names}
    rows = tuple(
        Row(place + 1, {name: cells[place] for name, cells in plain.items()})
        for place in range(frame.num_rows)
    )
    return Table(file, tuple(plain), rows)


def _cells(column: Any) -> list[Cell]:
    cells: list[Cell] = []
    for value in column.to_pylist():
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        plain = isinstance(value, str | int | float | bool)
        cells.append(None if missing else value if plain else str(value))
    return cells
