"""Small parts of the page: what failed or has no result, jobs, imports, fixed parameters."""

import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scalesweep.core.formatting import duration, finite, listed, number, plain, text_of
from scalesweep.core.joined_experiments import constants_of, differing_settings
from scalesweep.core.plan_format import Plan, PlanRun, parameter_of
from scalesweep.core.record import FAILURE, read_failure
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.links import Links
from scalesweep.slurm.job_table import Row, overhead_s, shapes_used
from scalesweep.slurm.sacct import FINAL, JobState

MAX_SHAPES = 100


def jobs_section(rows: Sequence[Row], link: str, incomplete: bool) -> dict[str, Any] | None:
    """What the template needs of the rows of jobs.csv, at ``link``; None if there are none, and
    the accounting has answered (not ``incomplete``)."""
    if not rows and not incomplete:
        return None
    shapes = shapes_used(rows)
    waits = [row["wait_s"] for row in rows if row["wait_s"] is not None]
    known = [shape.asked_node_hours for shape in shapes if shape.asked_node_hours is not None]
    return {
        "link": link,
        "incomplete": incomplete,
        "count": len(rows),
        "ends": _ends(rows),
        "partitions": sorted({row["partition"] for row in rows if row["partition"]}),
        "wait_s": median(waits) if waits else None,
        "wait_s_max": max(waits, default=None),
        "held_s": overhead_s(rows),
        "shapes": shapes[:MAX_SHAPES],
        "left_out": len(shapes[MAX_SHAPES:]),
        "jobs": sum(shape.jobs for shape in shapes),
        "asked_node_hours": sum(known) if len(known) == len(shapes) else None,
        "node_hours": sum(shape.node_hours for shape in shapes),
    }


def _ends(rows: Sequence[Row]) -> str:
    """How the jobs ended, the completed ones first."""
    over = [row for row in rows if row["state"] in FINAL]
    failed = Counter(
        row["cause"] or row["state"] for row in over if row["state"] != JobState.COMPLETED
    )
    completed = sum(row["state"] == JobState.COMPLETED for row in over)
    said = [f"{completed:,} completed", *(f"{n:,} {cause}" for cause, n in failed.most_common())]
    if len(over) < len(rows):
        said.append(f"{len(rows) - len(over):,} not finished yet")
    return listed(said, 12)


def _gib(size: Any) -> str:
    """Bytes as a number of GiB."""
    return number(size / 2**30) if finite(size) else "–"


def _causes(causes: Mapping[str, int]) -> str:
    """Failed jobs by cause: ``1 TIMEOUT, 2 NODE_FAIL``; a dash if there are none."""
    return ", ".join(f"{count:,} {cause}" for cause, count in causes.items()) or "–"


FILTERS = {"gib": _gib, "causes": _causes}


MAX_LINE, MAX_LINES = 300, 40


def failed_points(
    results: ExperimentResults, runs: Path, links: Links, budget: dict[str, int]
) -> dict[str, Any]:
    """Failed points with cause, logs of their runs and last lines, while the budget lasts.

    Repeats of a point that failed in the same way form one row, with the last lines of the first.
    Those of other programs left none (``failed_elsewhere``).
    """
    failed = [run for run in results.entry["runs"] if _failed_here(run, runs)]
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


MAX_REASON_POINTS = 4


def excluded_points(results: ExperimentResults) -> list[dict[str, Any]]:
    """What the campaign leaves out."""
    excluded = results.entry["excluded"]
    return _by_reason(results, ((str(entry["reason"]), entry["point"]) for entry in excluded))


def points_without_result(results: ExperimentResults, status: str) -> list[dict[str, Any]]:
    """The points of runs that have no result and are not to be run."""
    runs = (run for run in results.entry["runs"] if run["status"] == status)
    return _by_reason(results, ((str(run["detail"]), run["point"]) for run in runs))


def failed_elsewhere(results: ExperimentResults, runs: Path) -> list[dict[str, Any]]:
    """The points of runs that failed where they were measured, as their source says."""
    failed = (
        run
        for run in results.entry["runs"]
        if run["status"] == Status.FAILED and not _failed_here(run, runs)
    )
    reasons = ((f"{run['cause']} ({run['detail']})", run["point"]) for run in failed)
    return _by_reason(results, reasons)


