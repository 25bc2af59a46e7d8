"""What profiled runs have left: the functions that cProfile saw take longest, and the files."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.profilers import CPROFILE, FOLDER
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs

MAX_RUNS = 12
_TIMEOUT_S = 300
# Directories that say nothing about a function: where Python packages are, and our own checkout.
_BEFORE_PACKAGE = re.compile(
    r"^.*/(?:(?:site|dist)-packages|workflow/benchmarks|lib/python[\d.]+)/"
)
_RANK_FILE = re.compile(rf"{FOLDER}/rank(\d+)\.prof")


def profile_files(run_folder: Path) -> list[Path]:
    """Files of a profiled run, as its record names them; raises UserError if that is not whole."""
    record = read_record(run_folder / RECORD)
    attempt = run_folder / f"attempt-{record['attempt']}"
    try:
        files = [attempt / name for name in record["profile"]["files"]]
    except (KeyError, TypeError):
        raise UserError(f"{run_folder.name}: the record names no files of a profile") from None
    return [path for path in files if path.resolve().is_relative_to(attempt.resolve())]


@dataclass(frozen=True, kw_only=True)
class FunctionTime(DeclaredRow, table="functions", leading=("run_id",)):
    """A function of a run under cProfile; times are means over the ranks."""

    run_id: str = column("the run that was profiled")
    profiled_ranks: int = column("ranks whose profile could be read", "1")
    function: str = column("its name")
    place: str = column("its file and line; empty for what is built in")
    calls: float = column("calls", "1")
    own_s: float = column("time spent in the function itself", "s")
    total_s: float = column("time with all that it called", "s")
    share: float | None = column("`own_s` over the sum of all own times", "1")


def function_rows(inputs: TableInputs) -> Iterator[FunctionTime]:
    """Per run under cProfile, of the first MAX_RUNS, a few dozen functions by falling own time."""
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    profiled = [
        run
        for run in data.experiment["profiles"]
        if run["kind"] == CPROFILE and run["status"] == Status.DONE
    ]
    for run in profiled[:MAX_RUNS]:
        try:
            files = profile_files(runs / run["run_id"])
        except (UserError, OSError):
            data.unread.append(run["run_id"])  # its record was touched since the plan was made
            continue
        profile = _read([path for path in files if _RANK_FILE.search(str(path))])
        ranks = profile["ranks"]
        if not ranks:
            data.unread.append(run["run_id"])
            continue
        for file, line, name, calls, own, total in profile["functions"]:
            yield FunctionTime(
                point={axis: run["point"][axis] for axis in data.axes},
                run_id=run["run_id"],
                profiled_ranks=ranks,
                function=name,
                place=_place(file, line),
                calls=calls / ranks,
                own_s=own / ranks,
                total_s=total / ranks,
                share=own / profile["whole"] if profile["whole"] > 0 else None,
            )


def _read(files: Sequence[Path]) -> dict[str, Any]:
    """What files of cProfile hold; those that are not whole are left out."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("_cprofile_reader.py"))]
    names = "\0".join(map(str, files)).encode(errors="surrogateescape")
    try:
        done = subprocess.run(
            command, input=names, capture_output=True, timeout=_TIMEOUT_S, check=True
        )
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {"ranks": 0}


def _place(file: str, line: int) -> str:
    """``horovod/tensorflow/mpi_ops.py:120``; empty for what is built in."""
    return "" if file.startswith("~") else f"{_BEFORE_PACKAGE.sub('', file)}:{line}"
