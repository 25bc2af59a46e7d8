"""What profiled runs have left: the functions that took longest, and the files.

Of runs under ``profile: cprofile``, ``nsys`` or ``tau`` from the files that they left, of imported
profiles from what the import kept in their records.
"""

import marshal
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.profile import Profile, function_entries
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import PlanProfile
from scalesweep.core.profilers import CPROFILE, NSYS, PPROF, TAU, split_name
from scalesweep.core.record import RECORD, read_record
from scalesweep.core.status import Status
from scalesweep.importers.imported_run import Refusal
from scalesweep.importers.profiles import nsys, tau
from scalesweep.importers.profiles.base import Read
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData

MAX_RUNS = 12
MAX_FUNCTIONS = 30  # of a run under cProfile
IMPORTED = "imported"  # the site of imported runs
MAX_IMPORTED = 200  # records of imported runs that are looked at
MAX_ROWS = 20_000  # of all imported runs of an experiment
# Directories that say nothing about a function: where Python packages are, and our own checkout.
_BEFORE_PACKAGE = re.compile(
    r"^.*/(?:(?:site|dist)-packages|workflow/benchmarks|lib/python[\d.]+)/"
)
_TOOLS: Mapping[str, tuple[str, Read]] = {NSYS: (".sqlite", nsys.read), TAU: (PPROF, tau.read)}


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


def done_runs(data: ExperimentData, *kinds: str) -> list[PlanProfile]:
    """The finished runs under profilers of these kinds."""
    runs = data.experiment["profiles"]
    return [run for run in runs if run["kind"] in kinds and run["status"] == Status.DONE]


def head_of(run: Mapping[str, Any], axes: Sequence[str]) -> dict[str, Any]:
    """What every row on a profiled run begins with."""
    return {"point": {axis: run["point"].get(axis) for axis in axes}, "run_id": run["run_id"]}


def profile_files(run_folder: Path) -> list[Path]:
    """Files of a profiled run, as its record names them; raises UserError if that is not whole."""
    record = read_record(run_folder / RECORD)
    attempt = run_folder / f"attempt-{record['attempt']}"
    try:
        return [attempt / name for name in record["profile"]["files"]]
    except (KeyError, TypeError):
        raise UserError(f"{run_folder.name}: the record names no files of a profile") from None


def noted(inputs: TableInputs, note: str, most: int) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Imported runs in whose records the import noted something, with that, ``most`` of them."""
    for run, record in islice(
        ((run, record) for run, record in _imported(inputs) if note in (record["notes"] or {})),
        most,
    ):
        yield run, record["notes"][note]


def _imported(inputs: TableInputs) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The finished runs of the site of imports, with their records."""
    if inputs.runs is None or inputs.runs.name != IMPORTED:
        return
    runs = (run for run in inputs.data.experiment["runs"] if run["status"] == Status.DONE)
    for run in islice(runs, MAX_IMPORTED):
        try:
            yield run, read_record(inputs.runs / run["run_id"] / RECORD)
        except (UserError, OSError):
            continue  # touched since the plan was made, which says so


def function_rows(inputs: TableInputs) -> Iterator[FunctionTime]:
    """Functions by falling own time: per run under a profiler, of the first MAX_RUNS of a kind, and
    per imported profile those that its record has (MAX_ROWS in all)."""
    data = inputs.data
    if inputs.runs is None:
        return
    for kind in (CPROFILE, *_TOOLS):
        for run in done_runs(data, kind)[:MAX_RUNS]:
            try:
                files = profile_files(inputs.runs / run["run_id"])
                entries, ranks = _of_cprofile(files) if kind == CPROFILE else _of_tool(kind, files)
            except (UserError, OSError, EOFError, TypeError, ValueError):
                data.unread.append(run["run_id"])
                continue
            yield from _rows(head_of(run, data.axes), entries, ranks)
    kept = (
        row
        for run, record in _imported(inputs)
        if (functions := record.get("functions"))
        for row in _rows(head_of(run, data.axes), functions["rows"], functions["ranks"])
    )
    yield from islice(kept, MAX_ROWS)


def _rows(
    head: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], ranks: int
) -> Iterator[FunctionTime]:
    """Entries as ``analysis.profile.function_entries`` makes them."""
    for entry in entries:
        calls, own, total = entry["calls"], entry["own_s"], entry["total_s"]
        columns = ("kind", "part", "calls", "own_s", "total_s", "min_s", "max_s", "share")
        cells: dict[str, Any] = {name: entry.get(name) for name in columns}
        yield FunctionTime(
            **head,
            **cells,
            profiled_ranks=ranks,
            function=entry["name"],
            place=entry.get("place", ""),
            mean_s=(own if total is None else total) / calls if calls else None,
        )


def _of_tool(kind: str, files: Sequence[Path]) -> tuple[list[dict[str, Any]], int]:
    """Functions of a run under Nsight Systems or TAU, and how many ranks they are of. Raises
    UserError if its files do not make a whole profile."""
    end, read = _TOOLS[kind]
    items = list(read([file for file in files if file.name.endswith(end)], None))
    profiles = [item for item in items if isinstance(item, Profile)]
    if len(profiles) != 1:
        raise UserError("; ".join(it.message for it in items if isinstance(it, Refusal)) or "none")
    (profile,) = profiles
    return function_entries(profile), profile.profiled_ranks or profile.ranks or 1


def _of_cprofile(files: Sequence[Path]) -> tuple[list[dict[str, Any]], int]:
    """The functions that took longest by themselves, means over the ranks, and how many these are.
    Raises ValueError, EOFError or TypeError where a file is not whole."""
    profiles = [marshal.loads(file.read_bytes()) for file in files if file.suffix == ".prof"]
    if not profiles:
        raise ValueError("no file of cProfile")
    every = pd.DataFrame(
        [(*function, calls, own, total) for stats in profiles
         for function, (_, calls, own, total, _) in stats.items()],
        columns=["file", "line", "name", "calls", "own_s", "total_s"],
    )  # fmt: skip
    means = every.groupby(["file", "line", "name"], sort=False).sum() / len(profiles)
    means["share"] = means["own_s"] / means["own_s"].sum()
    top = means.nlargest(MAX_FUNCTIONS, "own_s").reset_index()
    lines = _BEFORE_PACKAGE.pattern
    places = top["file"].str.replace(lines, "", regex=True) + ":" + top["line"].astype(str)
    top["place"] = places.where(~top["file"].str.startswith("~"), "")
    entries: list[dict[str, Any]] = top.assign(kind="cpu").to_dict("records")  # type: ignore[assignment]
    return entries, len(profiles)
