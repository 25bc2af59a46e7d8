"""The jobs of a campaign: what each asked for, used, waited for and held (results/jobs.csv).

Jobs are known by job.json in the folder of their run, and by the logs of Slurm, one per job: those
of earlier versions left nothing else.
"""

import csv
import io
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.files import read_json, write_atomic
from scalesweep.core.formatting import counted, finite
from scalesweep.core.record import PREVIOUS_FAILURE, RECORD, read_failure
from scalesweep.slurm.commands import joined
from scalesweep.slurm.failure import BY_SLURM, epoch_s, written_in
from scalesweep.slurm.job_file import submitted_jobs
from scalesweep.slurm.sacct import FINAL, Job, cause_of, query

Row = dict[str, Any]
Kind = Callable[[str], Any]

# Column -> type; times are UTC in ISO 8601, memory is per node (asked) and of a task (used).
COLUMNS: dict[str, Kind] = {
    "job_id": int, "run_id": str, "state": str, "cause": str, "exit_code": int, "partition": str,
    "nodes": int, "cpus": int, "asked_s": int, "elapsed_s": int, "asked_mem_bytes": int,
    "max_rss_bytes": int, "submitted": str, "started": str, "ended": str, "wait_s": float,
    "program_s": float, "held_s": float, "node_hours": float, "node_list": str, "energy_j": int,
}  # fmt: skip
# What the accounting says of a job may still grow for so long after its end. So the copy of the
# table has one more column: when the accounting was asked, in seconds since the epoch.
SETTLED_S = 60.0
_ASKED_AT: dict[str, Kind] = {"asked_at": float}


@dataclass
class Usage:
    """Jobs that asked for the same: nodes, CPUs in all, time, memory per node.

    Times are in seconds; ``used_s`` and ``wait_s`` are of all jobs, ``held_s`` is the median of
    those that completed; None where nothing is known.
    """

    nodes: int
    cpus: int
    asked_s: int | None
    asked_mem_bytes: int | None
    jobs: int
    causes: dict[str, int]
    used_s: float
    used_s_max: float
    max_rss_bytes: int | None
    asked_node_hours: float | None
    node_hours: float
    wait_s: float | None
    held_s: float | None
    energy_j: int | None


@dataclass
class Collected:
    """Rows of the planned runs' jobs, and notes on those that are missing."""

    rows: list[Row]
    notes: list[str] = field(default_factory=list)


def job_ids(log_folder: Path, runs_folder: str, run_ids: Iterable[str]) -> dict[int, str]:
    """Job id -> run id of every job that was submitted for these runs.

    ``log_folder`` is the Slurm plugin's, ``runs_folder`` the wildcard of the rule ``run``. Of jobs
    that only a log tells of (an earlier version's), those that have started.
    """
    folder = log_folder / "rule_run"
    runs = {joined(runs_folder, run_id): run_id for run_id in run_ids}
    noted = {
        job.job_id: run_id
        for run_id in runs.values()
        for job in submitted_jobs(Path(runs_folder, run_id))
    }
    return noted | {
        int(log.stem): runs[run.name]
        for run in _files(folder)
        if run.name in runs
        for log in _files(run)
        if log.suffix == ".log" and log.stem.isdecimal()
    }


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def collect(run_ids: Sequence[str], runs: Path, logs: Path, out: Path) -> Collected:
    """Bring the table ``out`` up to date with the jobs of these runs; returns its rows.

    The accounting is asked only for jobs that were not over when it was last asked. Rows of
    other runs stay in a copy next to the table, for the next campaign that plans them. Nothing
    fails without an accounting: known rows stay, and a note says why there are no more.
    """
    # A copy under another name, because Snakemake deletes outputs before it makes them again.
    kept = out.with_name(f".{out.name}.previous")
    known = _previous(out, COLUMNS) | _previous(kept, COLUMNS | _ASKED_AT)
    planned = job_ids(logs, str(runs), run_ids)
    asked = sorted(job_id for job_id in planned if not _over(known.get(job_id)))
    notes = []
    try:
        found = query(asked)
    except UserError as error:
        found = {}
        notes.append(f"no accounting data for {counted(len(asked), 'job')}: {error}")
    else:
        if unknown := len(asked) - len(found):
            notes.append(f"{unknown} of {counted(len(asked), 'job')} not in Slurm's accounting")
    now = time.time()
    for job_id, job in found.items():
        run_id = planned[job_id]
        known[job_id] = {**_row(job, run_id, runs / run_id), "asked_at": now}
    rows = [known[job_id] for job_id in sorted(known)]
    wanted = set(run_ids)
    mine = [row for row in rows if row["run_id"] in wanted]
    if not mine and not notes:
        notes.append(f"no log of a job of this campaign in {logs}")
    _write(out, mine, COLUMNS)
    _write(kept, rows, COLUMNS | _ASKED_AT)
    return Collected(mine, notes)


def _previous(path: Path, columns: Mapping[str, Kind]) -> dict[int, Row]:
    """Rows of an earlier table by job, if there is one."""
    try:
        return {row["job_id"]: row for row in _read(path, columns)}
    except (OSError, UserError):
        return {}


