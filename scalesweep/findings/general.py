"""Findings on configurations, epochs, repeats and coverage."""

from collections.abc import Sequence

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import (
    PHASES,
    counted,
    finite,
    listed,
    number,
    percent,
    with_interval,
)
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.experiment.training_curves import learns
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    WARNING,
    Finding,
    columns_of,
    evidence_of,
    marked,
)

# A share of the epoch spent waiting below this is not worth a sentence.
NOTABLE_WAIT = 0.1
MAX_WORKLOADS = 8


def _one_source(study: ExperimentResults) -> list[Row]:
    """Points of one source, measured where there are any: sources do not compete."""
    chosen = "measured" if "measured" in study.sources else next(iter(study.sources), None)
    return [row for row in study.points if row.get("source") == chosen]


def best_configuration(study: ExperimentResults) -> list[Finding]:
    """Which point has the best total throughput, claimed only if clear of every other one.

    Points that compute different things (models, sample shapes) do not compete.
    """
    main = study.main
    if main is None:
        return []
    phase = main.steady_phase
    workload = [n for n in study.leaders if parameter_of(study.entry, n).get("workload")]
    groups: dict[Key, list[Row]] = {}
    rows = _one_source(study)
    # What reads nothing is no rival of what does.
    real = [row for row in rows if learns(study, row)]
    # The mean of the runs that ended well is no rival where others did not end.
    real = [row for row in real if not study.unfinished(row)]
    for row in real or rows:
        if main.value(row, "mean", phase) is not None:
            groups.setdefault(study.key(row, workload), []).append(row)
    competing = [rows for rows in groups.values() if len(rows) > 1]
    found = [_best_of(study, main, phase, rows, workload) for rows in competing[:MAX_WORKLOADS]]
    if len(competing) > MAX_WORKLOADS:
        text = f"The tables have {len(competing) - MAX_WORKLOADS:,} more best points."
        found.append(Finding(study.name, "best", NOTE, text, {"experiment": study.name}))
    return found


def _best_of(
    study: ExperimentResults, main: Measure, phase: str, rows: list[Row], workload: Sequence[str]
) -> Finding:
    """The best of some points that compute the same."""

    def mean(row: Row) -> float:
        return (main.value(row, "mean", phase) or 0.0) * (1 if main.higher else -1)

    def span(row: Row) -> tuple[float, float] | None:
        low, high = main.value(row, "low", phase), main.value(row, "high", phase)
        if low is None or high is None:
            return None
        return (low, high) if main.higher else (-high, -low)

    rows.sort(key=mean, reverse=True)
    best, others = rows[0], rows[1:]
    value = with_interval(
        main.value(best, "mean", phase),
        main.value(best, "low", phase),
        main.value(best, "high", phase),
        main.unit,
    )
    word = "Highest" if main.higher else "Lowest"
    rest = [name for name in study.leaders if name not in workload]

    def described(row: Row) -> str:
        return study.describe(row, rest)

    where = described(best)
    quantity = f"{main.label.lower()} ({PHASES[phase]})"
    if workload:
        quantity = f"{quantity} of {study.describe(best, workload)}"
    evidence = evidence_of(study, "points", best, columns_of(main, phase))
    evidence["runner_up"] = evidence_of(study, "points", others[0], columns_of(main, phase))
    mine = span(best)
    if mine is None:
        why = main.without_interval(best, phase)
        text = f"{word} measured {quantity}: {value} at {where}; {why}, not confirmed."
        return Finding(study.name, "best", OPEN, marked(best["source"], text), evidence)
    rivals = [row for row in others if (theirs := span(row)) is not None and theirs[1] >= mine[0]]
    unknown = [row for row in others if span(row) is None]
    if rivals:
        text = (
            f"{word} {quantity} measured at {where}: {value}; indistinguishable from "
            f"{counted(len(rivals), 'other')} whose 95 % intervals overlap it "
            f"({listed([described(row) for row in rivals], 3)})."
        )
        return Finding(study.name, "best", OPEN, marked(best["source"], text), evidence)
    if unknown:
        lacking: dict[str, list[Row]] = {}
        for row in unknown:
            lacking.setdefault(main.without_interval(row, phase), []).append(row)
        against = [
            f"{counted(len(some), 'point')} with {why} "
            f"({listed([described(row) for row in some], 3)})"
            for why, some in lacking.items()
        ]
        text = (
            f"{word} {quantity} measured at {where}: {value}; not confirmed against "
            f"{' and '.join(against)}."
        )
        return Finding(study.name, "best", OPEN, marked(best["source"], text), evidence)
    all_others = f"all {len(others):,} others" if len(others) > 1 else "the only other"
    second = with_interval(
        main.value(others[0], "mean", phase),
        main.value(others[0], "low", phase),
        main.value(others[0], "high", phase),
    )
    text = (
        f"Best {quantity}: {value} at {where}, clear of {all_others}; "
        f"next is {described(others[0])} with {second}."
    )
    return Finding(study.name, "best", CONFIRMED, marked(best["source"], text), evidence)


