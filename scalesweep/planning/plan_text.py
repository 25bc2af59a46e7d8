"""The plan as text: what is done, what will run, and what that costs."""

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path

from tabulate import tabulate

from scalesweep.analysis.repeat_rule import IDENTICAL, MORE, NEW, PRECISE, UNKNOWN, WAITING, WIDE
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import counted, duration, listed, number, scaled_unit
from scalesweep.core.plan_format import (
    Plan,
    PlanDataSet,
    PlanExperiment,
    PlanJobs,
    PlanProfile,
    PlanRun,
)
from scalesweep.core.profilers import NOEXCHANGE
from scalesweep.core.status import Status
from scalesweep.jobs.failure_groups import Failure, failure_lines
from scalesweep.planning.plan import budget_left, hours

# What is said of the points in a state, in the order of a line.
_WORDS = {
    NEW: "not begun",
    MORE: "to be repeated",
    PRECISE: "precise",
    WIDE: "stayed wide",
    WAITING: "waiting for a repeat that has failed or is pending",
    UNKNOWN: "with fewer than two values, which say nothing",
    IDENTICAL: "with identical repeats, which say nothing",
}


def plan_text(plan: Plan, pending_limit: int = 20) -> str:
    """The plan for people: a line per experiment, then what was excluded or failed and why."""
    experiments = plan["experiments"]
    unique = {run["run_id"]: run["status"] for each in experiments for run in each["runs"]}
    counts = Counter(unique.values())
    shown = [Status.NEW, Status.DONE, Status.FAILED, *[Status.STALE][: counts[Status.STALE]]]
    head = ["experiment", "benchmark", "scaling", "points", "runs", *shown, Status.EXCLUDED]
    rows = [[*head, "ranks", "wall"], *(_row(each, shown) for each in experiments)]
    more = (Status.UNSUPPORTED, Status.UNFINISHED, Status.STALE)
    reused = sum(run["reused"] for each in experiments for run in each["runs"])
    lines = [
        f"campaign {plan['campaign']} on site {plan['site']}: {len(unique)} runs, "
        f"{counts[Status.DONE]} done, {counts[Status.FAILED]} failed, {counts[Status.NEW]} new"
        + "".join(f", {counts[status]} {status}" for status in more if counts[status])
        + (f" ({reused} shared between experiments)" if reused else ""),
        _order(plan),
        "",
        *aligned(rows, left={0, 1, 2}),
        *filter(None, map(_oversubscribed, experiments)),
        *filter(None, map(_repeats_line, experiments)),
        *filter(None, map(_stop_line, experiments)),
        *_memory(plan),
        *_data_set_lines(plan.get("data_sets", [])),
        *_profiled(plan),
        *_total(plan),
        *_jobs(plan["jobs"]),
        *_reasons(plan, pending_limit),
    ]
    return "\n".join(lines) + "\n"


def _row(experiment: PlanExperiment, shown: Sequence[str]) -> list[str]:
    """An experiment in the table of the plan, with its runs in the statuses that are ``shown``."""
    statuses = Counter(run["status"] for run in experiment["runs"])
    ranks = {run["point"]["ranks"] for run in experiment["runs"]}
    return [
        experiment["name"], experiment["benchmark"], experiment["scaling"],
        str(experiment["points"]), str(statuses.total()), *(str(statuses[it]) for it in shown),
        str(len(experiment["excluded"])), "-".join(map(str, sorted({min(ranks), max(ranks)}))),
        duration(experiment["wall_s"], missing="unknown"),
    ]  # fmt: skip


def _order(plan: Plan) -> str:
    """In what order the runs are started; every run's place is in plan.csv."""
    seed = plan["order"]["seed"]
    text = "as written" if seed is None else f"repeats interleaved at random, seed {seed}"
    control = sum(len(e["runs"]) for e in plan["experiments"] if e["control"])
    return f"order: {text}" + (f"; the control point {control} times" if control else "")


