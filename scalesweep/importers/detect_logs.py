"""Log files, one or a folder of them: which can be read, and the runs they hold."""

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from scalesweep.compute.log_lines import Line, read_lines
from scalesweep.core.cpu_limit import TookTooLong, cpu_limit, reading_limit
from scalesweep.core.errors import UserError
from scalesweep.core.files import natural_order
from scalesweep.importers import keras_csv, keras_multi_gpu, mlperf_log, mlperf_runs, tf_cnn_reader
from scalesweep.importers.imported_run import ImportedRun, Refusal
from scalesweep.importers.tf_cnn_log import has_srun_labels

RULES = {
    kind.BENCHMARK: kind.RULES for kind in (tf_cnn_reader, keras_multi_gpu, mlperf_runs, keras_csv)
}

_Reader = Callable[[Iterable[Line], Path], tuple[list[ImportedRun], list[Refusal]]]
_Kinds = tuple[tuple[re.Pattern[str], _Reader], ...]


def _kinds(ranks: int | None) -> _Kinds:
    """The sign of each kind of log, and its reader."""
    return (
        (re.compile(r"images/sec: |\bModel: {7}\S"), tf_cnn_reader.read_jobs),
        (re.compile(r"Samples/sec: |^parallelization method: "), keras_multi_gpu.read_jobs),
        (mlperf_log.SIGN, partial(mlperf_runs.read_jobs, ranks=ranks)),
        (keras_csv.SIGN, partial(keras_csv.read_runs, ranks=ranks)),
    )


def read_source(
    path: Path, ranks: int | None = None
) -> tuple[list[ImportedRun], list[Refusal], list[Path]]:
    """Runs of a log, or of every log below a folder in the natural order of their names.

    ``ranks`` is the number of ranks of runs whose logs do not tell it. Returns the runs, the
    refusals, and the files that are no log of a known kind. Links to folders and hidden files are
    not followed. Raises UserError if there is no such file or folder or no log in it.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    runs: list[ImportedRun] = []
    refusals: list[Refusal] = []
    others: list[Path] = []
    for file in _files(path, refusals):
        try:
            with cpu_limit(reading_limit(file.stat().st_size)):
                found = _read(file, _kinds(ranks))
        except OSError as error:
            refusals.append(Refusal(file, error.strerror or "cannot be read"))
            continue
        except TookTooLong:
            refusals.append(Refusal(file, "takes too long to read: not the log of a program"))
            continue
        if found is None:
            others.append(file)
        else:
            runs += found[0]
            refusals += found[1]
    if not runs and not refusals:
        raise UserError(
            f"{path}: holds no log of tf_cnn_benchmarks, keras-multi-gpu or MLPerf, and no history "
            "of Keras's CSVLogger"
        )
    return runs, refusals, others


def _files(path: Path, refusals: list[Refusal]) -> list[Path]:
    if not path.is_dir():
        return [path]

    def unreadable(error: OSError) -> None:
        refusals.append(Refusal(Path(error.filename), error.strerror or "cannot be read"))

    found = []
    for root, folders, files in os.walk(path, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(root, name) for name in files if not name.startswith(".")]
    return sorted(found, key=natural_order)


def _read(file: Path, kinds: _Kinds) -> tuple[list[ImportedRun], list[Refusal]] | None:
    """Runs and refusals of a file; None if it is no log of a known kind."""
    if not file.is_file():
        raise OSError(0, "not a regular file")
    readers = _readers(file, kinds)
    if not readers:
        return None
    srun_labels = has_srun_labels(read_lines(file))
    runs: list[ImportedRun] = []
    refusals: list[Refusal] = []
    for reader in readers:
        found, refused = reader(read_lines(file, srun_labels), file)
        runs += found
        refusals += refused
    return (runs, refusals) if runs or refusals else None


def _readers(file: Path, kinds: _Kinds) -> list[_Reader]:
    wanted = dict(kinds)
    found: list[_Reader] = []
    for line in read_lines(file):
        for sign in [sign for sign in wanted if sign.search(line.text)]:
            found.append(wanted.pop(sign))
        if not wanted:
            break
    return found
