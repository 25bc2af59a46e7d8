"""A log cut into the starts of a program: the lines of progress of each, and what it stated.

Every start is a run of its own, one that goes on from a checkpoint too: it compiles and warms up
again. Lines of several ranks are told apart by their labels (horovodrun, mpirun, ``srun --label``,
torchrun); without them a log of several is refused.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from scalesweep.compute.log_lines import Line
from scalesweep.compute.log_reader import (
    FACTS,
    LONGEST_LINE,
    MODEL,
    Fact,
    Reader,
    fact_of,
    has,
    number_of,
)
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

# Who prints a line: the rank by the launcher's label, and by torchrun's; if no label says it.
Printer = tuple[int | None, int | None]
_NOBODY: Printer = (None, None)
_STEP = re.compile(r"\d{1,12}", re.ASCII)


class LogError(UserError):
    """Why a start of a program is no run, and the line that shows it."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(slots=True)
class Row:
    """A line of progress: what it prints, by group, and facts that it states."""

    step: int
    line: int
    texts: dict[str, str]
    settings: dict[str, str]
    spoiled: bool = False


@dataclass
class Start:
    """What a program printed from one start to its end, or to the next."""

    first_line: int = 0
    last_line: int = 0
    rows: dict[Printer, list[Row]] = field(default_factory=dict)
    stated: dict[str, tuple[str, int]] = field(default_factory=dict)  # text and line by name
    # Lines that begin as progress and do not go on so.
    broken: list[int] = field(default_factory=list)

    def state(self, name: str, text: str, line: int, key: str = FACTS) -> None:
        """Take a fact; raises LogError where another was stated before. One that only describes
        the model is without text then: not known."""
        before, place = self.stated.setdefault(name, (text, line))
        if before != text and key == MODEL:
            self.stated[name] = "", line
        elif before != text and key == FACTS:
            raise LogError(
                f"{name} is {text[:40]}, and {before[:40]} in line {place}: lines of several runs "
                "are mixed",
                line,
            )

    def texts(self) -> dict[str, str]:
        """What is stated, as printed."""
        return {name: text for name, (text, _) in self.stated.items() if text}


def facts_of(
    reader: Reader, texts: Mapping[str, str], steps: Sequence[int], line: int
) -> dict[str, Fact]:
    """Facts by name, and what is derived of them; raises LogError for what cannot be one run.

    ``steps`` are those of the lines; their last and greatest distance are facts as well. An
    expression that fails, as for a fact that is not known, leaves its name unknown.
    """
    apart = max((after - before for before, after in pairwise(steps)), default=1)
    known: dict[str, Any] = {"last_step": steps[-1], "interval": apart}
    numbers = set().union(*(it.pattern.numbers for it in reader.stated), reader.settings)
    stated = {name: fact_of(text, name in numbers) for name, text in texts.items()}
    known |= {name: value for name, value in stated.items() if value is not None}
    for name, expression in reader.derive.items():
        value = value_of(expression, known)
        known.pop(name, None)
        if value is not None:
            known[name] = value
    if lacking := [name for name in reader.needs if name not in known]:
        raise LogError(f"the header lacks {', '.join(lacking)}", line)
    for when, reason in reader.refuse:
        if known.keys() >= when.names and value_of(when, known):
            raise LogError(reason.format_map(defaultdict(lambda: "?", known)), line)
    return known


def value_of(expression: Expression, known: Mapping[str, Any]) -> Any:
    """The value of an expression, in which what is not known is null; None where it fails."""
    try:
        return expression({**dict.fromkeys(expression.names), **known})
    except UserError:
        return None


def starts_of(lines: Iterable[Line], reader: Reader) -> Iterator[Start]:
    """The starts of a program in a log, in order. Raises LogError."""
    splitter = _Splitter(reader)
    for line in lines:
        if 0 < len(line.text) <= LONGEST_LINE and (ended := splitter.add(line)):
            yield ended
    if splitter.start.rows or splitter.start.broken:
        yield splitter.next_start()


