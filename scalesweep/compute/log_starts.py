"""A log cut into the starts of a program: the lines of progress of each, and what it stated.

Every start is a run of its own, one that goes on from a checkpoint too: it compiles and warms up
again. Lines of several ranks are told apart by their labels (horovodrun, mpirun, ``srun --label``,
torchrun); those without labels, and those of a label that names a node, by coming as often for
each step.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from scalesweep.compute.log_lines import Line, Printer, unlabelled
from scalesweep.compute.log_reader import (
    FACTS,
    LONGEST_LINE,
    MODEL,
    Command,
    Fact,
    Reader,
    fact_of,
    has,
    number_of,
    rounding_of,
)
from scalesweep.compute.log_values import PEAK
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

_STEP = re.compile(r"\d{1,12}", re.ASCII)
_SHOWN = 90  # characters of a line


class LogError(UserError):
    """Why a start of a program is no run, and the line that shows it."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(slots=True)
class Row:
    """A line of progress: its values and how they are rounded, by group; facts that it states."""

    step: int
    line: int
    values: dict[str, float]
    rounding: dict[str, float]
    settings: dict[str, str]
    spoiled: bool = False


class _Stated(NamedTuple):
    text: str
    line: int


@dataclass
class Start:
    """What a program printed from one start to its end, or to the next."""

    first_line: int = 0
    last_line: int = 0
    rows: dict[Printer, list[Row]] = field(default_factory=dict)
    stated: dict[str, _Stated] = field(default_factory=dict)
    # Lines that begin as progress and do not go on so; lines with other rates.
    broken: list[int] = field(default_factory=list)
    rivals: list[_Stated] = field(default_factory=list)
    counts: dict[Printer, Counter[int]] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    flags: dict[str, str] = field(default_factory=dict)  # that set runs apart

    def state(self, name: str, text: str, line: int, key: str = FACTS) -> None:
        """Take a fact; raises LogError where another was stated before. One that only describes
        the model is without text then: not known."""
        before = self.stated.setdefault(name, _Stated(text, line))
        if before.text != text and key == MODEL:
            self.stated[name] = _Stated("", line)
        elif before.text != text and key == FACTS:
            raise LogError(
                f"{name} is {text[:40]}, and {before.text[:40]} in line {before.line}: lines of "
                "several runs are mixed",
                line,
            )

    def texts(self) -> dict[str, str]:
        """What is stated, as printed."""
        return {name: it.text for name, it in self.stated.items() if it.text}


def facts_of(
    reader: Reader, texts: Mapping[str, str], steps: Sequence[int], line: int
) -> dict[str, Fact]:
    """Facts by name, and what is derived of them; raises LogError for what cannot be one run.

    ``steps`` are those of the lines; their last and greatest distance are facts as well. An
    expression that fails, as for a fact that is not known, leaves its name unknown.
    """
    numbers = reader.numbers
    apart = max((after - before for before, after in pairwise(steps)), default=1)
    known: dict[str, Any] = {"last_step": steps[-1], "interval": apart}
    known |= {
        name: value
        for name, text in texts.items()
        if (value := fact_of(text, name in numbers)) is not None
    }
    for name, expression in reader.derive.items():
        value = _value(expression, known)
        known.pop(name, None)
        if value is not None:
            known[name] = value
    if lacking := [name for name in reader.needs if name not in known]:
        raise LogError(f"the header lacks {', '.join(lacking)}", line)
    for when, reason in reader.refuse:
        if known.keys() >= when.names and _value(when, known):
            raise LogError(reason.format_map(defaultdict(lambda: "?", known)), line)
    return known


def _value(expression: Expression, known: Mapping[str, Any]) -> Any:
    """The value of an expression, in which what is not known is null; None where it fails."""
    try:
        return expression({**dict.fromkeys(expression.names), **known})
    except UserError:
        return None


def starts_of(lines: Iterable[Line], reader: Reader, srun: bool) -> Iterator[Start]:
    """The starts of a program in a log, in order. Raises LogError."""
    splitter = _Splitter(reader)
    for line in lines:
        if 0 < len(line.text) <= LONGEST_LINE:
            text, printer = unlabelled(line, srun)
            yield from splitter.add(text, line.number, printer)
    yield from splitter.end()


