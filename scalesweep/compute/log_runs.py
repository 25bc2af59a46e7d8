"""What the log of a run gives by the reader of its program: metrics, arrays, warm-up."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import STREAMS
from scalesweep.compute.log_lines import read_lines
from scalesweep.compute.log_metrics import Reading, UnreadableError, log_files
from scalesweep.compute.log_reader import Reader, reader_of
from scalesweep.compute.log_starts import LogError, facts_of, starts_of
from scalesweep.compute.log_steps import arrays_of, kept_lines, metrics_of, steps_of, unfinished
from scalesweep.core.record import STEP_TIMES, WARMUP_STEP_TIMES


def read_log(declared: Mapping[str, Any], work: Path, ranks: int, srun_labels: bool) -> Reading:
    """Read what a program printed in ``work``, the folder of an attempt, with the declaration of
    its reader, as JSON. Of several starts in one attempt the last counts.

    Raises UnreadableError where a line, or what follows from the lines, is not that of a run of
    ``ranks`` ranks; LogsGoneError if a log is not there, OSError if it cannot be read.
    """
    reader = reader_of(declared, "program", "reader")
    files = [file for stream in STREAMS for file in log_files(stream, work)]
    try:
        return _read(reader, files, ranks, srun_labels)
    except LogError as error:
        place = f", in line {error.line}" if error.line else ""
        raise UnreadableError(f"reader {reader.program}: {error}{place}") from None


def _read(reader: Reader, files: list[Path], ranks: int, srun_labels: bool) -> Reading:
    lines = itertools.chain.from_iterable(read_lines(file, srun_labels) for file in files)
    starts = list(starts_of(lines, reader, srun=False))
    if not starts:
        raise LogError(f"no line of progress in {' or '.join(file.name for file in files)}")
    start = starts[-1]
    steps = steps_of(reader, start)
    facts = facts_of(reader, {**start.texts(), **steps.settings}, steps.numbers, start.first_line)
    if facts.setdefault("ranks", ranks) != ranks:
        raise LogError(f"the log is of {facts['ranks']} ranks, the run of {ranks}")
    kept, warm = kept_lines(steps)
    reading = Reading()
    for name, it in metrics_of(steps, kept, facts).items():
        it.pop("rounding", None)
        reading.metrics[name] = {**it}  # type: ignore[typeddict-item]
    notes = {"starts": len(starts), "printers": len(steps.streams), "warm_up": warm}
    if doubt := unfinished(warm):
        notes["warning"] = doubt
    reading.notes[reader.main] = notes
    # Consumers take the second axis of these for the ranks.
    every = len(steps.streams) == ranks
    for name, values in arrays_of(steps, kept, warm["lines"]).items():
        if every or name not in (STEP_TIMES, WARMUP_STEP_TIMES):
            reading.arrays[name] = values
    return reading
