"""A log cut into the starts of a program: the lines of progress of each, and what it stated.

Every start is a run of its own, one that goes on from a checkpoint too: it compiles and warms up
again. Lines of several ranks are told apart by their labels (horovodrun, mpirun, ``srun --label``,
torchrun); those without labels, and those of a label that names a node, by coming as often for
each step.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.training_logs.model_facts import DESCRIBING
from scalesweep.importers.training_logs.patterns import bare, uncollected
from scalesweep.importers.training_logs.printed_number import number_of, rounding_of
from scalesweep.importers.training_logs.program import LONGEST_LINE, PEAK, Program

_STEP = re.compile(r"\d{1,12}", re.ASCII)
# torchrun's label, also behind the time that a continuous integration service writes.
_TORCH = re.compile(r"^(?:\S{1,40} )?\[(?:rank|default|trainer|worker)(\d{1,7})\]: ?")
_SRUN = re.compile(r"^ {0,6}(\d{1,7}): ")
Printer = tuple[int | None, int | None]  # rank by the launcher's label, and by torchrun's


@dataclass(slots=True)
class Row:
    """A line of progress: its values and how they are rounded, by group; facts that it states."""

    step: int
    line: int
    values: dict[str, float]
    rounding: dict[str, float]
    settings: dict[str, str]
    spoiled: bool = False


class Fact(NamedTuple):
    """What a line states, as printed."""

    text: str
    line: int


@dataclass
class Start:
    """What a program printed from one start to its end, or to the next."""

    first_line: int = 0
    last_line: int = 0
    rows: dict[Printer, list[Row]] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    # Lines that begin as progress and do not go on so.
    broken: list[int] = field(default_factory=list)
    counts: dict[Printer, Counter[int]] = field(default_factory=dict)

    def state(self, name: str, text: str, line: int) -> None:
        """Take a fact; raises ImportRefusedError where another was stated before. One that only
        describes the model is without text then: not known."""
        before = self.facts.setdefault(name, Fact(text, line))
        if before.text != text and name in DESCRIBING:
            self.facts[name] = Fact("", line)
        elif before.text != text:
            raise ImportRefusedError(
                f"{name} is {text[:40]}, and {before.text[:40]} in line {before.line}: lines of "
                "several runs are mixed",
                line,
            )


def labelled_by_srun(lines: Iterable[Line], program: Program) -> bool:
    """Whether every line of progress begins as ``srun --label`` writes it."""
    labelled = False
    for line in lines:
        if len(line.text) <= LONGEST_LINE and program.prints(bare(line.text)):
            if line.rank is not None or not _SRUN.match(uncollected(line.text)):
                return False
            labelled = True
    return labelled


def starts_of(lines: Iterable[Line], program: Program, srun: bool) -> Iterator[Start]:
    """The starts of a program in a log, in order. Raises ImportRefusedError."""
    splitter = _Splitter(program)
    for line in lines:
        if 0 < len(line.text) <= LONGEST_LINE:
            text, printer = _unlabelled(line, srun)
            yield from splitter.add(text, line.number, printer)
    yield from splitter.end()


def _unlabelled(line: Line, srun: bool) -> tuple[str, Printer]:
    text, rank = uncollected(line.text), line.rank
    if srun and rank is None and (label := _SRUN.match(text)):
        text, rank = text[label.end() :], int(label[1])
    if "]:" in text and (label := _TORCH.match(text)):
        return text[label.end() :], (rank, int(label[1]))
    return text, (rank, None)


class _Splitter:
    """Puts lines into the start that they belong to."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.start = Start()
        # Facts behind the first line of progress: of this start, or of the next.
        self.pending: list[tuple[str, str, int]] = []
        # How many of the next lines of a printer hold more than steps.
        self.spoiled: Counter[Printer] = Counter()

    def add(self, text: str, line: int, printer: Printer) -> Iterator[Start]:
        """Take a line; yields a start that ends before it."""
        program = self.program
        if program.begins_with(text) and self.start.rows.get(printer):
            yield self._next()
        if program.prints(text):
            if (row := self._row(text, line)) is None:
                self.start.broken.append(line)
                return
            if self._begins_anew(row, printer):
                yield self._next()
            self._keep(row, printer)
            return
        for mark, pattern in program.more:
            if mark in text and (rows := self.start.rows.get(printer)):
                for match in pattern.finditer(text):
                    before = dict(rows[-1].values)
                    _fill(rows[-1], match)
                    self._keep_peaks(rows[-1], before)
                    self.start.last_line = line
        if program.is_spoiled_by(text):
            self.spoiled[printer] = program.spoiled_lines
        self._take_facts(text, line)

    def _keep_peaks(self, row: Row, before: dict[str, float]) -> None:
        """Of memory that several ranks print behind a line, the largest."""
        for name, value in before.items():
            if name in row.values and self.program.values[name].way == PEAK:
                row.values[name] = max(value, row.values[name])

    def end(self) -> Iterator[Start]:
        """The last start."""
        if self.start.rows or self.start.broken:
            yield self._next()

    def _row(self, text: str, line: int) -> Row | None:
        match = self.program.progress.search(text)
        if match is None or not _STEP.fullmatch(match["step"].strip()):
            return None
        row = Row(int(match["step"]), line, {}, {}, {})
        _fill(row, match)
        for name in self.program.settings:
            if name in row.values:
                row.settings[name] = match[name]
                del row.values[name], row.rounding[name]
        return row

    def _begins_anew(self, row: Row, printer: Printer) -> bool:
        """Whether a line is of another start: its step was there, or a later one was.

        Ranks that share a label, or have none, each print every step, some a bit later than
        others: only more lines of a step than of those before are of another start.
        """
        rows = self.start.rows.get(printer)
        if not rows or row.step > rows[-1].step:
            return False
        counts = self.start.counts[printer]
        if row.step not in counts:
            return True
        others = [count for step, count in counts.items() if step != row.step]
        return bool(others) and counts[row.step] >= max(others)

    def _keep(self, row: Row, printer: Printer) -> None:
        if not self.start.rows and not self.start.first_line:
            self.start.first_line = row.line
        row.spoiled = self.spoiled[printer] > 0
        self.spoiled[printer] -= row.spoiled
        self.start.rows.setdefault(printer, []).append(row)
        self.start.counts.setdefault(printer, Counter())[row.step] += 1
        self.start.last_line = max(row.line, self.start.last_line)

    def _take_facts(self, text: str, line: int) -> None:
        for stated in self.program.stated:
            if stated.mark not in text:
                continue
            for match in stated.pattern.finditer(text):
                if stated.names:
                    if match["name"] in stated.names:
                        self._state(stated.names[match["name"]], match["value"], line)
                else:
                    for name, value in match.groupdict().items():
                        if value is not None:
                            self._state(name, value, line)

    def _state(self, name: str, text: str, line: int) -> None:
        if self.start.rows:
            self.pending.append((name, text, line))
        else:
            self.start.state(name, text.strip(), line)

    def _next(self) -> Start:
        """The start that ends here; what was stated in it is that of the next, if there is one."""
        ended, self.start = self.start, Start()
        for name, text, line in self.pending:
            ended.facts.setdefault(name, Fact(text.strip(), line))
            self.start.facts[name] = Fact(text.strip(), line)
        self.pending.clear()
        self.spoiled.clear()
        return ended


