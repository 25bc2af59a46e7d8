"""Findings on configurations: which point is the best, among those that compare."""

import math
from collections.abc import Sequence

from scalesweep.analysis.metrics import column
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.core.formatting import PHASES, counted, listed, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.learning import learns
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    Finding,
    best_among,
    claim_of,
    columns_of,
    evidence_of,
    marked,
    number_of,
    one_source,
    point_key,
)
from scalesweep.findings.differences import Differences

RULE = "best"
MAX_WORKLOADS = 8
# Beyond so many workloads without intervals, one sentence says all of their best points.
MAX_APART = 2


def best_configuration(results: ExperimentResults) -> list[Finding]:
    """Which point has the best value of the main metric, claimed only if clear of every other one.

    Points that compute different things (models, sample shapes) do not compete, nor do those of
    different scales where more of them are more work: the verdict is on those.
    """
    main = results.main
    # Layouts compete at one scale (aspects.layouts).
    if main is None or results.rows("best_layouts", ["layout"]):
        return []
    phase = main.steady_phase
    workload = [n for n in results.leaders if parameter_of(results.entry, n).get("workload")]
    groups: dict[Key, list[Row]] = {}
    rows = one_source(results)
    # What reads nothing is no rival of what does.
    real = [row for row in rows if learns(results, row)]
    # The mean of the runs that ended well is no rival where others did not end.
    real = [row for row in real if not results.unfinished(row)]
    for row in real or rows:
        if main.value(row, "mean", phase) is not None:
            groups.setdefault(results.key(row, workload), []).append(row)
    by_scale = _by_scale(results, main)
    if by_scale:
        groups = {key: _largest_with_rivals(results, rows) for key, rows in groups.items()}
    competing = [rows for rows in groups.values() if len(rows) > 1]
    among = [*workload, results.scale] if by_scale else workload
    findings = [_best_of(results, main, phase, rows, among) for rows in competing]
    if len(findings) > MAX_APART and all(
        main.without_interval(rows[0], phase) for rows in competing
    ):
        return [_without_intervals(results, main, phase, competing, workload)]
    findings = findings[:MAX_WORKLOADS]
    if len(competing) > MAX_WORKLOADS:
        text = f"The tables have {len(competing) - MAX_WORKLOADS:,} more best points."
        findings.append(Finding(results.name, RULE, NOTE, text, {"experiment": results.name}))
    return findings


def _by_scale(results: ExperimentResults, main: Measure) -> bool:
    """Whether only points of one scale compare: more ranks have more to do, or it is a share."""
    if results.scale not in results.leaders:
        return False
    published = results.sources == ["imported"] and results.entry["scaling"] == "none"
    return results.entry["scaling"] == "weak" or published or not main.unit


def _largest_with_rivals(results: ExperimentResults, rows: Sequence[Row]) -> list[Row]:
    """The points of the largest scale that has several; none where no scale has."""
    at: dict[int, list[Row]] = {}
    for row in rows:
        at.setdefault(results.scale_of(row), []).append(row)
    return next((at[scale] for scale in sorted(at, reverse=True) if len(at[scale]) > 1), [])


def _without_intervals(
    results: ExperimentResults,
    main: Measure,
    phase: str,
    groups: Sequence[Sequence[Row]],
    workload: Sequence[str],
) -> Finding:
    """One sentence on the best points of many workloads, of which none has an interval; the best
    comes first in each of ``groups``."""
    rest = [name for name in results.leaders if name not in workload]
    winners: dict[str, list[Row]] = {}
    for rows in groups:
        winners.setdefault(results.describe(rows[0], rest), []).append(rows[0])
    order = sorted(winners.items(), key=lambda item: -len(item[1]))
    parts = [
        f"{where} for {listed([results.named(row, workload) for row in rows], MAX_APART + 1)}"
        for where, rows in order
    ]
    why = main.without_interval(groups[0][0], phase)
    text = (
        f"{'highest' if main.higher else 'lowest'} measured {main.label.lower()} "
        f"({PHASES[phase]}) of {len(groups)} workloads: {'; '.join(parts[: MAX_APART + 1])}"
        f"{f'; {len(parts) - MAX_APART - 1} more' if len(parts) > MAX_APART + 1 else ''}; "
        f"{why}, not confirmed."
    )
    first = groups[0][0]
    evidence = evidence_of(results, "points", first, columns_of(main, phase))
    name = column(main.metric, "mean", phase)
    unit = results.unit_of("points", name)
    numbers = tuple(
        number_of(results.named(rows[0], workload), rows[0].get(name), unit) for rows in groups
    )
    facts = frozenset(best_among(results, rows, phase) for rows in groups)
    return Finding(
        results.name, RULE, OPEN, marked(first["source"], text), evidence, numbers, facts
    )


