"""Log files, one or a folder of them: which can be read, and the runs they hold."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from re import Pattern

from scalesweep.compute.log_lines import Line, read_lines
from scalesweep.compute.log_reader import Reader
from scalesweep.config.log_patterns import shipped_readers
from scalesweep.core.errors import UserError
from scalesweep.importers import collective_logs, lines, mlperf_log, mlperf_runs, results
from scalesweep.importers.imported_run import ImportedRun, Item, Refusal, files_below, not_read
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.write_campaign import Rules

RULES = {**mlperf_runs.RULES, "dlio_training": Rules(along=("data_files",)), **lines.RULES}
NAMES = (
    f"{lines.PROGRAMS}, MLPerf, OSU Micro-Benchmarks, nccl-tests; results of Keras's or "
    "Lightning's CSVLogger, Hugging Face's Trainer, DLIO"
)
# What reads a file: its lines, from the beginning with each call, and the file.
_Read = Callable[[Callable[[], Iterator[Line]], Path], Iterable[ImportedRun | Refusal]]


def _kinds(
    file: Path, ranks: int | None = None, test: str | None = None
) -> dict[Pattern[str], _Read]:
    """The sign of each kind of log that a file may be, and its reader."""
    return {
        mlperf_log.SIGN: partial(mlperf_runs.read_jobs, ranks=ranks),
        collective_logs.SIGN: partial(collective_logs.read_runs, ranks=ranks, test=test),
        collective_logs.JSON_SIGN: partial(collective_logs.read_json, ranks=ranks),
        **{
            kind.sign: partial(kind.read, ranks=ranks)
            for kind in results.KINDS
            if kind.called(file)
        },
    }


def read_items(
    path: Path, ranks: RankMap, test: str | None = None, reader: Reader | None = None
) -> Iterator[Item]:
    """Runs of a log, or of every log below a folder in the natural order of their names.

    ``ranks`` are those of runs whose logs do not tell them, ``test`` is that of nccl-tests where
    they do not, ``reader`` the only one that is tried. A run is yielded as soon as it is read, so
    that a log of any size takes the memory of its longest run. Raises UserError if there is no such
    file or folder.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    refusals: list[Refusal] = []
    files = files_below(path, refusals)
    ranks.check(files)
    yield from refusals
    for file in files:
        there = False
        try:
            for item in _items(file, ranks.of(file), test, reader):
                there = True
                yield item
        except OSError as error:
            yield Refusal(file, error.strerror or "cannot be read")
        else:
            if not (there or mlperf_runs.is_beside(file) or results.is_part(file)):
                yield not_read(file)


def is_log(file: Path, end: float) -> bool:
    """Whether a file is a log of a known kind; False for one that cannot be read, or shows it not
    until this process has taken ``end`` seconds of CPU time."""
    signs = list(_kinds(file))
    look = lines.Look(shipped_readers().values())
    with contextlib.suppress(OSError):
        for line in read_lines(file, collected=True):
            if look.take(line) or any(sign.search(line.text) for sign in signs):
                return True
            if time.process_time() > end:
                break
    return False


def _items(
    file: Path, ranks: int | None, test: str | None, reader: Reader | None
) -> Iterator[ImportedRun | Refusal]:
    """Runs and refusals of a file; none if it is no log of a known kind. Raises OSError."""
    look = lines.Look([reader] if reader else shipped_readers().values())
    wanted = {} if reader else _kinds(file, ranks, test)
    readers: dict[Pattern[str], _Read] = {}
    every = partial(read_lines, file, collected=True)
    for line in every():
        look.take(line)
        for sign in [sign for sign in wanted if sign.search(line.text)]:
            readers[sign] = wanted.pop(sign)
    for read in readers.values():
        yield from read(every, file)
    # Runs of MLPerf print the lines of their framework, too.
    if look.seen and mlperf_log.SIGN not in readers:
        yield from lines.read_runs(look, file, ranks)