def _fill(row: Row, match: re.Match[str]) -> None:
    for name, text in match.groupdict().items():
        if name == "step" or text is None:
            continue
        if math.isfinite(number := number_of(text)):
            row.values[name] = number
            row.rounding[name] = rounding_of(text)
        else:
            row.values[name] = math.nan


def by_printer(start: Start) -> list[list[Row]]:
    """The lines of each rank that printed, those of all common steps.

    Raises ImportRefusedError where lines are damaged, mixed or lost.
    """
    ends = max((rows[-1].line for rows in start.rows.values()), default=0)
    if inside := [line for line in start.broken if line < ends]:
        raise ImportRefusedError("a damaged line of progress", inside[0])
    if not start.rows:
        raise ImportRefusedError("only a damaged line of progress", start.broken[0])
    streams: list[list[Row]] = []
    for printer in sorted(start.rows, key=lambda it: (it[0] or 0, it[1] or 0)):
        streams.extend(_by_occurrence(start.rows[printer]))
    if (None, None) in start.rows and len(start.rows) > 1:
        line = start.rows[(None, None)][0].line
        raise ImportRefusedError("some lines have a rank's label, others have none", line)
    common = set.intersection(*({row.step for row in rows} for rows in streams))
    if len(streams) > 1:
        longest = max(streams, key=len)
        # The last lines of some ranks may be lost where a log was cut, or a job ended.
        lost = [row for row in longest if row.step not in common]
        if lost and common and min(row.step for row in lost) < max(common):
            raise ImportRefusedError(
                f"step {lost[0].step}: not every rank that prints has a line", lost[0].line
            )
        streams = [[row for row in rows if row.step in common] for rows in streams]
    if not streams[0]:
        raise ImportRefusedError("no step that all ranks have printed", start.last_line)
    return streams


def _by_occurrence(rows: list[Row]) -> list[list[Row]]:
    """The first line of every step, the second of every step, and so on."""
    places: Counter[int] = Counter()
    streams: list[list[Row]] = []
    for row in rows:
        place = places[row.step]
        places[row.step] += 1
        if place == len(streams):
            streams.append([])
        streams[place].append(row)
    last = max(places)
    wrong = [step for step, count in places.items() if count != len(streams) and step != last]
    if wrong:
        line = next(row.line for row in rows if row.step == wrong[0])
        raise ImportRefusedError(
            f"{places[wrong[0]]} lines of step {wrong[0]} without a label of their rank's own, "
            f"{len(streams)} of others: lines of several ranks or runs are mixed",
            line,
        )
    return [sorted(stream, key=lambda row: row.step) for stream in streams]