def aligned(rows: Sequence[Sequence[str]], left: Container[int]) -> list[str]:
    """Rows as lines; the columns in ``left`` are words, the others numbers read from the right."""
    sides = ["left" if place in left else "right" for place in range(len(rows[0]))]
    text = tabulate(rows, tablefmt="plain", colalign=sides, disable_numparse=True)
    return str(text).splitlines()


def _repeats_line(experiment: PlanExperiment) -> str:
    """What is known of an experiment's repeats, in one line; empty where their number is fixed."""
    if (repeats := experiment.get("repeats")) is None:
        return ""
    parts = []
    for state, words in _WORDS.items():
        if points := [point for point in repeats["points"] if point["state"] == state]:
            parts.append(f"{counted(len(points), 'point')} {words}")
            left = sum(point["expected"] - point["done"] for point in points)
            if state in (NEW, MORE):
                about = "about" if state == MORE else "at least"
                parts[-1] += f", {about} {counted(left, 'run')}"
    metric = f" of {repeats['metric']}" if repeats["metric"] else ""
    rule = f"{repeats['least']} to {repeats['most']}, until ±{100 * repeats['until']:.3g} %{metric}"
    return f"repeats in {experiment['name']}: {rule}: {'; '.join(parts)}"


def _stop_line(experiment: PlanExperiment) -> str:
    """When larger counts of an experiment are left out, while some are still to be measured."""
    counts = {run["point"][experiment["scale"]] for run in experiment["runs"] if run["to_run"]}
    if "stop" not in experiment or not counts:
        return ""
    return (
        f"counts of {experiment['name']} are measured from the smallest, and larger ones of a "
        f"series left out once {experiment['stop']}: up to {experiment['scale']} {max(counts):,} "
        "so far"
    )


def _memory(plan: Plan) -> list[str]:
    """Which points will not fit the memory of their ranks, a line per experiment."""
    asked = [experiment for experiment in plan["experiments"] if "memory" in experiment]
    if not asked:
        return []
    from scalesweep.planning.memory_text import memory_line  # it brings NumPy, for few campaigns

    tables = Path(plan["results"]) / "tables"
    return [line for each in asked if (line := memory_line(each, tables / each["name"]))]


def _data_set_lines(sets: Sequence[PlanDataSet]) -> list[str]:
    """A line for each data set that takes more than a node."""
    lines = []
    for each in sets:
        if each["nodes"] > 1:
            factor, unit = scaled_unit("bytes", each["bytes"])
            lines.append(
                f"data set of {listed(each['experiments'], 3)}: files of up to "
                f"{number(each['bytes'] * factor)} {unit}, which take the memory of at least "
                f"{each['nodes']:,} nodes"
            )
    return lines


def _profiled(plan: Plan) -> list[str]:
    """The profiled runs, which are apart from the measured ones, a line per kind."""
    runs = {run["run_id"]: run for each in plan["experiments"] for run in each["profiles"]}
    kinds: dict[str, Counter[str]] = {}
    for run in runs.values():
        kinds.setdefault(run["kind"], Counter())[run["status"]] += 1
    return [
        f"{'without exchange' if kind == NOEXCHANGE else f'profiled with {kind}'}: "
        f"{counted(of.total(), 'run')} more, {of[Status.DONE]} done, {of[Status.FAILED]} failed, "
        f"{of[Status.NEW]} new"
        for kind, of in kinds.items()
    ]


def _total(plan: Plan) -> list[str]:
    pending = [
        e
        for e in plan["experiments"]
        if any(run["to_run"] and not run["reused"] for run in e["runs"])
        or any(run["to_run"] for run in e["profiles"])
    ]
    if not pending:
        return []
    known = [e["wall_s"] for e in pending if e["wall_s"] is not None]
    if not known:
        names = listed([e["name"] for e in pending], 3)
        return ["", f"remaining time: unknown until a run of {names} has finished"]
    # With Slurm the wall time is that without waiting.
    about = "about" if plan["jobs"] is None else "at least"
    text = f"{about} {duration(sum(known))}"
    if len(known) < len(pending):
        text += f", plus {len(pending) - len(known)} experiment(s) without an estimate yet"
    return ["", f"remaining time: {text}"]


