"""Findings on epochs, repeats and coverage."""

import math
from collections import Counter

from scalesweep.analysis.metrics import column
from scalesweep.analysis.stats import SIGNIFICANT, ratio_of
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import (
    PHASES,
    counted,
    finite,
    listed,
    number,
    percent,
)
from scalesweep.core.joined_experiments import benchmarks_of
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    SILENT,
    WARNING,
    Finding,
    claim_of,
    evidence_of,
    marked,
    one_source,
    point_key,
)

# A share of the epoch spent waiting below this is not worth a sentence.
NOTABLE_WAIT = 0.1


def waiting(results: ExperimentResults) -> list[Finding]:
    """Where ranks wait a notable share of the epoch for the slowest one and the barrier.

    What a rank does itself and the whole epoch are of the same runs: the ratio is taken within
    each. The point with the largest least share is named, so all points are paid for (Bonferroni).
    """
    findings = []
    for phase in ("init", "later"):
        columns = [column(m, "mean", phase) for m in ("local_time", "total_time")]
        runs: dict[Key, list[float]] = {}
        for run in results.rows("runs", ["source", *columns, *results.axes]):
            values = [float(run[name]) for name in columns if finite(run.get(name))]
            if len(values) == 2 and min(values) > 0 and (run.get("ranks") or 2) != 1:
                runs.setdefault(point_key(results, run), []).append(values[0] / values[1])
        known = [
            (spread, row)
            for row in one_source(results)
            if (ratios := runs.get(point_key(results, row)))
            and not math.isnan((spread := ratio_of(ratios, 1 - NOTABLE_WAIT)).low)
        ]
        if not known:
            continue
        worst, row = min(known, key=lambda item: item[0].high)
        sure = worst.value < 1 - NOTABLE_WAIT
        p = min(1.0, worst.p * len(known)) if sure else 1.0
        claim = claim_of(p, "waiting", phase)
        if p > SIGNIFICANT:
            findings.append(Finding(results.name, "waiting", SILENT, "", claims=(claim,)))
            continue
        share = percent(1 - worst.value, 1 - worst.high, 1 - worst.low)
        text = (
            f"{PHASES[phase].capitalize()}: at {results.describe(row)} a rank waits "
            f"{share} of the epoch on average, for slower ranks or in the closing "
            f"barrier (mean epoch {number(row[columns[1]])} s, own work "
            f"{number(row[columns[0]])} s)."
        )
        evidence = evidence_of(results, "points", row, columns)
        text = marked(row["source"], text)
        findings.append(
            Finding(results.name, "waiting", CONFIRMED, text, evidence, claims=(claim,))
        )
    return findings


def _runs_with(results: ExperimentResults, name: str) -> list[Row]:
    names = ["run_id", *results.axes, "outlier", "warnings"]
    return [row for row in results.rows("runs", names) if row.get(name)]


def other_main_metric(results: ExperimentResults) -> list[Finding]:
    """That no run has the main metric, and what the experiment is about instead: a program whose
    ranks have several roles has a metric of each, and none of all."""
    wanted, main = results.entry["main_metric"], results.main
    if not wanted or main is None or main.metric == wanted:
        return []
    alike = [name for name in results.measures if name.startswith(f"{wanted}_")]
    near = listed([f"main_metric: {name}" for name in alike or results.measures], 4)
    lacking = f"No run has the main metric, {wanted}"
    if len(benchmarks_of(results.entry)) > 1:
        lacking += ", or the benchmarks mean different things by it (unit, direction or scope)"
    text = (
        f"{lacking}: figures and sentences are about {main.metric}; to "
        f"choose, write {near.replace(' and ', ' or ')}."
    )
    evidence = {"experiment": results.name, "table": "points", "key": {}, "numbers": {}}
    return [Finding(results.name, "main metric", WARNING, text, evidence)]


def outlier_runs(results: ExperimentResults) -> list[Finding]:
    """Outliers among the repeats of a point, named; they stay in the means."""
    rows = _runs_with(results, "outlier")
    if not rows:
        return []
    named = listed([f"{row['run_id']} ({results.describe(row)})" for row in rows], 4)
    text = f"{counted(len(rows), 'outlier repeat')}, kept in all means: {named}."
    evidence = {
        "experiment": results.name,
        "table": "runs",
        "key": {"run_id": [row["run_id"] for row in rows[:20]]},
        "numbers": {str(row["run_id"]): row["outlier"] for row in rows[:20]},
    }
    return [Finding(results.name, "outliers", WARNING, text, evidence)]


