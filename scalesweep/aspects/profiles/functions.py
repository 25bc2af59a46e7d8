"""What profiled runs have left: the functions that took longest, and the files.

Of runs under ``profile: cprofile``, ``nsys`` or ``tau`` from the files that they left, of imported
profiles from what the import kept in their records.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from scalesweep.analysis.profile import function_entries
from scalesweep.core.cpu_limit import TookTooLongError, cpu_limit, reading_limit
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import PlanProfile
from scalesweep.core.profilers import CPROFILE, FOLDER, NSYS, PPROF, TAU, split_name
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.importers.profiles import nsys, tau
from scalesweep.importers.profiles.source import ReadResult
from scalesweep.state.record_reader import read_record
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData

MAX_RUNS = 12
IMPORTED = "imported"  # the site of imported runs
MAX_IMPORTED = 200  # records of imported runs that are looked at
MAX_ROWS = 20_000  # of all imported runs of an experiment
_HOST = "cpu"  # the kind of functions in Python
# The files that runs under other profilers leave, and what reads them.
_READERS: Mapping[str, tuple[str, Callable[[Sequence[Path]], ReadResult]]] = {
    NSYS: (".sqlite", nsys.read),
    TAU: (PPROF, tau.read),
}
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
    """A function of a run under cProfile, Nsight Systems or TAU, or of an imported profile; times
    are means over the ranks."""

    run_id: str = column("the run that was profiled")
    profiled_ranks: int = column("ranks whose profile could be read", "1")
    function: str = column("its name")
    place: str = column("its file and line; empty for what is built in, and where it is not known")
    kind: str = column(
        "`cpu` (a host), `kernel`, `copy` (a GPU), `api` or `range`, whose times contain those of "
        "others"
    )
    part: str | None = column("the part that it counts for in `parts`", if_known=True)
    calls: float | None = column("calls", "1")
    own_s: float = column("time spent in the function itself", "s")
    total_s: float | None = column("time with all that it called", "s")
    mean_s: float | None = column(
        "`total_s` over `calls`; `own_s` over them where there is no `total_s`", "s"
    )
    min_s: float | None = column("the shortest call on any rank", "s", if_known=True)
    max_s: float | None = column("the longest call on any rank", "s", if_known=True)
    share: float | None = column("`own_s` over the sum of all own times of its kind", "1")

    @property
    def profiler(self) -> str:
        """The kind of profile that the run was started for; ``none`` of an imported one."""
        return split_name(self.run_id)[1]


def function_rows(inputs: TableInputs) -> Iterator[FunctionTime]:
    """Functions by falling own time: per run under cProfile, of the first MAX_RUNS, a few dozen,
    and per imported profile those that its record has (MAX_ROWS in all)."""
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    yield from _profiled(data, runs)
    for run in _done(data, *_READERS)[:MAX_RUNS]:
        try:
            entries, ranks = _read_by_tool(run["kind"], profile_files(runs / run["run_id"]))
        except (UserError, OSError, TookTooLongError):
            data.unread.append(run["run_id"])
            continue
        yield from _rows(run, entries, ranks, data.axes)
    if runs.name == IMPORTED:
        done = [run for run in data.experiment["runs"] if run["status"] == Status.DONE]
        rows = (row for run in done[:MAX_IMPORTED] for row in _kept(run, runs, data.axes))
        yield from islice(rows, MAX_ROWS)


def _kept(run: Mapping[str, Any], runs: Path, axes: Sequence[str]) -> Iterator[FunctionTime]:
    """What an import kept of a profile; nothing where the record has no functions."""
    try:
        record = read_record(runs / run["run_id"] / RECORD)
    except (UserError, OSError):
        return  # touched since the plan was made, which says so
    if functions := record.get("functions"):
        yield from _rows(run, functions["rows"], functions["ranks"], axes)


def _rows(
    run: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], ranks: int, axes: Sequence[str]
) -> Iterator[FunctionTime]:
    """Entries as ``analysis.profile.function_entries`` makes them."""
    for entry in entries:
        calls, total = entry["calls"], entry["total_s"]
        yield FunctionTime(
            point={axis: run["point"].get(axis) for axis in axes},
            run_id=run["run_id"],
            profiled_ranks=ranks,
            function=entry["name"],
            place="",
            kind=entry["kind"],
            part=entry["part"],
            calls=calls,
            own_s=entry["own_s"],
            total_s=total,
            mean_s=(entry["own_s"] if total is None else total) / calls if calls else None,
            min_s=entry["min_s"],
            max_s=entry["max_s"],
            share=entry["share"],
        )


def _done(data: ExperimentData, *kinds: str) -> list[PlanProfile]:
    """The finished runs under profilers of these kinds."""
    runs = data.experiment["profiles"]
    return [run for run in runs if run["kind"] in kinds and run["status"] == Status.DONE]


def _read_by_tool(kind: str, files: Sequence[Path]) -> tuple[list[dict[str, Any]], int]:
    """Functions of a run under Nsight Systems or TAU, and how many ranks they are of.

    Raises UserError if its files do not make a whole profile.
    """
    end, read = _READERS[kind]
    chosen = [file for file in files if file.name.endswith(end)]
    size = sum(file.stat().st_size for file in chosen)
    with cpu_limit(reading_limit(size)):
        result = read(chosen)
    if len(result.profiles) != 1:
        raise UserError("; ".join(refusal.message for refusal in result.refusals) or "no profile")
    (profile,) = result.profiles
    return function_entries(profile), profile.profiled_ranks or profile.ranks or 1


def _profiled(data: ExperimentData, runs: Path) -> Iterator[FunctionTime]:
    """Functions of the runs under cProfile."""
    for run in _done(data, CPROFILE)[:MAX_RUNS]:
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
                kind=_HOST,
                part=None,
                calls=calls / ranks,
                own_s=own / ranks,
                total_s=total / ranks,
                mean_s=total / calls if calls else None,
                min_s=None,
                max_s=None,
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
