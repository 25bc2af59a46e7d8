"""Small parts of the page: what failed or has no result, jobs, imports, fixed parameters."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scalesweep.core.formatting import counted, duration, listed, plain, text_of
from scalesweep.core.plan_format import Plan, parameter_of
from scalesweep.core.profilers import NOEXCHANGE
from scalesweep.core.record import read_failure
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.links import Links
from scalesweep.slurm.job_table import Row, overhead_s
from scalesweep.slurm.sacct import FINAL


def jobs_section(rows: Sequence[Row], link: str, incomplete: bool) -> dict[str, Any] | None:
    """What the template needs of the rows of jobs.csv, at ``link``; None if there are none, and
    the accounting has answered (not ``incomplete``)."""
    if not rows and not incomplete:
        return None
    ran = [row for row in rows if row["started"] and row["state"] in FINAL]
    asked = [row["asked_s"] and row["nodes"] * row["asked_s"] / 3600 for row in ran]
    waits = [row["wait_s"] for row in rows if row["wait_s"] is not None]
    return {
        "link": link,
        "incomplete": incomplete,
        "count": len(rows),
        "ends": _ends(rows),
        "partitions": sorted({row["partition"] for row in rows if row["partition"]}),
        "wait_s": median(waits) if waits else None,
        "wait_s_max": max(waits, default=None),
        "held_s": overhead_s(rows),
        "asked_node_hours": None if None in asked else sum(asked),
        "node_hours": sum(row["node_hours"] or 0 for row in ran),
    }


def _ends(rows: Sequence[Row]) -> str:
    """How the jobs ended, the completed ones first."""
    over = [row for row in rows if row["state"] in FINAL]
    failed = Counter(row["cause"] or row["state"] for row in over if row["state"] != "COMPLETED")
    completed = sum(row["state"] == "COMPLETED" for row in over)
    said = [f"{completed:,} completed", *(f"{n:,} {cause}" for cause, n in failed.most_common())]
    if len(over) < len(rows):
        said.append(f"{len(rows) - len(over):,} not finished yet")
    return listed(said, 12)


MAX_LINE, MAX_LINES, MAX_FAILURES, MAX_REASONS, MAX_PROFILES = 300, 40, 150, 30, 24


def failed_points(results: ExperimentResults, runs: Path, links: Links) -> dict[str, Any]:
    """Failed points with cause, logs of their runs and last lines: ``every`` one, and its first
    MAX_FAILURES as ``rows``.

    Repeats of a point that failed in the same way form one row, with the last lines of the first.
    """
    failed = [run for run in results.entry["runs"] if run["status"] == Status.FAILED]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for run in failed:
        failure = read_failure(runs / run["run_id"]) or {}
        # A job may have ended before its launcher began an attempt.
        attempt = failure.get("attempt") or (0 if "job_id" in failure else 1)
        folder = runs / run["run_id"] / f"attempt-{attempt}"
        where = results.describe(run["point"])
        row = {
            "cause": run["cause"] or Status.FAILED,
            "where": where,
            "detail": run["detail"],
            "lines": [str(line)[:MAX_LINE] for line in failure.get("last_lines") or ()][
                -MAX_LINES:
            ],
            "stacks": _stacks(failure.get("stacks") or ()),
            "runs": [],
        }
        logs = [path for path in (folder / "stdout.log", folder / "stderr.log") if path.is_file()]
        rows.setdefault((str(run["cause"]), where), row)["runs"].append({
            "run": run, "attempt": failure.get("attempt"), "job_id": failure.get("job_id"),
            "logs": [(path.stem, links.to(path)) for path in logs],
        })  # fmt: skip
    every = [*rows.values()]
    return {
        "every": every,
        "rows": every[:MAX_FAILURES],
        "left_out": max(len(every) - MAX_FAILURES, 0),
    }


def _stacks(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Where the ranks stood when the time was up, those that held the others up first."""
    return [
        {
            "ranks": str(group.get("ranks") or f"{group.get('count')} without numbers")[:MAX_LINE],
            "phase": text_of(group.get("phase")),
            "still": duration(group.get("still_s")),
            "where": str(group.get("where"))[: 2 * MAX_LINE],
        }
        for group in groups[:MAX_LINES]
    ]