def cache_effect(study: ExperimentResults) -> list[Finding]:
    """How later epochs compare with the first one, where their intervals are clear."""
    main = study.main
    if main is None or not {"init", "later"} <= set(main.phases):
        return []
    faster, slower, compared = [], [], 0
    for row in _one_source(study):
        init = _positive(main, row, "init")
        later = _positive(main, row, "later")
        if init is None or later is None:
            continue
        compared += 1
        # Bounds of the ratio from the bounds of both: wider than need be, never too narrow.
        ratio = later[0] / init[0]
        low, high = later[1] / init[2], later[2] / init[1]
        if low > 1:
            faster.append((ratio, low, high, row))
        elif high < 1:
            slower.append((ratio, low, high, row))
    found = []
    for group, word in ((faster, "higher"), (slower, "lower")):
        if not group:
            continue
        group.sort(key=lambda item: item[0])
        (r0, low0, high0, row), (r1, low1, high1, _) = group[0], group[-1]
        span = f"{with_interval(r0, low0, high0)} times"
        if len(group) > 1:
            span = f"from {span} ({study.describe(row)}) to {with_interval(r1, low1, high1)} times"
            span += f" ({study.describe(group[-1][3])})"
        text = (
            f"{main.label} is {word} in the later epochs than in the first epoch at "
            f"{len(group)} of {counted(compared, 'point')} with intervals: {span}."
        )
        columns = [*columns_of(main, "init"), *columns_of(main, "later")]
        evidence = evidence_of(study, "points", row, columns)
        text = marked(row["source"], text)
        found.append(Finding(study.name, "cache", CONFIRMED, text, evidence))
    return found


def _positive(main: Measure, row: Row, phase: str) -> tuple[float, float, float] | None:
    """Mean, low and high if all three are there and positive."""
    mean, low, high = (main.value(row, stat, phase) for stat in ("mean", "low", "high"))
    if mean is None or low is None or high is None or min(mean, low, high) <= 0:
        return None
    return mean, low, high


def waiting(study: ExperimentResults) -> list[Finding]:
    """Where ranks wait a notable share of the epoch for the slowest one and the barrier."""
    found = []
    for phase in ("init", "later"):
        worst: tuple[float, Row] | None = None
        for row in _one_source(study):
            if (row.get("ranks") or 2) == 1:
                continue
            own = row.get(column("local_time", "high", phase))
            total = row.get(column("total_time", "low", phase))
            if finite(own) and finite(total) and total > 0:
                least = 1 - own / total
                if least >= NOTABLE_WAIT and (worst is None or least > worst[0]):
                    worst = (least, row)
        if worst is not None:
            row = worst[1]
            columns = [column(m, "mean", phase) for m in ("local_time", "total_time")]
            share = 1 - row[columns[0]] / row[columns[1]]
            text = (
                f"{PHASES[phase].capitalize()}: at {study.describe(row)} a rank waits "
                f"{percent(share)} of the epoch on average, for slower ranks or in the closing "
                f"barrier (mean epoch {number(row[columns[1]])} s, own work "
                f"{number(row[columns[0]])} s)."
            )
            evidence = evidence_of(study, "points", row, columns)
            text = marked(row["source"], text)
            found.append(Finding(study.name, "waiting", CONFIRMED, text, evidence))
    return found


def _told_runs(study: ExperimentResults, name: str) -> list[Row]:
    names = ["run_id", *study.axes, "outlier", "warnings"]
    return [row for row in study.rows("runs", names) if row.get(name)]