class _Splitter:
    """Puts lines into the start that they belong to."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.start = Start()
        # Facts behind the first line of progress: of this start, or of the next.
        self.pending: list[tuple[str, str, int]] = []
        # How many of the next lines of a printer hold more than steps.
        self.spoiled: Counter[Printer] = Counter()

    def add(self, taken: Line) -> Start | None:
        """Take a line; the start that ends before it, if it is the first of another."""
        reader, ended = self.reader, None
        text, line, printer = taken.text, taken.number, (taken.rank, taken.local)
        rows = self.start.rows.get(printer)
        if rows and has(text, reader.begins):
            ended, rows = self.next_start(), None
        if reader.prints(text):
            if (row := self._row(text, line, 1 + len(rows or ()))) is None:
                self.start.broken.append(line)
            elif not rows or (rows[-1].step, rows[-1].texts) != (row.step, row.texts):
                # Of equal lines the second is of another logger.
                ended = self.next_start() if rows and self._begins_anew(row, rows[-1]) else ended
                self._keep(row, printer)
        elif not self._add_more(text, line, rows or []):
            if has(text, reader.spoils):
                self.spoiled[printer] = reader.spoiled_lines
            self._take_facts(text, line)
        return ended

    def next_start(self) -> Start:
        """The start that ends here; what was stated in it is that of the next, if there is one."""
        ended, self.start = self.start, Start()
        for name, text, line in self.pending:
            ended.stated.setdefault(name, (text.strip(), line))
            self.start.stated[name] = text.strip(), line
        self.pending.clear()
        self.spoiled.clear()
        return ended

    def _add_more(self, text: str, line: int, rows: list[Row]) -> bool:
        """Add what a line says of the step before it; of memory that several ranks print, the
        largest."""
        belongs = False
        for mark, pattern in self.reader.more if rows else ():
            for match in pattern.finditer(text) if mark in text else ():
                texts = rows[-1].texts
                for name, said in _said(match).items():
                    peak = self.reader.values[name].way == "peak" and name in texts
                    if not (peak and number_of(texts[name]) > number_of(said)):
                        texts[name] = said
                self.start.last_line, belongs = line, True
        return belongs

    def _row(self, text: str, line: int, count: int) -> Row | None:
        """A line of progress, None if it is cut or damaged; the step of one without a number is
        their ``count``."""
        match = next(filter(None, (it.search(text) for it in self.reader.progress)), None)
        step = (match and match.groupdict().get("step")) or str(count)
        if match is None or not _STEP.fullmatch(step.strip()):
            return None
        texts = _said(match)
        settings = {name: texts.pop(name) for name in self.reader.settings if name in texts}
        return Row(int(step), line, texts, settings)

    @staticmethod
    def _begins_anew(row: Row, last: Row) -> bool:
        """Whether a line is of another start: a later step was there. Raises LogError where the
        step itself was, right before."""
        if row.step == last.step:
            raise LogError(
                f"step {row.step} is printed twice, and no label says by which rank: let the "
                "launcher label lines (srun --label, mpirun --tag-output)",
                row.line,
            )
        return row.step < last.step

    def _keep(self, row: Row, printer: Printer) -> None:
        self.start.first_line = self.start.first_line or row.line
        row.spoiled = self.spoiled[printer] > 0
        self.spoiled[printer] -= row.spoiled
        self.start.rows.setdefault(printer, []).append(row)
        self.start.last_line = max(row.line, self.start.last_line)

    def _take_facts(self, text: str, line: int) -> None:
        for stated in self.reader.stated:
            for name, value in stated.facts(text) if stated.mark in text else ():
                if self.start.rows:
                    self.pending.append((name, value, line))
                else:
                    self.start.state(name, value.strip(), line, stated.key)


def _said(match: re.Match[str]) -> dict[str, str]:
    """What a match prints, by group, but for the step."""
    groups = match.groupdict().items()
    return {name: text for name, text in groups if name != "step" and text is not None}


def by_printer(start: Start) -> list[list[Row]]:
    """The lines of each rank that printed, those of all common steps. Raises LogError where lines
    are damaged, mixed or lost."""
    ends = max((rows[-1].line for rows in start.rows.values()), default=0)
    if inside := [line for line in start.broken if line < ends]:
        raise LogError("a damaged line of progress", inside[0])
    if not start.rows:
        raise LogError("only a damaged line of progress", start.broken[0])
    if _NOBODY in start.rows and len(start.rows) > 1:
        line = start.rows[_NOBODY][0].line
        raise LogError("some lines have a rank's label, others have none", line)
    printers = sorted(start.rows, key=lambda it: (it[0] or 0, it[1] or 0))
    streams = [start.rows[it] for it in printers]
    common = set.intersection(*({row.step for row in rows} for rows in streams))
    # The last lines of some ranks may be lost where a log was cut, or a job ended.
    lost = [row for row in max(streams, key=len) if row.step not in common]
    if lost and common and lost[0].step < max(common):
        raise LogError(f"step {lost[0].step}: not every rank that prints has a line", lost[0].line)
    if not common:
        raise LogError("no step that all ranks have printed", start.last_line)
    return [[row for row in rows if row.step in common] for rows in streams]
