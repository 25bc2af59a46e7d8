"""Rules of no aspect: the main metric, repeats, load, coverage."""

from collections import Counter

from scalesweep.analysis.repeat_rule import PRECISE, WIDE
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import finite, listed
from scalesweep.core.joined_experiments import benchmarks_of
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import ATTENTION, NOTE, Finding, Rule, counts_of
from scalesweep.tables.machine_load import DISTURBED, LEFT_OUT, OTHERS

_NAMED = 20
_OF_POINTS: dict[str, object] = {"table": "points", "key": {}}
_FAR = "far from the others of its point, and kept in the means"


def other_main_metric(results: ExperimentResults) -> list[Finding]:
    """That no run has the main metric, and what the experiment is about instead: a program whose
    ranks have several roles has a metric of each, and none of all."""
    wanted, main = results.entry["main_metric"], results.main
    if not wanted or main is None or main.metric == wanted:
        return []
    alike = [name for name in results.measures if name.startswith(f"{wanted}_")]
    near = [f"`main_metric: {name}`" for name in alike or results.measures]
    several = len(benchmarks_of(results.entry)) > 1
    return [
        Finding(
            results.name, "main metric", ATTENTION, subject=wanted,
            words={"shown": main.metric, "near": listed(near, 4).replace(" and ", " or ")},
            reason="benchmarks mean different things by it" if several else "",
        )
    ]  # fmt: skip


def warnings(results: ExperimentResults) -> list[Finding]:
    """Runs to look at, with why: steps that drift after the warm-up, a metric of another meaning,
    ranks that disagree on a total, and outliers among the repeats of a point, which stay in the
    means."""
    rows = [row for row in _runs(results) if row.get("warnings") or row.get("outlier")]
    texts = Counter(str(row.get("warnings") or _FAR) for row in rows).most_common()
    reason = "; ".join(text for text, _ in texts[:3])
    return _of_runs(results, "warnings", rows, reason)


def disturbed_runs(results: ExperimentResults) -> list[Row]:
    """The runs during which other processes took more than ``DISTURBED`` of the cores."""
    return [row for row in _runs(results) if finite(row.get(OTHERS)) and row[OTHERS] > DISTURBED]


def other_load(results: ExperimentResults) -> list[Finding]:
    """In how many runs other processes took part of the cores; nothing if in none."""
    rows = sorted(disturbed_runs(results), key=lambda row: -float(row[OTHERS]))
    out = sum(bool(row.get(LEFT_OUT)) for row in rows)
    most = rows[0][OTHERS] if rows else None
    said = f"estimates leave out {out:,}" if out else "estimates have all: too few others remain"
    return _of_runs(results, "other load", rows, said, most=most)


def _runs(results: ExperimentResults) -> list[Row]:
    names = ["run_id", "source", "outlier", "warnings", OTHERS, LEFT_OUT, *results.axes]
    return results.rows("runs", names)


def _of_runs(
    results: ExperimentResults, rule: str, rows: list[Row], reason: str, **numbers: float | None
) -> list[Finding]:
    """What needs attention of these runs; nothing if there are none."""
    ids = [str(row["run_id"]) for row in rows]
    made = Finding(
        results.name, rule, ATTENTION, subject=listed(ids, 3), reason=reason,
        numbers=counts_of(runs=len(rows), of=len(_runs(results)), **numbers),
        evidence={"table": "runs", "key": {"run_id": ids[:_NAMED]}},
    )  # fmt: skip
    return [made] if rows else []


def oversubscribed(results: ExperimentResults) -> list[Finding]:
    """At how many points a node has more threads than cores, and how many at most."""
    loads = {
        results.key(run["point"]): (load, run["point"])
        for run in results.entry["runs"]
        if (load := run.get("threads_per_core")) is not None and load > 1
    }
    if not loads:
        return []
    most, point = max(loads.values(), key=lambda pair: pair[0])
    return [
        Finding(
            results.name, "oversubscribed", ATTENTION, subject=results.describe(point),
            numbers=counts_of(points=len(loads), threads=most), evidence=_OF_POINTS,
        )
    ]  # fmt: skip


def until_precise(results: ExperimentResults) -> list[Finding]:
    """How many points stayed wide where repeats are added until points are precise."""
    if not (repeats := results.entry.get("repeats")):
        return []
    points = repeats["points"]
    wide = [point for point in points if point["state"] == WIDE]
    worst = max(wide, key=lambda point: point["width"] or 0, default=None)
    numbers = counts_of(
        points=len(points), until=repeats["until"], width=worst and worst["width"],
        precise=sum(point["state"] == PRECISE for point in points),
    )  # fmt: skip
    state, subject = (ATTENTION, results.describe(worst["point"])) if worst else (NOTE, "")
    return [Finding(results.name, "repeats", state, "", _OF_POINTS, numbers, subject=subject)]


def coverage(results: ExperimentResults) -> list[Finding]:
    """How much of the plan is there, and why the rest is not."""
    runs = results.entry["runs"]
    counts = Counter(run["status"] for run in runs)
    counts["refused"] = results.entry.get("refused", 0)
    failed = Counter(
        str(run.get("cause") or Cause.NOT_STATED) for run in runs if run["status"] == Status.FAILED
    )
    lacking = {
        "pending" if status == Status.NEW else str(status): count
        for status, count in counts.items() if count and status != Status.DONE
    }  # fmt: skip
    accepted = any(run["status"] == Status.DONE and run.get("detail") for run in runs)
    causes = listed([f"{cause} {count:,}" for cause, count in failed.most_common()], 4)
    return [
        Finding(
            results.name, "coverage", ATTENTION if {*lacking} - {Status.UNSUPPORTED} else NOTE,
            words={"lacking": "".join(f", {count:,} {name}" for name, count in lacking.items())},
            numbers=counts_of(done=counts[Status.DONE], planned=len(runs), **lacking, **failed),
            reason=causes, flags=("accepted although stale",) if accepted else (),
            evidence={"table": "runs", "key": {}},
            next=_START if any(run["to_run"] for run in runs) else "",
        )
    ]  # fmt: skip


_START = "`scalesweep run` starts what is pending or has failed"
RULES = (
    Rule(
        "main metric", other_main_metric,
        says={ATTENTION: "No run has the main metric {subject}; shown instead is {shown}."},
        next={ATTENTION: "write {near} in the campaign"},
    ),
    Rule(
        "repeats", until_precise,
        says={
            NOTE: "Points within ±{until:%} after their repeats: {precise} of {points}.",
            ATTENTION: "Points within ±{until:%}: {precise} of {points}; at {subject} it stays "
            "±{width:%}.",
        },
        next={ATTENTION: "raise `max` of `repeats`, or find what makes runs differ"},
    ),
    Rule(
        "other load", other_load,
        says={ATTENTION: "Other processes disturbed {runs} of {of} runs, taking up to {most:%} of "
              "the cores."},
        next={ATTENTION: "`scalesweep run --again disturbed` measures them again"},
    ),
    Rule(
        "warnings", warnings, says={ATTENTION: "Runs to look at: {runs} of {of}."},
        next={ATTENTION: "read the warnings of these runs, in the table of runs"},
    ),
    Rule(
        "oversubscribed", oversubscribed,
        says={ATTENTION: "Points with more threads than cores: {points}; threads per core at "
              "{subject}: {threads}."},
        next={ATTENTION: "start fewer ranks or threads on a node, or more nodes"},
    ),
    Rule(
        "coverage", coverage,
        says={
            NOTE: "Runs done: {done} of {planned}.",
            ATTENTION: "Runs done: {done} of {planned}{lacking}.",
        },
    ),
)  # fmt: skip