def _failed_here(run: PlanRun, runs: Path) -> bool:
    """Whether a run failed in this campaign: all others have nothing but an imported record."""
    if run["status"] != Status.FAILED:
        return False
    return run["to_run"] or (runs / run["run_id"] / FAILURE).is_file()


def accepted_points(results: ExperimentResults) -> list[dict[str, Any]]:
    """The points of runs that count although they differ from the plan, by how they differ."""
    runs = (run for run in results.entry["runs"] if run["status"] == Status.DONE and run["detail"])
    return _by_reason(results, ((str(run["detail"]), run["point"]) for run in runs))


def _by_reason(
    results: ExperimentResults, points: Iterable[tuple[str, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Points in words by the reason why they have no result, each once."""
    reasons: dict[str, dict[str, None]] = {}
    for reason, point in points:
        reasons.setdefault(reason, {})[results.describe(point)] = None
    return [
        {"reason": reason, "count": len(named), "points": listed([*named], MAX_REASON_POINTS)}
        for reason, named in reasons.items()
    ]


def fixed_parameters(results: ExperimentResults) -> dict[str, Any]:
    """The constant parameters with their units: those that were ``set``, and the ``defaults``; of
    several benchmarks those of each one too (``of``).

    What runs scale over is among those that were set, whatever its value: the reader needs it to
    understand every number. So is what is computed (``workload``) as far as it is known, and what
    benchmarks share and have other values of.
    """
    constants = results.entry["fixed"]
    computed = {
        name
        for name, value in constants.items()
        if parameter_of(results.entry, name)["workload"] and value is not None
    }
    shown = {results.scale, "ranks"} | computed
    differing = differing_settings(results.entry)
    of = [
        {"benchmark": benchmark, **_constants(results, values, differing)}
        for benchmark, values in constants_of(results.entry).items()
    ]
    groups = _constants(results, constants, shown)
    groups["set"] += [
        {"name": name, "value": f"= {text}", "doc": parameter_of(results.entry, name)["doc"]}
        for name, text in results.entry.get("derived_parameters", {}).items()
        if name not in constants
    ]
    return {**groups, "of": of}


def _constants(
    results: ExperimentResults, constants: Mapping[str, Any], shown: Container[str]
) -> dict[str, list[dict[str, str]]]:
    """Constant parameters; those of ``shown`` are among the ``set`` ones, whatever their value."""
    groups: dict[str, list[dict[str, str]]] = {"set": [], "defaults": []}
    for name, value in sorted(
        constants.items(),
        key=lambda item: (item[0] != results.scale, item[0] != "ranks"),
    ):
        info = parameter_of(results.entry, name)
        unit = info["unit"] or ""
        is_set = name in shown or plain(value) != plain(info["default"])
        text = _value(value, unit if unit != name else "")
        groups["set" if is_set else "defaults"].append(
            {"name": name, "value": text, "doc": info["doc"]}
        )
    return groups


def _value(value: Any, unit: str) -> str:
    if value is None:
        return "not set"
    return f"{text_of(value)} {unit}".rstrip()


MAX_REASONS = 30


def imported_section(plan: Plan, links: Links) -> dict[str, Any] | None:
    """Refusals by reason, the doubts, and the file that names all; None where there are none."""
    imported = plan.get("imported")
    if imported is None:
        return None
    refused = imported["refused"]
    texts = [*imported["doubts"], *(place for refusal in refused for place in refusal["places"])]
    folder = _common_folder(texts)
    return {
        "refused": [
            {
                "reason": refusal["reason"],
                "count": refusal["count"],
                "places": ", ".join(place.replace(folder, "") for place in refusal["places"])
                + _more(refusal["count"] - len(refusal["places"])),
            }
            for refusal in refused[:MAX_REASONS]
        ],
        "left_out": max(len(refused) - MAX_REASONS, 0),
        "total": sum(refusal["count"] for refusal in refused),
        "doubts": [doubt.replace(folder, "") for doubt in imported["doubts"]],
        "list": links.to(Path(imported["list"])),
    }


_PATH = re.compile(r"(?<![^\s(])/[^\s:,;()]+/")


def _common_folder(texts: Sequence[str]) -> str:
    """The folder that all paths in these texts are in, with a slash at its end: readers of a page
    know their source. A path that cannot be shortened stands for itself."""
    folders = {path for text in texts for path in _PATH.findall(text)}
    common = os.path.commonpath(folders).rstrip("/") if folders else ""
    return f"{common}/" if common else "\0"


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""