class _Splitter:
    """Puts lines into the start that they belong to."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.start = Start()
        # Facts behind the first line of progress: of this start, or of the next.
        self.pending: list[tuple[str, str, int]] = []
        # How many of the next lines of a printer hold more than steps.
        self.spoiled: Counter[Printer] = Counter()

    def add(self, text: str, line: int, printer: Printer) -> Iterator[Start]:
        """Take a line; yields a start that ends before it."""
        reader = self.reader
        command = reader.command
        typed = command.read(text) if command and command.program in text else None
        begins = typed or (has(text, reader.begins) and not self._others_print(printer))
        if begins and self.start.rows.get(printer):
            yield self._next()
        if command and typed:
            self._take_command(command, *typed, line)
            return
        if reader.prints(text):
            if (row := self._row(text, line, printer)) is None:
                self.start.broken.append(line)
                return
            if self._begins_anew(row, printer):
                yield self._next()
            self._keep(row, printer)
            return
        if self._add_more(text, line, printer):
            return
        if has(text, reader.spoils):
            self.spoiled[printer] = reader.spoiled_lines
        if reader.rivals and reader.rivals.search(text):
            self.start.rivals.append(_Stated(text.strip()[:_SHOWN], line))
        self._take_facts(text, line)

    def end(self) -> Iterator[Start]:
        """The last start."""
        if self.start.rows or self.start.broken:
            yield self._next()

    def _others_print(self, printer: Printer) -> bool:
        """Whether other ranks of this start have not printed yet, and no label tells them apart."""
        count = self.start.stated.get(self.reader.printers)
        if count is None or printer != Printer():
            return False
        ended = sum(self.reader.ends in row.values for row in self.start.rows.get(printer, ()))
        return ended < int(count.text)

    def _take_command(
        self, command: Command, words: tuple[str, ...], flags: Mapping[str, str], line: int
    ) -> None:
        self.start.command, self.start.flags = words, {}
        for name, text in flags.items():
            if fact := command.flags.get(name):
                self.start.state(fact, text or "True", line, MODEL)
            elif not command.ignore.match(name):
                self.start.flags[f"--{name}"] = text

    def _add_more(self, text: str, line: int, printer: Printer) -> bool:
        """Add what a line says of the step before it; of memory that several ranks print, the
        largest."""
        belongs = False
        for mark, pattern in self.reader.more:
            if mark in text and (rows := self.start.rows.get(printer)):
                for match in pattern.finditer(text):
                    row = _without(match.groupdict().keys(), rows)
                    before = dict(row.values)
                    _fill(row, match)
                    for name in before.keys() & match.groupdict().keys():
                        if self.reader.values[name].way == PEAK:
                            row.values[name] = max(before[name], row.values[name])
                    self.start.last_line, belongs = line, True
        return belongs

    def _row(self, text: str, line: int, printer: Printer) -> Row | None:
        match = self.reader.match(text)
        if match is None:
            return None
        step = match.groupdict().get("step")
        if step is None:  # of lines that are not numbered
            step = str(1 + len(self.start.rows.get(printer, ())))
        if not _STEP.fullmatch(step.strip()):
            return None
        row = Row(int(step), line, {}, {}, {})
        _fill(row, match)
        for name in self.reader.settings:
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
        if not rows or row.step > rows[-1].step or self._others_print(printer):
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
        for stated in self.reader.stated:
            if stated.mark in text:
                for name, value in stated.facts(text):
                    if self.start.rows:
                        self.pending.append((name, value, line))
                    else:
                        self.start.state(name, value.strip(), line, stated.key)

    def _next(self) -> Start:
        """The start that ends here; what was stated in it is that of the next, if there is one."""
        ended, self.start = self.start, Start()
        for name, text, line in self.pending:
            ended.stated.setdefault(name, _Stated(text.strip(), line))
            self.start.stated[name] = _Stated(text.strip(), line)
        self.pending.clear()
        self.spoiled.clear()
        return ended


def _without(names: Collection[str], rows: list[Row]) -> Row:
    """The first line of the last step without these values, else the last line."""
    chosen = rows[-1]
    for row in reversed(rows):
        if row.step != rows[-1].step:
            break
        if not any(name in row.values for name in names):
            chosen = row
    return chosen


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

    Raises LogError where lines are damaged, mixed or lost.
    """
    ends = max((rows[-1].line for rows in start.rows.values()), default=0)
    if inside := [line for line in start.broken if line < ends]:
        raise LogError("a damaged line of progress", inside[0])
    if not start.rows:
        raise LogError("only a damaged line of progress", start.broken[0])
    streams: list[list[Row]] = []
    for printer in sorted(start.rows, key=lambda it: (it.rank or 0, it.local or 0)):
        streams.extend(_by_occurrence(start.rows[printer]))
    if Printer() in start.rows and len(start.rows) > 1:
        line = start.rows[Printer()][0].line
        raise LogError("some lines have a rank's label, others have none", line)
    common = set.intersection(*({row.step for row in rows} for rows in streams))
    if len(streams) > 1:
        longest = max(streams, key=len)
        # The last lines of some ranks may be lost where a log was cut, or a job ended.
        lost = [row for row in longest if row.step not in common]
        if lost and common and min(row.step for row in lost) < max(common):
            raise LogError(
                f"step {lost[0].step}: not every rank that prints has a line", lost[0].line
            )
        streams = [[row for row in rows if row.step in common] for rows in streams]
    if not streams[0]:
        raise LogError("no step that all ranks have printed", start.last_line)
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
        raise LogError(
            f"{places[wrong[0]]} lines of step {wrong[0]} without a label of their rank's own, "
            f"{len(streams)} of others: lines of several ranks or runs are mixed",
            line,
        )
    return [sorted(stream, key=lambda row: row.step) for stream in streams]