def _best_of(
    results: ExperimentResults, main: Measure, phase: str, rows: list[Row], among: Sequence[str]
) -> Finding:
    """The best of points that are the same in ``among``: the measured best against each other."""

    def mean(row: Row) -> float:
        return (main.value(row, "mean", phase) or 0.0) * (1 if main.higher else -1)

    rows.sort(key=mean, reverse=True)
    best, others = rows[0], rows[1:]
    differences = Differences(results, main.metric, phase)
    chances = [differences.p(best, row) for row in others]
    level, text, unless = _claim(results, main, phase, rows, chances, among)
    p = None if any(math.isnan(chance) for chance in chances) else max(chances)
    claims = (claim_of(p, RULE, *point_key(results, best)),)
    evidence = evidence_of(results, "points", best, columns_of(main, phase))
    evidence["runner_up"] = evidence_of(results, "points", others[0], columns_of(main, phase))
    facts = frozenset({best_among(results, rows, phase)})
    text, unless = marked(best["source"], text), marked(best["source"], unless)
    return Finding(
        results.name, RULE, level, text, evidence, facts=facts, claims=claims, unless=unless
    )


def _claim(
    results: ExperimentResults,
    main: Measure,
    phase: str,
    rows: Sequence[Row],
    chances: Sequence[float],
    among: Sequence[str],
) -> tuple[str, str, str]:
    """Level and sentence of what can be claimed of ``rows``, the best first, and what is said where
    that does not stand. ``chances``: p values of the best against the others; ``among``: what
    all of them have in common."""
    best, others = rows[0], rows[1:]
    value = with_interval(
        main.value(best, "mean", phase),
        main.value(best, "low", phase),
        main.value(best, "high", phase),
        main.unit,
    )
    word = "Highest" if main.higher else "Lowest"
    rest = [name for name in results.leaders if name not in among]

    def described(row: Row) -> str:
        return results.describe(row, rest)

    where = described(best)
    quantity = f"{main.label.lower()} ({PHASES[phase]})"
    if workload := [name for name in among if name != results.scale]:
        quantity = f"{quantity} of {results.describe(best, workload)}"
    at = ""
    if results.scale in among:
        at, word = f"At {results.describe(best, [results.scale])}, ", word.lower()
    head = f"{at}{word} {quantity} measured at {where}: {value}"
    if main.value(best, "low", phase) is None:
        why = main.without_interval(best, phase)
        text = f"{at}{word} measured {quantity}: {value} at {where}; {why}, not confirmed."
        return OPEN, text, head
    rivals = [row for row, p in zip(others, chances, strict=True) if p > SIGNIFICANT]
    unknown = [row for row, p in zip(others, chances, strict=True) if math.isnan(p)]
    if rivals:
        text = (
            f"{head}; indistinguishable from {counted(len(rivals), 'other')} by these repeats "
            f"({listed([described(row) for row in rivals], 3)})."
        )
        return OPEN, text, head
    if unknown:
        lacking: dict[str, list[Row]] = {}
        for row in unknown:
            # With an interval of its own, but of no ratio: values that are not positive.
            why = main.without_interval(row, phase) or "values that are not positive"
            lacking.setdefault(why, []).append(row)
        against = [
            f"{counted(len(rows_), 'point')} with {why} "
            f"({listed([described(row) for row in rows_], 3)})"
            for why, rows_ in lacking.items()
        ]
        return OPEN, f"{head}; not confirmed against {' and '.join(against)}.", head
    all_others = f"all {len(others):,} others" if len(others) > 1 else "the only other"
    second = with_interval(
        main.value(others[0], "mean", phase),
        main.value(others[0], "low", phase),
        main.value(others[0], "high", phase),
    )
    text = (
        f"{at}{'best' if at else 'Best'} {quantity}: {value} at {where}, clear of {all_others}; "
        f"next is {described(others[0])} with {second}"
    )
    return CONFIRMED, f"{text}{unmeasured(results, rows, among, rest)}.", head


def unmeasured(
    results: ExperimentResults, rows: Sequence[Row], among: Sequence[str], names: Sequence[str]
) -> str:
    """The points without a result that would compete with ``rows``, which are the same in
    ``among``, by their ``names``: the best of those that finished is not the best of all.

    Empty where there are none, or where the campaign plans none like these.
    """
    if rows[0]["source"] != "measured":
        return ""
    measured = {results.key(row) for row in rows}
    key = results.key(rows[0], among)
    lacking = [
        row
        for row in results.points
        if results.key(row, among) == key
        and results.key(row) not in measured
        and (not row.get("repeats") or results.unfinished(row))
        and learns(results, row) == learns(results, rows[0])
    ]
    if not lacking:
        return ""
    verb = "has" if len(lacking) == 1 else "have"
    return f"; {listed([results.describe(row, names) for row in lacking], 3)} {verb} no result"
