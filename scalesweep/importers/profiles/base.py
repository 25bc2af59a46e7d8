"""What the readers of profiles share.

A reader is a module with ``sign(head)``, whether a file that begins so is one of its tool, and
``read(files, ranks)``, which yields a Profile for each run in the files of a folder, and a Refusal
for what is none. ``ranks`` are those that the user states.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from scalesweep.analysis.profile import Profile
from scalesweep.compute.log_lines import open_packed
from scalesweep.importers.imported_run import ImportRefusedError, Refusal, metric

HEAD_BYTES = 1 << 16
CLOSE = 0.01  # of a time: what rounded numbers may lack of their sum
MPI = re.compile(r"P?MPI_\w+")
Read = Callable[[Sequence[Path], int | None], Iterator[Profile | Refusal]]


def each(profiles: Callable[[Path, int | None], Iterable[Profile]]) -> Read:
    """The reader of a tool whose files are a run each."""

    def read(files: Sequence[Path], ranks: int | None = None) -> Iterator[Profile | Refusal]:
        for file in files:
            try:
                yield from profiles(file, ranks)
            except ImportRefusedError as error:
                yield Refusal(file, str(error), error.line)

    return read


def head_of(file: Path) -> str:
    """The beginning of a file as text, what is no UTF-8 replaced; raises OSError."""
    with open_packed(file) as stream:
        return _decoded(stream.read(HEAD_BYTES))


def _decoded(content: bytes) -> str:
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return content.decode("utf-16" if wide else "utf-8-sig", "replace")


def text_of(file: Path) -> str:
    """The text of a file; raises ImportRefusedError for one that is no text."""
    try:
        with open_packed(file) as stream:
            text = _decoded(stream.read())
    except OSError as error:
        raise ImportRefusedError(error.strerror or "cannot be read") from None
    if "\ufffd" in text or "\0" in text:
        line = re.split("[\ufffd\0]", text, maxsplit=1)[0].count("\n") + 1
        raise ImportRefusedError("not UTF-8: damaged, or of another encoding", line)
    return text


def lines_of(file: Path) -> list[str]:
    """The lines of a file; raises ImportRefusedError if the last has no end."""
    text = text_of(file)
    if text and not text.endswith(("\n", "\r")):
        raise ImportRefusedError("the last line has no end: cut off?", text.count("\n") + 1)
    return text.splitlines()


def unboxed(lines: Iterable[str]) -> Iterator[str]:
    """The same lines; those of a table with borders as CSV, and its borders empty."""
    places: list[int] = []
    for line in lines:
        if re.fullmatch(r"\s*\+-[-+]*\+\s*", line):
            places = [place for place, char in enumerate(line) if char == "+"]
            yield ""
        elif places and line.lstrip().startswith("|") and line.rstrip().endswith("|"):
            out = io.StringIO()
            row = [line[a + 1 : b].strip() for a, b in pairwise(places)]
            csv.writer(out, lineterminator="").writerow(row)
            yield out.getvalue()
        else:
            places = []
            yield line


def number(text: str, what: str, line: int | None = None, nan: bool = False) -> float:
    """A finite number, or with ``nan`` also none; raises ImportRefusedError naming what it is."""
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value) or (math.isnan(value) and not nan):
        raise ImportRefusedError(f"{what} {text.strip()[:30]!a} is not a number", line)
    return value


def unlisted(whole: float, listed: Iterable[float]) -> float:
    """Time of a whole that no row has; 0 if that is what the digits leave open.

    Raises ImportRefusedError if the rows have more than the whole.
    """
    rows = list(listed)
    rest = whole - sum(rows)
    if whole <= 0 or rest < -CLOSE * whole - 0.005 * len(rows):
        raise ImportRefusedError(
            f"functions take {sum(rows):.4g} s, more than all ({whole:.4g} s), or none is listed: "
            "lines are missing, changed or there twice"
        )
    return rest if rest > CLOSE * whole else 0.0


def shares_of(shares: Mapping[str, float]) -> dict[str, dict[str, object]]:
    """Efficiencies as metrics."""
    return {name: metric(share, "1", "higher") for name, share in shares.items()}


def times_of(
    runtime: float, mpi: float, useful: float, factors: Mapping[str, float]
) -> dict[str, dict[str, object]]:
    """The metrics of a profile of MPI's calls: the longest run time, means over the ranks, and the
    factors of the efficiency that are known."""
    return {
        **shares_of(factors),
        "runtime": metric(runtime, "s", "lower"),
        "mpi_time": metric(mpi, "s", "lower", "rank"),
        "useful_time": metric(useful, "s", "lower", "rank"),
    }