def profiled_runs(results: ExperimentResults, runs: Path, links: Links) -> dict[str, Any]:
    """Profiled runs with links to their folders; of those without exchange only what is missing."""
    entries = [run for run in results.entry["profiles"]
               if run["kind"] != NOEXCHANGE or run["status"] != Status.DONE]  # fmt: skip
    rows = [
        {
            "kind": run["kind"], "where": results.describe(run["point"]), "detail": run["detail"],
            "state": run["cause"] or run["status"], "folder": links.to(runs / run["run_id"]),
        }
        for run in entries[:MAX_PROFILES]
    ]  # fmt: skip
    return {"rows": rows, "left_out": max(0, len(entries) - MAX_PROFILES)}


_STALE = "The records of these runs are of something else than the plan asks for now"
_UNSUPPORTED = (
    "This machine could not run them. `snakemake --config retry=unsupported` tries again."
)


def without_result(results: ExperimentResults) -> list[tuple[str, str, int, Sequence[str]]]:
    """Points that no table counts, or that count although they differ: heading, meaning, how many
    there are, and a line for each reason."""
    planned = results.entry["runs"]
    of = {
        status: [(str(run["detail"]), run["point"]) for run in planned if run["status"] == status]
        for status in (Status.UNSUPPORTED, Status.STALE, Status.UNFINISHED, Status.DONE)
    }
    excluded = [(str(entry["reason"]), entry["point"]) for entry in results.entry["excluded"]]
    accepted = [point for point in of[Status.DONE] if point[0]]
    lists = [
        ("Unsupported points", _UNSUPPORTED, of[Status.UNSUPPORTED]),
        ("Stale runs", f"{_STALE}; no table counts them.", of[Status.STALE]),
        ("Accepted runs", f"{_STALE}; `accept_stale` takes them.", accepted),
        ("Unfinished runs", "They were cut or aborted: no mean counts them.",
         of[Status.UNFINISHED]),
        ("Points excluded on purpose", "", excluded),
    ]  # fmt: skip
    made = ((title, about, _by_reason(results, points)) for title, about, points in lists if points)
    return [
        (title, about, sum(map(len, reasons.values())),
         [f"{reason}: {counted(len(of), 'point')} ({listed([*of])})"
          for reason, of in reasons.items()])
        for title, about, reasons in made
    ]  # fmt: skip


def _by_reason(
    results: ExperimentResults, points: Iterable[tuple[str, Mapping[str, Any]]]
) -> dict[str, dict[str, None]]:
    """Points in words by the reason why they have no result, each once."""
    reasons: dict[str, dict[str, None]] = {}
    for reason, point in points:
        reasons.setdefault(reason, {})[results.describe(point)] = None
    return reasons


def fixed_parameters(results: ExperimentResults) -> dict[str, list[dict[str, str]]]:
    """The constant parameters with their units: those that were ``set``, and the ``defaults``.

    What runs scale over, and what is computed, are among those that were set, whatever their
    value: the reader needs it to understand every number.
    """
    groups: dict[str, list[dict[str, str]]] = {"set": [], "defaults": []}
    constants = results.entry["fixed"]
    for name, value in constants.items():
        info = parameter_of(results.entry, name)
        needed = name in (results.scale, "ranks") or (info["workload"] and value is not None)
        unit = info["unit"] if info["unit"] not in (None, name) else ""
        text = "not set" if value is None else f"{text_of(value)} {unit}".rstrip()
        kind = "set" if needed or plain(value) != plain(info["default"]) else "defaults"
        groups[kind].append({"name": name, "value": text, "doc": info["doc"]})
    groups["set"] += [
        {"name": name, "value": f"= {text}", "doc": parameter_of(results.entry, name)["doc"]}
        for name, text in results.entry.get("derived_parameters", {}).items()
        if name not in constants
    ]
    return groups


def imported_section(plan: Plan, links: Links) -> dict[str, Any] | None:
    """Refusals by reason, the doubts, and the file that names all; None where there are none."""
    imported = plan.get("imported")
    if imported is None:
        return None
    refused = imported["refused"]
    return {
        "refused": refused[:MAX_REASONS],
        "left_out": max(len(refused) - MAX_REASONS, 0),
        "total": sum(refusal["count"] for refusal in refused),
        "doubts": imported["doubts"],
        "list": links.to(Path(imported["list"])),
    }