def warnings(results: ExperimentResults) -> list[Finding]:
    """Runs of which something is to be looked at, with what it is: steps that drift after the
    warm-up, a metric of another meaning, ranks that disagree on a total."""
    rows = _runs_with(results, "warnings")
    if not rows:
        return []
    counts = Counter(str(row["warnings"]) for row in rows).most_common()
    texts = [
        f"{said} ({counted(count, 'run')})" if count < len(rows) else said for said, count in counts
    ]
    text = f"{counted(len(rows), 'run')} with a warning: {listed(texts, 3)}."
    evidence = {
        "experiment": results.name,
        "table": "runs",
        "key": {"run_id": [row["run_id"] for row in rows[:20]]},
        "numbers": {},
    }
    return [Finding(results.name, "warnings", WARNING, text, evidence)]


def oversubscribed(results: ExperimentResults) -> list[Finding]:
    """Which points have more threads than cores on a node."""
    loads: dict[Key, tuple[float, Row]] = {}
    for run in results.entry["runs"]:
        load = run.get("threads_per_core")
        if load is not None and load > 1:
            loads.setdefault(results.key(run["point"]), (load, run["point"]))
    if not loads:
        return []
    named = [f"{results.describe(point)}: {load:.3g}" for load, point in loads.values()]
    text = (
        f"{len(loads):,} of {counted(len(results.states), 'point')} oversubscribed, with more than "
        f"one thread for each core of a node ({listed(named, 4)}): their times also show how "
        "threads share a core."
    )
    evidence = {
        "experiment": results.name,
        "table": "points",
        "key": {},
        "numbers": {"threads_per_core": max(load for load, _ in loads.values())},
    }
    return [Finding(results.name, "oversubscribed", WARNING, text, evidence)]


def coverage(results: ExperimentResults) -> list[Finding]:
    """How much of the plan is there, and why the rest is not."""
    runs = results.entry["runs"]
    counts = {
        status.value: sum(run["status"] == status for run in runs)
        for status in Status
        if status != Status.EXCLUDED
    }
    causes: dict[str, int] = {}
    for run in runs:
        if run["status"] == Status.FAILED:
            cause = str(run.get("cause") or "unknown")
            causes[cause] = causes.get(cause, 0) + 1
    parts = [f"{counts[Status.DONE]:,} of {counted(len(runs), 'run')} done"]
    accepted = sum(run["status"] == Status.DONE and bool(run.get("detail")) for run in runs)
    if accepted:
        parts[0] += f" ({accepted:,} of them accepted although they differ from the plan)"
    if counts[Status.FAILED]:
        tally = listed([f"{cause} {count}" for cause, count in sorted(causes.items())])
        alone = "the source does not say why" if [*causes] == [Cause.NOT_STATED] else tally
        parts.append(f"{counts[Status.FAILED]:,} failed ({alone})")
    if counts[Status.UNSUPPORTED]:
        parts.append(f"{counts[Status.UNSUPPORTED]:,} unsupported on this machine")
    if counts[Status.STALE]:
        why = sorted({str(run["cause"]) for run in runs if run["status"] == Status.STALE})
        parts.append(f"{counts[Status.STALE]:,} stale ({listed(why)})")
    if counts[Status.UNFINISHED]:
        parts.append(f"{counts[Status.UNFINISHED]:,} unfinished, without a result")
    if counts[Status.NEW]:
        parts.append(f"{counts[Status.NEW]:,} pending")
    if results.entry["excluded"]:
        parts.append(f"{counted(len(results.entry['excluded']), 'point')} excluded")
    refused = results.entry.get("refused", 0)
    if refused:
        counts["refused"] = refused
        of = results.entry["benchmark"]
        parts.append(
            f"{counted(refused, f'more run of {of}', f'more runs of {of}')} refused on import"
        )
    whole = counts[Status.DONE] + counts[Status.UNSUPPORTED] == len(runs) and not refused
    level = NOTE if whole else WARNING
    evidence = {
        "experiment": results.name,
        "table": "runs",
        "key": {},
        "numbers": {**counts, **causes},
    }
    return [Finding(results.name, "coverage", level, f"Coverage: {', '.join(parts)}.", evidence)]
