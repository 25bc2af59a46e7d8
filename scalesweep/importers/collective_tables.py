"""A table of OSU Micro-Benchmarks or nccl-tests, row by row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from scalesweep.analysis.profile import bus_factor
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import ImportRefusedError

OSU, NCCL = "OSU Micro-Benchmarks", "nccl-tests"
_NUMBER = r"(?:\d{1,20}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?)"
_OSU_COLUMNS = re.compile(r"^# (?:Size\s+)?(?:Avg )?Lat(?:ency)? ?\(us\)(?:\s|$)")
# Behind the mean there may be others (-f, -z) and, with -c, whether the results were right. Of a
# barrier there is no size.
_OSU_ROW = re.compile(
    rf"^(?P<size>\d{{1,15}})\s+(?P<time>{_NUMBER})(?:\s+{_NUMBER}){{0,8}}"
    rf"(?:\s+(?P<right>Pass|Fail)(?:\s+{_NUMBER}){{0,4}})?\s*$"
)
_BARRIER_ROW = re.compile(rf"^\s*(?P<time>{_NUMBER})(?:\s+{_NUMBER}){{0,8}}\s*$")
# What is right of its first three columns stands as many columns from the end as in the heading:
# versions print redop and root, one of them, or neither, and leave either blank.
_NCCL_ROW = re.compile(r"^\s*(?P<size>\d{1,15})\s+\d{1,15}\s+[a-z]\w{1,15}\s+(?P<more>\S.*)$")
_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values : (?P<count>\d{1,15})\b")


@dataclass
class Table:
    """A table of one test, as far as it was read."""

    program: str
    test: str  # as the program names it
    collective: str  # empty of other latencies
    line: int
    version: str | None = None
    ranks: int | None = None
    per_node: int | None = None
    options: str | None = None  # of the command
    columns: Sequence[str] = ()  # of nccl-tests, from the first time on
    hosts: list[str] = field(default_factory=list)
    gpu: str | None = None
    sizes: list[int] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=list)  # by size, of each repeat
    last_line: int = 0
    stated: list[str] = field(default_factory=list)  # of other latencies, in front of the columns
    headed: bool = False  # its columns have been read
    bandwidths: tuple[float, float] | None = None  # GB/s of algorithm and bus, of the fastest row

    def add(self, size: int, microseconds: Sequence[float], line: int) -> None:
        """Take a row; raises ImportRefusedError if its time or size cannot be."""
        if self.sizes and size <= self.sizes[-1]:
            raise ImportRefusedError(f"size {size} follows size {self.sizes[-1]}", line)
        if not all(0 < time < 1e12 for time in microseconds):
            raise ImportRefusedError(f"size {size}: {microseconds[0]:g} us is no time", line)
        self.sizes.append(size)
        self.seconds.append([time * 1e-6 for time in microseconds])
        self.last_line = line

    def takes(self, text: str, line: int) -> bool:
        """Whether a line belongs to the table; raises ImportRefusedError for wrong results."""
        if self.program == OSU and not self.headed:
            return self._takes_heading(text, line)
        if "Barrier" in self.test and (match := _BARRIER_ROW.match(text)):
            self.add(0, [float(match["time"])], line)
        elif match := (_NCCL_ROW if self.program == NCCL else _OSU_ROW).match(text):
            if size := int(match["size"]):
                wrong, time = self._nccl(match) if self.program == NCCL else self._osu(match)
                if wrong:
                    raise ImportRefusedError(f"size {size}: {wrong}", line)
                self.add(size, [time], line)
        elif (match := _OUT_OF_BOUNDS.match(text)) and int(match["count"]):
            raise ImportRefusedError(f"{match['count']} values out of bounds", line)
        return match is not None

    def _takes_heading(self, text: str, line: int) -> bool:
        if _OSU_COLUMNS.match(text):
            self.headed = True
        elif text.startswith("# Size") or _BARRIER_ROW.match(text):
            raise ImportRefusedError(f"OSU {self.test} Test: columns other than a latency", line)
        elif not text.startswith("#"):
            return not text.strip()
        elif "Datatype:" not in text and text.strip("# "):
            # Buffers on a GPU, windows: runs with others are no repeats.
            self.stated.append(visible(text.lstrip("# "))[:100])
        return True

    def _osu(self, row: re.Match[str]) -> tuple[str, float]:
        """What is wrong with a row, and its time."""
        return "wrong results" if row["right"] == "Fail" else "", float(row["time"])

    def _nccl(self, row: re.Match[str]) -> tuple[str, float]:
        words = row["more"].split()[-len(self.columns) :]
        whole = re.fullmatch(rf"(?:(?:N/A|{_NUMBER}) ?)+", " ".join(words))
        if len(words) < len(self.columns) or not whole:
            return f"not {len(self.columns)} numbers: a cut line?", 0.0
        cells = dict(zip(reversed(self.columns), reversed(words), strict=True))  # the first of each
        # Older versions print the largest deviation as error, and at the end what is out of bounds.
        wrong = cells.get("#wrong", cells.get("wrong", "N/A"))
        if wrong not in ("N/A", "0") or cells["time"] == "N/A":
            return f"{wrong} wrong results, or no time", 0.0
        printed = cells.get("algbw", "N/A"), cells.get("busbw", "N/A")
        if "N/A" not in printed and float(printed[0]) > (self.bandwidths or (0.0, 0.0))[0]:
            self.bandwidths = float(printed[0]), float(printed[1])
        return "", float(cells["time"])

    def fits(self, count: int) -> bool:
        """Whether the printed bus bandwidth is that of so many ranks: ``bus_factor`` times the
        algorithm's, both printed with two decimals. Tables without either fit any."""
        factor = bus_factor(self.collective, count)
        if self.bandwidths is None or factor is None:
            return True
        algorithm, bus = self.bandwidths
        return abs(bus - factor * algorithm) <= 0.005 * (1 + factor) + 1e-3 * bus
