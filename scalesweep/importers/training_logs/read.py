"""Runs of training programs from their logs: which program a file is of, and what it holds."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, Refusal
from scalesweep.importers.training_logs.build_run import run_of
from scalesweep.importers.training_logs.program import Program
from scalesweep.importers.training_logs.progress import labelled_by_srun, starts_of
from scalesweep.importers.training_logs.registry import SIGN


def read_runs(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order; ``lines()`` are those of ``file``."""
    try:
        program = _program_of(lines())
        srun = labelled_by_srun(lines(), program)
        for start in starts_of(lines(), program, srun):
            try:
                yield run_of(start, program, file, ranks)
            except ImportRefusedError as error:
                line = error.line or start.first_line
                yield Refusal(file, str(error), line, program.benchmark, kind=str(error))
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line)


def _program_of(lines: Iterable[Line]) -> Program:
    """The one program whose lines of progress a log has. Raises ImportRefusedError for two."""
    seen: dict[str, tuple[Program, int]] = {}
    for line in lines:
        if program := SIGN.search(line.text):
            seen.setdefault(program.name, (program, line.number))
    below = {name for program, _ in seen.values() for name in program.also}
    programs = [it for it in seen.values() if it[0].name not in below]
    if len(programs) > 1:
        (first, one_line), (second, other) = programs[:2]
        raise ImportRefusedError(
            f"a line of {second.name} in a log of {first.name} (line {one_line}): a file is read "
            "as one program's; split it",
            other,
        )
    if not programs:
        raise ImportRefusedError("no line of progress")
    return programs[0][0]
