"""What the readers of profiles share: text of a file, numbers, and why a file is refused."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from scalesweep.analysis.profile import Profile
from scalesweep.compute.log_lines import open_packed
from scalesweep.importers.imported_run import ImportRefusedError, Refusal

MAX_BYTES = 1 << 30
HEAD_BYTES = 1 << 16
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)


@dataclass
class ReadResult:
    """The profiles that a reader read, and the files that it refused."""

    profiles: list[Profile]
    refusals: list[Refusal]


def read_each(files: Iterable[Path], profiles: Callable[[Path], Sequence[Profile]]) -> ReadResult:
    """What ``profiles`` makes of each file; one for which it raises ImportRefusedError is
    refused."""
    result = ReadResult([], [])
    for file in files:
        try:
            result.profiles += profiles(file)
        except ImportRefusedError as error:
            result.refusals.append(Refusal(file, str(error), error.line))
    return result


def head_of(file: Path) -> str:
    """The beginning of a file as text, what is no UTF-8 replaced; raises OSError."""
    with open_packed(file) as stream:
        return decoded(stream.read(HEAD_BYTES))


def decoded(content: bytes) -> str:
    """Text of UTF-8, or of UTF-16 with a byte order mark; what is neither becomes U+FFFD."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return content.decode("utf-16" if wide else "utf-8-sig", "replace")


def text_of(file: Path) -> str:
    """The whole text of a file; raises ImportRefusedError for one that is too large or no text."""
    try:
        # Before a gigabyte of it is read.
        fits = file.stat().st_size <= MAX_BYTES
        with open_packed(file) as stream:
            content = stream.read(MAX_BYTES + 1) if fits else b""
    except OSError as error:
        raise ImportRefusedError(error.strerror or "cannot be read") from None
    if not fits or len(content) > MAX_BYTES:
        raise ImportRefusedError(f"more than {MAX_BYTES} bytes")
    text = decoded(content)
    if "\ufffd" in text or "\0" in text:
        place = min(i for i in (text.find("\ufffd"), text.find("\0")) if i >= 0)
        raise ImportRefusedError(
            "characters that are not UTF-8: damaged, or of another encoding",
            text.count("\n", 0, place) + 1,
        )
    return text


def lines_of(text: str) -> list[str]:
    """The lines of a file that ends with one; raises ImportRefusedError where the last has no
    end."""
    if text and not text.endswith(("\n", "\r")):
        count = text.count("\n") + 1
        raise ImportRefusedError("the last line has no line end: cut off?", count)
    return text.splitlines()


def unboxed(lines: Iterable[str]) -> Iterator[str]:
    """The same lines; those of a table with borders as CSV, and its borders empty."""
    places: list[int] = []
    for line in lines:
        if re.fullmatch(r"\s*\+-[-+]*\+\s*", line):
            places = [place for place, char in enumerate(line) if char == "+"]
            yield ""
        elif places and line.lstrip().startswith("|") and line.rstrip().endswith("|"):
            cells = [line[a + 1 : b].strip() for a, b in pairwise(places)]
            out = io.StringIO()
            csv.writer(out, lineterminator="").writerow(cells)
            yield out.getvalue()
        else:
            places = []
            yield line


def number(text: str, what: str, line: int | None = None) -> float:
    """A finite number; raises ImportRefusedError naming what it is."""
    word = text.strip()
    value = float(word) if _NUMBER.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise ImportRefusedError(f"{what} {word[:30]!a} is not a number", line)
    return value


def metric(value: float, unit: str, better: str, scope: str = "total") -> dict[str, object]:
    """A metric as in a record."""
    return {"value": value, "unit": unit, "better": better, "scope": scope}
