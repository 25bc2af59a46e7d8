"""The plan: every run of a campaign with its state, as text, CSV and JSON."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from scalesweep.campaign import Campaign, Experiment, Run
from scalesweep.record import digest_of, write_atomic
from scalesweep.store import DONE, FAILED, NEW, RunState

STATES_FOLDER = ".state"
PLAN_COLUMNS = (
    *("experiment", "scaling", "run_id", "benchmark", "site", "repeat"),
    *("status", "cause", "reason"),
)


def state_digest(campaign: Campaign, states: Mapping[str, RunState]) -> str:
    """Digest of all that tables and report are made from: the campaign and every run's files.

    Equal digests mean that nothing downstream has to be made again.
    """
    return digest_of(
        [campaign.digest, [[run_id, s.status, s.stamp] for run_id, s in sorted(states.items())]]
    )


def state_file(campaign: Campaign, digest: str) -> Path:
    """Stamp that exists while plan, tables and report are of the state ``digest``."""
    return campaign.results / STATES_FOLDER / digest


def estimate_seconds(
    experiment: Experiment, run: Run, measured: Mapping[tuple[str, ...], Sequence[float]]
) -> float | None:
    """Expected wall time of a pending run in seconds, or None if nothing is known.

    The median of finished runs, from the most alike there are: the same point, then the same
    experiment at that rank count; else the campaign's ``expected_minutes``.
    """
    for key in _estimate_keys(experiment, run):
        if key in measured:
            return median(measured[key])
    return None if experiment.expected_minutes is None else experiment.expected_minutes * 60


def _estimate_keys(experiment: Experiment, run: Run) -> list[tuple[str, ...]]:
    point = ("point", experiment.benchmark.run_id(run.point, -1))
    return [point, ("ranks", experiment.name, str(run.point["ranks"]))]


def _measured(
    campaign: Campaign, states: Mapping[str, RunState]
) -> dict[tuple[str, ...], list[float]]:
    result: dict[tuple[str, ...], list[float]] = {}
    for experiment in campaign.experiments:
        for run in experiment.runs:
            state = states[run.run_id]
            if state.status == DONE and state.wall_s and state.source == "measured":
                for key in _estimate_keys(experiment, run):
                    result.setdefault(key, []).append(state.wall_s)
    return result


def build_plan(campaign: Campaign, states: Mapping[str, RunState]) -> dict[str, Any]:
    """The plan as a JSON-ready dict (docs/architecture.md, plan.json)."""
    measured = _measured(campaign, states)
    seen: set[str] = set()
    experiments = []
    for experiment in campaign.experiments:
        runs = []
        estimates: list[float | None] = []
        core_seconds = 0.0
        for run in experiment.runs:
            state = states[run.run_id]
            reused = run.run_id in seen
            seen.add(run.run_id)
            runs.append(
                {
                    "run_id": run.run_id,
                    "repeat": run.repeat,
                    "point": run.point,
                    "status": state.status,
                    "cause": state.cause,
                    "detail": state.detail,
                    "reused": reused,
                }
            )
            if state.status != DONE and not reused:
                seconds = estimate_seconds(experiment, run, measured)
                estimates.append(seconds)
                nodes = campaign.site.nodes_for(run.point)
                core_seconds += (seconds or 0) * nodes * campaign.site.cores_per_node
        known = all(seconds is not None for seconds in estimates)
        wall = sum(seconds or 0 for seconds in estimates) / campaign.site.concurrent_runs
        first = experiment.points[0]
        experiments.append(
            {
                "name": experiment.name,
                "description": experiment.description,
                "benchmark": experiment.benchmark.name,
                "summary": experiment.benchmark.summary,
                "version": experiment.benchmark.version,
                "scaling": experiment.scaling,
                "axes": list(experiment.axes),
                "work": sorted(experiment.benchmark.work_parameters),
                "fixed": {k: v for k, v in first.items() if k not in experiment.axes},
                "parameters": {
                    name: {"unit": p.unit, "doc": p.doc, "default": p.default}
                    for name, p in experiment.benchmark.parameters.items()
                },
                "runs": runs,
                "excluded": [{"point": p, "reason": why} for p, why in experiment.excluded],
                "points": len(experiment.points),
                "estimate": {
                    "wall_s": wall if known else None,
                    "core_hours": core_seconds / 3600 if known else None,
                },
            }
        )
    return {
        "campaign": campaign.name,
        "description": campaign.description,
        "file": str(campaign.file),
        "site": campaign.site.name,
        "results": str(campaign.results),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiments": experiments,
    }


def write_plan(campaign: Campaign, plan: Mapping[str, Any], as_json: bool) -> None:
    """Write plan.csv, and with ``as_json`` plan.json, into the results folder."""
    campaign.results.mkdir(parents=True, exist_ok=True)
    write_atomic(campaign.results / "plan.csv", plan_csv(plan))
    if as_json:
        write_atomic(campaign.results / "plan.json", json.dumps(plan) + "\n")


def stamp_state(campaign: Campaign, states: Mapping[str, RunState]) -> None:
    """Leave the stamp of this state, and no other."""
    stamp = state_file(campaign, state_digest(campaign, states))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    for old in stamp.parent.iterdir():
        if old != stamp:
            old.unlink()
    stamp.touch()


def plan_csv(plan: Mapping[str, Any]) -> str:
    """plan.csv: one row per experiment and run, and per excluded point."""
    names: list[str] = []
    for experiment in plan["experiments"]:
        names += [name for name in experiment["parameters"] if name not in names]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*PLAN_COLUMNS, *names])
    for experiment in plan["experiments"]:
        head = [experiment["name"], experiment["scaling"]]
        tail = [experiment["benchmark"], plan["site"]]
        for run in experiment["runs"]:
            values = [_cell(run["point"].get(name)) for name in names]
            state = [run["repeat"], run["status"], run["cause"], run["detail"]]
            writer.writerow([*head, run["run_id"], *tail, *state, *values])
        for excluded in experiment["excluded"]:
            values = [_cell(excluded["point"].get(name)) for name in names]
            writer.writerow([*head, "", *tail, "", "excluded", "", excluded["reason"], *values])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value


def plan_text(plan: Mapping[str, Any], pending_limit: int = 20) -> str:
    """The plan for people: a line per experiment, then what was excluded or failed and why."""
    head = "experiment benchmark scaling points runs new done failed excluded ranks wall core-h"
    rows = [head.split()]
    unique: dict[str, str] = {}
    reused = 0
    for experiment in plan["experiments"]:
        statuses = [run["status"] for run in experiment["runs"]]
        unique.update({run["run_id"]: run["status"] for run in experiment["runs"]})
        reused += sum(run["reused"] for run in experiment["runs"])
        ranks = [run["point"]["ranks"] for run in experiment["runs"]]
        low, high = min(ranks), max(ranks)
        core_hours = experiment["estimate"]["core_hours"]
        rows.append(
            [
                experiment["name"], experiment["benchmark"], experiment["scaling"],
                str(experiment["points"]), str(len(statuses)),
                *(str(statuses.count(status)) for status in (NEW, DONE, FAILED)),
                str(len(experiment["excluded"])), str(low) if low == high else f"{low}-{high}",
                duration(experiment["estimate"]["wall_s"]),
                "unknown" if core_hours is None else f"{core_hours:.3g}",
            ]
        )  # fmt: skip
    counts = {status: list(unique.values()).count(status) for status in (NEW, DONE, FAILED)}
    lines = [
        f"campaign {plan['campaign']} on site {plan['site']}: {len(unique)} runs, "
        f"{counts[DONE]} done, {counts[FAILED]} failed, {counts[NEW]} new"
        + (f" ({reused} shared between experiments)" if reused else ""),
        "",
        *_aligned(rows),
        *_total(plan),
    ]
    lines += _reasons(plan, pending_limit)
    return "\n".join(lines) + "\n"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = 3  # names are read from the left, numbers from the right
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _total(plan: Mapping[str, Any]) -> list[str]:
    pending = [e for e in plan["experiments"] if any(_to_run(run) for run in e["runs"])]
    if not pending:
        return []
    known = [e["estimate"] for e in pending if e["estimate"]["wall_s"] is not None]
    if not known:
        return ["", "still to run: how long is not known before the first run has finished"]
    wall = duration(sum(estimate["wall_s"] for estimate in known))
    text = f"about {wall}, {sum(estimate['core_hours'] for estimate in known):.3g} core-hours"
    if len(known) < len(pending):
        text += f", and {len(pending) - len(known)} experiment(s) of which nothing is known yet"
    return ["", f"still to run: {text}"]


def _to_run(run: Mapping[str, Any]) -> bool:
    return run["status"] != DONE and not run["reused"]


def _reasons(plan: Mapping[str, Any], limit: int) -> list[str]:
    lines: list[str] = []
    for experiment in plan["experiments"]:
        reasons = [excluded["reason"] for excluded in experiment["excluded"]]
        for reason in dict.fromkeys(reasons):
            lines.append(f"excluded in {experiment['name']}: {reasons.count(reason)}: {reason}")
    failed = {
        run["run_id"]: f"{run['cause']}: {run['detail']}"
        for experiment in plan["experiments"]
        for run in experiment["runs"]
        if run["status"] == FAILED
    }
    lines += [f"failed: {run_id}: {why}" for run_id, why in list(failed.items())[:limit]]
    if len(failed) > limit:
        lines.append(f"failed: {len(failed) - limit} more, see plan.csv")
    return ["", *lines] if lines else []


def duration(seconds: float | None) -> str:
    """Seconds for people: 45 s, 3m 20s, 2h 05m; ``unknown`` for None."""
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