def outlier_runs(study: ExperimentResults) -> list[Finding]:
    """Outliers among the repeats of a point, named; they stay in the means."""
    rows = _told_runs(study, "outlier")
    if not rows:
        return []
    named = listed([f"{row['run_id']} ({study.describe(row)})" for row in rows], 4)
    text = f"{counted(len(rows), 'outlier repeat')}, kept in all means: {named}."
    evidence = {
        "experiment": study.name,
        "table": "runs",
        "key": {"run_id": [row["run_id"] for row in rows[:20]]},
        "numbers": {str(row["run_id"]): row["outlier"] for row in rows[:20]},
    }
    return [Finding(study.name, "outliers", WARNING, text, evidence)]


def warnings(study: ExperimentResults) -> list[Finding]:
    """Runs whose cross-check (steady state) disagrees with the declared warm-up."""
    rows = _told_runs(study, "warnings")
    if not rows:
        return []
    texts = list(dict.fromkeys(str(row["warnings"]) for row in rows))
    text = f"{counted(len(rows), 'run')} with a steady-state warning: {listed(texts, 3)}."
    evidence = {
        "experiment": study.name,
        "table": "runs",
        "key": {"run_id": [row["run_id"] for row in rows[:20]]},
        "numbers": {},
    }
    return [Finding(study.name, "warnings", WARNING, text, evidence)]


def oversubscribed(study: ExperimentResults) -> list[Finding]:
    """Which points have more threads than cores on a node."""
    loads: dict[Key, tuple[float, Row]] = {}
    for run in study.entry["runs"]:
        load = run.get("threads_per_core")
        if load is not None and load > 1:
            loads.setdefault(study.key(run["point"]), (load, run["point"]))
    if not loads:
        return []
    named = [f"{study.describe(point)}: {load:.3g}" for load, point in loads.values()]
    text = (
        f"{len(loads):,} of {counted(len(study.states), 'point')} oversubscribed, with more than "
        f"one thread for each core of a node ({listed(named, 4)}): their times also show how "
        "threads share a core."
    )
    evidence = {
        "experiment": study.name,
        "table": "points",
        "key": {},
        "numbers": {"threads_per_core": max(load for load, _ in loads.values())},
    }
    return [Finding(study.name, "oversubscribed", WARNING, text, evidence)]


def coverage(study: ExperimentResults) -> list[Finding]:
    """How much of the plan is there, and why the rest is not."""
    runs = study.entry["runs"]
    words = ("done", "failed", "unsupported", "unfinished", "stale", "new")
    counts = {word: sum(run["status"] == word for run in runs) for word in words}
    causes: dict[str, int] = {}
    for run in runs:
        if run["status"] == "failed":
            cause = str(run.get("cause") or "unknown")
            causes[cause] = causes.get(cause, 0) + 1
    parts = [f"{counts['done']:,} of {counted(len(runs), 'run')} done"]
    accepted = sum(run["status"] == "done" and bool(run.get("detail")) for run in runs)
    if accepted:
        parts[0] += f" ({accepted:,} of them accepted although they differ from the plan)"
    if counts["failed"]:
        told = listed([f"{cause} {count}" for cause, count in sorted(causes.items())])
        parts.append(f"{counts['failed']:,} failed ({told})")
    if counts["unsupported"]:
        parts.append(f"{counts['unsupported']:,} unsupported on this machine")
    if counts["stale"]:
        why = sorted({str(run["cause"]) for run in runs if run["status"] == "stale"})
        parts.append(f"{counts['stale']:,} stale ({listed(why)})")
    if counts["unfinished"]:
        parts.append(f"{counts['unfinished']:,} unfinished, without a result")
    if counts["new"]:
        parts.append(f"{counts['new']:,} pending")
    if study.entry["excluded"]:
        parts.append(f"{counted(len(study.entry['excluded']), 'point')} excluded on purpose")
    refused = study.entry.get("refused", 0)
    if refused:
        counts["refused"] = refused
        of = study.entry["benchmark"]
        parts.append(
            f"{counted(refused, f'more run of {of}', f'more runs of {of}')} refused on import"
        )
    whole = counts["done"] + counts["unsupported"] == len(runs) and not refused
    level = NOTE if whole else WARNING
    evidence = {
        "experiment": study.name,
        "table": "runs",
        "key": {},
        "numbers": {**counts, **causes},
    }
    return [Finding(study.name, "coverage", level, f"Coverage: {', '.join(parts)}.", evidence)]