def _jobs(jobs: PlanJobs | None) -> list[str]:
    """What the pending runs ask of Slurm, a line per shape, and what they cost."""
    if jobs is None:
        return []
    lines: list[str] = []
    shapes = jobs["shapes"]
    if shapes:
        head = "jobs,expected each,known from,limit each,node-h,at most,request"
        rows = [head.split(",")]
        rows += [
            [
                str(shape["jobs"]), duration(shape["expected_s"], missing="unknown"),
                shape["basis"] or "-", duration(shape["minutes"] * 60),
                hours(shape["node_hours_expected"]), hours(shape["node_hours_limit"]),
                f"sbatch {shape['sbatch']}",
            ]
            for shape in shapes
        ]  # fmt: skip
        lines += ["", *aligned(rows, left={2, 6}), ""]
        lines.append(
            f"{counted(sum(shape['jobs'] for shape in shapes), 'job')}: "
            f"{hours(jobs['node_hours_expected'])} node-hours expected, "
            f"{hours(jobs['node_hours_limit'])} at most, retries aside"
        )
    spent = f"{hours(jobs['spent_node_hours'])} node-hours spent{_budget(jobs)}"
    return [*lines, spent] if shapes else ["", *lines, spent]


def _budget(jobs: PlanJobs) -> str:
    """What is left of a budget, and what of that the jobs of the plan may use."""
    budget, after = jobs["budget_node_hours"], budget_left(jobs)
    if budget is None:
        return ""
    text = f" of a budget of {hours(budget)}: {hours(budget - jobs['spent_node_hours'])} left"
    if jobs["shapes"]:
        text += f"; these jobs take up to {hours(jobs['node_hours_limit'])}"
        text += f", {hours(-after)} too many" if after < 0 else ""
    return text


def _reasons(plan: Plan, limit: int) -> list[str]:
    """What is excluded, and the runs without a result, each with its reason."""
    lines: list[str] = []
    failures: dict[str, list[Failure]] = {}
    for experiment in plan["experiments"]:
        reasons = Counter(excluded["reason"] for excluded in experiment["excluded"])
        reasons.update(dict.fromkeys(experiment.get("idle", ()), 0))
        where = f"excluded in {experiment['name']}"
        lines += [f"{where}: {n or 'no point'}: {why}" for why, n in reasons.items()]
        axes = (*experiment["axes"], *experiment["linked"])
        runs: list[PlanRun | PlanProfile] = [*experiment["runs"], *experiment["profiles"]]
        for run in runs:
            varying = {axis: run["point"][axis] for axis in axes if axis in run["point"]}
            known = run["run_id"], run["cause"], run["detail"], experiment["name"], varying
            failures.setdefault(run["status"], []).append(Failure(*known))
    for status in (Status.UNSUPPORTED, Status.UNFINISHED, Status.STALE, Status.FAILED):
        lines += [f"{status}: {it}" for it in failure_lines(failures.get(status, []), limit)]
    return ["", *lines] if lines else []


def _oversubscribed(experiment: PlanExperiment) -> str:
    """The points of an experiment with more threads than cores on a node, in one line."""
    runs = [run for run in experiment["runs"] if (run["threads_per_core"] or 0) > 1]
    if not runs:
        return ""
    most = max(run["threads_per_core"] or 0 for run in runs)
    points = len({canonical_json(run["point"]) for run in runs})
    ranks = [f"{count:,}" for count in sorted({run["point"]["ranks"] for run in runs})]
    return (
        f"oversubscribed in {experiment['name']}: {counted(points, 'point')} (ranks "
        f"{listed(ranks)}): up to {most:.3g} threads for each core of a node"
    )
