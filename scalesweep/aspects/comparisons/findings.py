"""Findings on the values of one parameter against each other, and on sites."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scalesweep.analysis.multiple import holm_p
from scalesweep.analysis.stats import ONE_REPEAT, SIGNIFICANT
from scalesweep.aspects.comparisons.best import best_configuration, unmeasured
from scalesweep.aspects.comparisons.settings import benchmark_settings
from scalesweep.aspects.comparisons.threads import best_threads
from scalesweep.core.formatting import counted, finite, listed, number, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Rule,
    best_among,
    claim_of,
    evidence_of,
    from_single_runs,
    marked,
    why_unconfirmed,
)
from scalesweep.tables.pairwise import Choice, compared_parameters

MAX_SENTENCES = 8


def best_value(results: ExperimentResults) -> list[Finding]:
    """The best of three values or more, named only where it is told from each other one."""
    findings: list[Finding] = []
    for names in _parameters(results):
        name = ", ".join(names)
        rows = [row for row in _rows(results, "best", name) if row["compared"] > 2]
        clear = [row for row in rows if finite(row["p_value"]) and row["p_value"] <= SIGNIFICANT]
        for place, row in enumerate(clear):
            best = _value(results, row, "mean", "low", "high")
            second = _value(results, row, "next_mean", "next_low", "next_high")
            text = (
                f"best {name}{_where(results, row, names)}: {row['best']} with {best}, "
                f"clear of the {row['compared'] - 1} others; next is {row['next']} with "
                f"{second}{_without_result(results, row, names)}."
            )
            unless = f"best {name} measured{_where(results, row, names)}: {row['best']} with {best}"
            level = CONFIRMED if place < MAX_SENTENCES else SILENT
            finding = _finding(results, "best value", level, row, text, "best", unless)
            findings.append(replace(finding, facts=_questions(results, [row], names)))
        unsure = [row for row in rows if row not in clear]
        for reason, among in _reasons(unsure).items():
            where = [_where(results, row, names).removeprefix(" at ") or "all" for row in among]
            text = f"the best {name} is not identified at {listed(where, 5)}: {reason}."
            claims = [_claim(results, "best value", row) for row in among]
            open_ = _finding(results, "best value", OPEN, among[0], text, "best")
            facts = _questions(results, among, names)
            findings.append(replace(open_, claims=tuple(claims), facts=facts))
    return findings


def _questions(results: ExperimentResults, rows: Sequence[Row], names: Choice) -> frozenset[str]:
    """Which point is best of those that each comparison is among: equal but for ``names``."""
    phase = results.main.steady_phase if results.main else ""
    return frozenset(best_among(results, _among(results, row, names), phase) for row in rows)


def _among(results: ExperimentResults, row: Row, names: Choice) -> list[Row]:
    """The points with results that a comparison is among."""
    rest = [name for name in results.leaders if name not in names]
    return [
        point
        for point in results.points
        if point["source"] == row["source"] and results.key(point, rest) == results.key(row, rest)
    ]


def _without_result(results: ExperimentResults, row: Row, names: Choice) -> str:
    """Which values of a comparison have no result at its point."""
    rest = [name for name in results.leaders if name not in names]
    among = [point for point in _among(results, row, names) if not results.unfinished(point)]
    return unmeasured(results, among, rest, names) if among else ""


def _reasons(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Comparisons without a clear best by what keeps it from being clear."""
    reasons: dict[str, list[Row]] = {}
    for row in rows:
        if row["no_interval"]:
            reason = f"the best value has no interval ({row['no_interval']})"
        elif row["next_no_interval"]:
            reason = f"the next value has no interval ({row['next_no_interval']})"
        elif _overlap(row):
            reason = "these repeats do not tell the best from the next"
        else:
            reason = "another value has no interval, or cannot be told from the best"
        reasons.setdefault(reason, []).append(row)
    return reasons


def _overlap(row: Row) -> bool:
    return bool(finite(row["next_p"]) and row["next_p"] > SIGNIFICANT)


