"""Failed points on the page: their causes, last lines, logs, and stacks of runs that hung."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.formatting import duration, text_of
from scalesweep.core.record import read_failure
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.links import Links

MAX_LINE, MAX_LINES = 300, 40


def failed_points(
    results: ExperimentResults, runs: Path, links: Links, budget: dict[str, int]
) -> dict[str, Any]:
    """Failed points with cause, logs of their runs and last lines, while the budget lasts.

    Repeats of a point that failed in the same way form one row, with the last lines of the first.
    """
    failed = [run for run in results.entry["runs"] if run["status"] == Status.FAILED]
    shown = failed[: max(budget["failures"], 0)]
    budget["failures"] -= len(shown)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for run in shown:
        failure = read_failure(runs / run["run_id"]) or {}
        # A job may have ended before its launcher began an attempt.
        attempt = failure.get("attempt") or (0 if "job_id" in failure else 1)
        folder = runs / run["run_id"] / f"attempt-{attempt}"
        lines = failure.get("last_lines")
        where = results.describe(run["point"])
        row = rows.setdefault(
            (str(run["cause"]), where),
            {
                "cause": run["cause"] or Status.FAILED,
                "where": where,
                "detail": run["detail"],
                "lines": [
                    str(line)[:MAX_LINE] for line in (lines if isinstance(lines, list) else [])
                ][-MAX_LINES:],
                "stacks": _stacks(failure),
                "runs": [],
            },
        )
        logs = [
            (log.removesuffix(".log"), links.to(folder / log))
            for log in ("stdout.log", "stderr.log")
            if (folder / log).is_file()
        ]
        ids = {name: failure.get(name) for name in ("attempt", "job_id")}
        row["runs"].append({"run": run, **ids, "logs": logs})
    return {"rows": list(rows.values()), "left_out": len(failed) - len(shown)}


def _stacks(failure: Mapping[str, Any]) -> list[dict[str, str]]:
    """Where the ranks stood when the time was up, those that held the others up first."""
    groups = failure.get("stacks")
    return [
        {
            "ranks": str(group.get("ranks") or f"{group.get('count')} without numbers")[:MAX_LINE],
            "phase": text_of(group.get("phase")),
            "still": duration(group.get("still_s")),
            "where": str(group.get("where"))[: 2 * MAX_LINE],
        }
        for group in (groups[:MAX_LINES] if isinstance(groups, list) else [])
        if isinstance(group, dict)
    ]
