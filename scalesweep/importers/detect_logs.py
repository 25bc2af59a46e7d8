"""Log files, one or a folder of them: which can be read, and the runs they hold."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

from scalesweep.compute.log_lines import Line, read_lines
from scalesweep.compute.log_reader import Reader
from scalesweep.config.log_readers import shipped_readers
from scalesweep.core.errors import UserError
from scalesweep.importers import (
    collective_logs,
    lines,
    mlperf_beside,
    mlperf_log,
    mlperf_runs,
    mlperf_training,
    result_csv,
    result_json,
)
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Item,
    NotRead,
    Refusal,
    shown,
)
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.result_files import Result, run_of
from scalesweep.importers.source_files import files_below
from scalesweep.importers.write_campaign import Rules

RULES = {
    mlperf_runs.BENCHMARK: Rules(along=("validation_samples_per_rank",)),
    mlperf_training.BENCHMARK: Rules(along=mlperf_training.BATCHES),
    "dlio_training": Rules(along=("data_files",)),
    **lines.RULES,
}
NAMES = (
    f"{lines.PROGRAMS}, MLPerf, OSU Micro-Benchmarks, nccl-tests; results of Keras's or "
    "Lightning's CSVLogger, Hugging Face's Trainer, DLIO"
)

# What tells files that are read with others.
_PARTS = (mlperf_beside.is_beside, result_json.is_part)
# The lines of a file, from the beginning with each call.
_Lines = Callable[[], Iterator[Line]]
_Reader = Callable[[_Lines, Path], Iterable[ImportedRun | Refusal]]


class _Sign(Protocol):
    """What finds the lines of a kind of log, as a compiled pattern does."""

    def search(self, text: str, /) -> object | None:
        """What shows that a line is of this kind, if it is."""


_Kinds = tuple[tuple[_Sign, _Reader], ...]
# Files whose signs may stand in tables and reports too are known by their names besides.
_NAMED: dict[_Sign, Callable[[Path], bool]] = {
    result_json.HUGGING_FACE_SIGN: result_json.is_hugging_face,
    result_json.DLIO_SIGN: result_json.is_dlio,
}


_RESULTS: dict[str, tuple[_Sign, Callable[[_Lines, Path], Iterator[Result]]]] = {
    "keras_history": (result_csv.KERAS_SIGN, result_csv.keras),
    "lightning_trainer": (result_csv.LIGHTNING_SIGN, result_csv.lightning),
    "huggingface_trainer": (result_json.HUGGING_FACE_SIGN, result_json.hugging_face),
    "dlio_training": (result_json.DLIO_SIGN, result_json.dlio),
}


def _results(
    benchmark: str, ranks: int | None, lines: _Lines, file: Path
) -> Iterator[ImportedRun | Refusal]:
    """The runs of a small result file, or why it has none."""
    try:
        for result in _RESULTS[benchmark][1](lines, file):
            yield run_of(benchmark, result, file, ranks)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, benchmark)


def _kinds(file: Path, ranks: int | None, test: str | None = None) -> _Kinds:
    """The sign of each kind of log that a file may be, and its reader."""
    kinds: _Kinds = (
        (mlperf_log.SIGN, partial(mlperf_runs.read_jobs, ranks=ranks)),
        (collective_logs.SIGN, partial(collective_logs.read_runs, ranks=ranks, test=test)),
        (collective_logs.JSON_SIGN, partial(collective_logs.read_json, ranks=ranks)),
        *((sign, partial(_results, benchmark, ranks)) for benchmark, (sign, _) in _RESULTS.items()),
    )
    return tuple(it for it in kinds if it[0] not in _NAMED or _NAMED[it[0]](file))


def read_source(
    path: Path,
    ranks: int | None = None,
    test: str | None = None,
    reader: Reader | None = None,
) -> tuple[list[ImportedRun], list[Refusal], list[Path]]:
    """What ``read_items`` yields, sorted: the runs, the refusals, and the files not read.

    ``ranks`` is the number of ranks of all runs whose logs do not tell it, ``test`` and ``reader``
    as of ``read_items``. Raises UserError if there is no such file or folder or no log in it.
    """
    runs: list[ImportedRun] = []
    refusals: list[Refusal] = []
    others: list[Path] = []
    for item in read_items(path, RankMap({}, ranks), test, reader):
        if isinstance(item, ImportedRun):
            runs.append(item)
        elif isinstance(item, Refusal):
            refusals.append(item)
        else:
            others.append(item.file)
    if not runs and not refusals:
        raise UserError(f"{path}: holds no log of {NAMES}")
    return runs, refusals, others


def read_items(
    path: Path, ranks: RankMap, test: str | None = None, reader: Reader | None = None
) -> Iterator[Item]:
    """Runs of a log, or of every log below a folder in the natural order of their names.

    ``ranks`` are those of runs whose logs do not tell them, ``test`` is that of nccl-tests where
    they do not, ``reader`` the only one that is tried. A run is yielded as soon as it is
    read, so that a log of any size takes the memory of its longest run. Links to folders and
    hidden files are not followed. Raises UserError if there is no such file or folder.
    """
    if not path.exists():
        raise UserError(f"{shown(path)}: no such file or folder")
    refusals: list[Refusal] = []
    files = files_below(path, refusals)
    ranks.check(files)
    yield from refusals
    for file in files:
        yield from _read(file, ranks.of(file), test, reader)


def is_log(file: Path, seconds: float) -> bool:
    """Whether a file is a log of a known kind; False for one that cannot be read, or shows it not
    within so much CPU time."""
    end = time.process_time() + seconds
    signs = [sign for sign, _ in _kinds(file, None)]
    look = lines.Look(shipped_readers().values())
    try:
        for line in read_lines(file):
            if look.take(line) or any(sign.search(line.text) for sign in signs):
                return True
            if time.process_time() > end:
                return False
    except OSError:
        pass
    return False


def _read(file: Path, ranks: int | None, test: str | None, reader: Reader | None) -> Iterator[Item]:
    """Runs and refusals of a file, or that it is no log of a known kind."""
    there = False
    try:
        if not file.is_file():
            raise OSError(0, "not a regular file")
        for item in _items(file, ranks, test, reader):
            there = True
            yield item
    except OSError as error:
        yield Refusal(file, error.strerror or "cannot be read")
    else:
        if not there and not any(is_part(file) for is_part in _PARTS):
            yield NotRead(file)


def _items(
    file: Path, ranks: int | None, test: str | None, reader: Reader | None
) -> Iterator[ImportedRun | Refusal]:
    look = lines.Look([reader] if reader else shipped_readers().values())
    wanted = {} if reader else dict(_kinds(file, ranks, test))
    readers: dict[_Sign, _Reader] = {}
    for line in read_lines(file):
        look.take(line)
        for sign in [sign for sign in wanted if sign.search(line.text)]:
            readers[sign] = wanted.pop(sign)
    for read in readers.values():
        yield from read(partial(read_lines, file), file)
    # Runs of MLPerf print the lines of their framework, too.
    if look.seen and mlperf_log.SIGN not in readers:
        yield from lines.read_runs(read_lines(file), look, file, ranks)