def value_ratio(results: ExperimentResults) -> list[Finding]:
    """How one of two values compares with the other; where the interval holds 1, or there is none,
    it is said so."""
    findings: list[Finding] = []
    for names in _parameters(results):
        name = ", ".join(names)
        rows = _rows(results, "comparisons", name)
        if len({row["value"] for row in rows}) != 1 or not results.main:
            continue
        over = f"{rows[0]['value']} over {rows[0]['reference']}"
        label = results.main.label.lower()
        clear = [r for r in rows if finite(r["p_value"]) and r["p_value"] <= SIGNIFICANT]
        for place, row in enumerate(clear):
            ratio = with_interval(row["ratio"], row["low"], row["high"])
            text = f"{over} ({name}): {ratio} times the {label}{_where(results, row, names)}."
            level = CONFIRMED if place < MAX_SENTENCES else SILENT
            findings.append(_finding(results, "ratio", level, row, text, "comparisons"))
        if len(clear) > MAX_SENTENCES:
            text = f"the tables have {counted(len(clear) - MAX_SENTENCES, 'more ratio')} of {over}."
            findings.append(_finding(results, "ratio", NOTE, clear[0], text, "comparisons"))
        # Of single runs nothing is known of the difference, not that there is none.
        if single := [row for row in rows if row["no_interval"] == ONE_REPEAT]:
            findings.append(_single_runs(results, names, single, over, label))
        unsure: dict[str, list[Row]] = {}
        for row in rows:
            if row not in clear and row not in single:
                unsure.setdefault(row["no_interval"] or "", []).append(row)
        for why, rows_ in unsure.items():
            where = [_where(results, row, names).removeprefix(" at ") or "all" for row in rows_]
            text = (
                f"{over} ({name}): these repeats show no difference in {label} at "
                f"{listed(where, 5)}."
            )
            if why:
                text = (
                    f"{over} ({name}): {label} at {listed(where, 5)} not confirmed, "
                    f"{why_unconfirmed(why)}."
                )
            claims = [_claim(results, "ratio", row) for row in rows_]
            open_ = _finding(results, "ratio", OPEN, rows_[0], text, "comparisons")
            findings.append(replace(open_, claims=tuple(claims)))
    return findings


def _single_runs(
    results: ExperimentResults, names: Choice, rows: Sequence[Row], over: str, label: str
) -> Finding:
    """The ratios of single runs, and whether enough pairs of them agree on the better one.

    The test is the sign test over what is computed (``workload``): runs of one model at several
    scales say the same of it, and count as one pair, by the geometric mean of their ratios.
    """
    ordered = sorted(rows, key=lambda row: float(row["ratio"]))
    low, high = ordered[0], ordered[-1]
    times = f"{number(low['ratio'])} times the {label}{_where(results, low, names)}"
    if len(ordered) > 1:
        times = f"from {times} to {number(high['ratio'])} times{_where(results, high, names)}"
    alone = [row[side] == 1 for row in rows for side in ("repeats", "reference_repeats")]
    text = f"{over} ({', '.join(names)}): {times}, {from_single_runs(*alone)}"
    pairs = _pairs(results, names, rows)
    above = sum(ratio > 1 for ratio in pairs)
    from scipy.special import bdtr

    p = min(1.0, 2 * float(bdtr(min(above, len(pairs) - above), len(pairs), 0.5)))
    level = OPEN
    if len(pairs) > 1:
        more = max(above, len(pairs) - above)
        side = "higher" if above * 2 >= len(pairs) else "lower"
        text += f"; {side} in {more} of {len(pairs)} pairs (sign test, p = {number(p, 2)})"
        level = CONFIRMED if p < SIGNIFICANT else OPEN
    text += "." if level == CONFIRMED else "; not confirmed."
    cited = high if high["ratio"] > 1 else low
    claim = claim_of(p if len(pairs) > 1 else None, "ratio", names, "sign test")
    single = _finding(results, "ratio", level, cited, text, "comparisons")
    return replace(single, claims=(claim,))


def _pairs(results: ExperimentResults, names: Choice, rows: Sequence[Row]) -> list[float]:
    """A ratio for each thing that is computed; ratios of 1 and what is no ratio left out."""
    workload = [
        leader
        for leader in results.leaders
        if leader not in names and parameter_of(results.entry, leader).get("workload")
    ]
    groups: dict[Key, list[float]] = {}
    for row in rows:
        if finite(row["ratio"]) and row["ratio"] > 0:
            groups.setdefault(results.key(row, workload), []).append(math.log(row["ratio"]))
    means = [math.exp(sum(logs) / len(logs)) for logs in groups.values()]
    return [mean for mean in means if mean != 1]