def _over(row: Row | None) -> bool:
    """Whether nothing more is to come of a job whose row this is."""
    if row is None or row["state"] not in FINAL:
        return False
    asked_at, ended = row.get("asked_at"), epoch_s(row["ended"])
    return asked_at is None or ended is None or asked_at - ended > SETTLED_S


def _row(job: Job, run_id: str, folder: Path) -> Row:
    program_s, told = _told(folder, job)
    cause = cause_of(job)
    wait_s = _between(job.submitted, job.started)
    # Slurm's times are whole seconds, and the program's time lies within them.
    held_s = None if program_s is None else max(0.0, round(job.elapsed_s - program_s, 3))
    return {
        "job_id": job.job_id,
        "run_id": run_id,
        "state": job.state,
        "cause": cause[0] if cause else told,
        "exit_code": job.exit_code,
        "partition": job.partition,
        "nodes": job.nodes,
        "cpus": job.cpus,
        "asked_s": job.limit_s,
        "elapsed_s": job.elapsed_s,
        "asked_mem_bytes": job.asked_mem_bytes,
        "max_rss_bytes": job.max_rss_bytes,
        "submitted": job.submitted,
        "started": job.started,
        "ended": job.ended,
        "wait_s": wait_s,
        "program_s": program_s,
        "held_s": held_s,
        "node_hours": job.nodes * job.elapsed_s / 3600,
        "node_list": job.node_list,
        "energy_j": job.energy_j,
    }


def _told(folder: Path, job: Job) -> tuple[float | None, str]:
    """Seconds of the benchmark program and cause of failure, as the launcher in this job says."""
    record = read_json(folder / RECORD) or {}
    resources = record.get("resources")
    slurm = resources.get("slurm") if isinstance(resources, dict) else None
    if isinstance(slurm, dict) and written_in(job, slurm.get("job_id"), record.get("ended")):
        wall_s = record.get("wall_s")
        return (float(wall_s) if finite(wall_s) else None), ""
    earlier = (read_failure(path, PREVIOUS_FAILURE) for path in sorted(folder.glob("attempt-*")))
    for failure in (read_failure(folder), *earlier):
        if failure and written_in(job, failure.get("job_id"), failure.get("ended")):
            # Where the launcher was killed, it is unknown when its program began and ended.
            times = ("started", "ended") if BY_SLURM not in failure else ()
            program = [failure.get(key) for key in times]
            return _between(*program) if program else None, str(failure["cause"])
    return None, ""


def _between(start: Any, end: Any) -> float | None:
    first, last = epoch_s(start), epoch_s(end)
    return None if first is None or last is None else round(last - first, 3)


def _write(path: Path, rows: Sequence[Row], columns: Mapping[str, Kind]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue())


def read_jobs(path: Path) -> list[Row]:
    """Rows of jobs.csv, typed, with None for what is missing; none before it was written.

    Raises UserError.
    """
    return _read(path, COLUMNS) if path.exists() else []


def _read(path: Path, columns: Mapping[str, Kind]) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return [
                {name: kind(row[name]) if row[name] else None for name, kind in columns.items()}
                for row in csv.DictReader(file)
            ]
        except (ValueError, KeyError, csv.Error) as error:
            raise UserError(f"{path}: not a table of jobs ({error})") from None


def overhead_s(rows: Iterable[Row]) -> float | None:
    """Median seconds for which completed jobs held their nodes outside the benchmark program."""
    return _median(row["held_s"] for row in rows if row["state"] == "COMPLETED")


def shapes_used(rows: Iterable[Row]) -> list[Usage]:
    """Jobs that ran and are over, by what they asked for."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["started"] and row["state"] in FINAL:
            key = (row["nodes"], row["cpus"], row["asked_s"], row["asked_mem_bytes"])
            groups.setdefault(key, []).append(row)
    order = sorted(groups, key=lambda key: [value or 0 for value in key])
    return [_usage(groups[key], *key) for key in order]


def _usage(
    rows: Sequence[Row], nodes: int, cpus: int, asked_s: int | None, asked_mem: int | None
) -> Usage:
    failed = Counter(row["cause"] or row["state"] for row in rows if row["state"] != "COMPLETED")
    used = [row["elapsed_s"] or 0 for row in rows]
    return Usage(
        nodes=nodes,
        cpus=cpus,
        asked_s=asked_s,
        asked_mem_bytes=asked_mem,
        jobs=len(rows),
        causes=dict(failed),
        used_s=median(used),
        used_s_max=max(used),
        max_rss_bytes=max(_known(row["max_rss_bytes"] for row in rows), default=None),
        asked_node_hours=None if asked_s is None else len(rows) * nodes * asked_s / 3600,
        node_hours=sum(row["node_hours"] or 0 for row in rows),
        wait_s=_median(row["wait_s"] for row in rows),
        held_s=overhead_s(rows),
        energy_j=sum(energies) if (energies := _known(row["energy_j"] for row in rows)) else None,
    )


def _known(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _median(values: Iterable[Any]) -> float | None:
    known = _known(values)
    return median(known) if known else None