def site_ratio(results: ExperimentResults) -> list[Finding]:
    """How other sites compare with this one on the same runs."""
    main = results.main
    if main is None:
        return []
    phase = main.steady_phase
    rows = [
        row
        for row in results.rows("sites")
        if row["phase"] == phase and finite(row["ratio_low"], row["ratio_p"])
    ]
    findings = []
    for site in dict.fromkeys(row["site"] for row in rows):
        here = sorted((row for row in rows if row["site"] == site), key=lambda row: row["ratio"])
        together = holm_p([float(row["ratio_p"]) for row in here])
        differing = [(p, row) for p, row in zip(together, here, strict=True) if p <= SIGNIFICANT]
        clear = [row for _, row in differing]
        # All of the list are to differ.
        claims = (claim_of(max((p for p, _ in differing), default=None), "sites", site),)
        if not clear:
            findings.append(Finding(results.name, "sites", SILENT, "", claims=claims))
            continue
        low, high = clear[0], clear[-1]
        span = f"{_ratio_of(low)} times that here at {results.describe(low)}"
        if len(clear) > 1:
            span = f"from {span} to {_ratio_of(high)} times at {results.describe(high)}"
        text = (
            f"{main.label.lower()} on site {site} differs clearly at {len(clear)} of "
            f"{counted(len(here), 'common point')}: {span}."
        )
        unless = f"{main.label.lower()} on site {site}: {span}"
        said = _finding(results, "sites", CONFIRMED, low, text, "sites", unless)
        findings.append(replace(said, claims=claims))
    return findings


def _ratio_of(row: Row) -> str:
    return with_interval(row["ratio"], row["ratio_low"], row["ratio_high"])


def _parameters(results: ExperimentResults) -> list[Choice]:
    return compared_parameters(results.entry) if results.main else []


def _rows(results: ExperimentResults, table: str, name: str) -> list[Row]:
    """Rows on a parameter in the main metric's steady phase, of measured runs where there are."""
    main = results.main
    if main is None:
        return []
    rows = [
        row
        for row in results.rows(table)
        if row["parameter"] == name
        and row["metric"] == main.metric
        and row["phase"] == main.steady_phase
    ]
    measured = [row for row in rows if row["source"] == "measured"]
    return measured or rows


def _where(results: ExperimentResults, row: Row, names: Choice) -> str:
    rest = [other for other in results.leaders if other not in names]
    return f" at {results.describe(row, rest)}" if rest else ""


def _value(results: ExperimentResults, row: Row, *names: str) -> str:
    main = results.main
    factor, unit = (main.factor, main.unit) if main else (1.0, "")
    mean, low, high = (row[n] * factor if finite(row[n]) else None for n in names)
    return with_interval(mean, low, high, unit)


def _claim(results: ExperimentResults, rule: str, row: Row) -> Claim:
    """What a row of a table may claim; of one without an interval nothing."""
    what = (rule, row["parameter"], row.get("value"), *results.key(row, results.leaders))
    return claim_of(row["p_value"], *what, row["source"])


def _finding(
    results: ExperimentResults,
    rule: str,
    level: str,
    row: Row,
    text: str,
    table: str,
    unless: str = "",
) -> Finding:
    columns: Sequence[str] = {
        "best": ("mean", "low", "high", "next_mean", "next_low", "next_high"),
        "comparisons": ("ratio", "low", "high"),
        "sites": ("mean", "ratio", "ratio_low", "ratio_high"),
    }[table]
    evidence = evidence_of(results, table, row, columns)
    if "parameter" in row:
        evidence["parameter"] = row["parameter"]
    # A ratio's sentence starts with a value, which is written as it is.
    text = marked(row["source"], text, capital=rule != "ratio")
    unless = marked(row["source"], unless) if unless else ""
    claims = (_claim(results, rule, row),) if "p_value" in row else ()
    return Finding(results.name, rule, level, text, evidence, claims=claims, unless=unless)


_ALL = ("heatmap", "parameter", "groups", "compare-", "scaling", "overview-")
RULES = (
    Rule(best_configuration, figures={"best": _ALL}),
    Rule(
        best_threads,
        figures={"threads": ("heatmap", "parameter", "groups", "scaling")},
    ),
    Rule(best_value, figures={"best value": ("compare-", "ratio-")}),
    Rule(value_ratio, figures={"ratio": ("ratio-", "compare-")}),
    Rule(benchmark_settings),
    Rule(site_ratio, figures={"sites": ("sites-",)}),
)
