"""What the table of comparisons says: which value is best, and one value over another."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from scalesweep.analysis.stats import ONE_REPEAT, SIGNIFICANT
from scalesweep.aspects.comparisons.settings import benchmark_settings
from scalesweep.core.formatting import PHASES, counted, listed, number, text_of, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    marked,
    why_unconfirmed,
)
from scalesweep.tables.comparisons import (
    BEST,
    ENERGY,
    INPUT,
    PHASE,
    RATIO,
    REFERENCE,
    SCALING,
    SITE,
    TARGET,
    THREADS,
    Comparison,
    compared_parameters,
)

MOST = 6  # sentences on one parameter
MIN_SERIES = 3
COLUMNS = ("ratio", "low", "high")
# Rule of the sentences on a question, if it is not `best` or `ratio`.
RULE = {THREADS: "threads", TARGET: "target", ENERGY: "energy", INPUT: "input cost",
        SITE: "sites", SCALING: "final accuracy", PHASE: "cache"}  # fmt: skip
# Questions of which one sentence names the point where the two values differ most clearly.
CLEAREST = (PHASE, SITE, INPUT)
_Rows = list[Comparison]


def comparisons(results: ExperimentResults) -> _Rows:
    """Rows that are judged: of one source, in the phase that runs are compared in."""
    source = "measured" if "measured" in results.sources else next(iter(results.sources), None)
    steady = results.main.steady_phase if results.main else ""
    return [
        row
        for row in results.of(Comparison)
        if row.source == source and (row.phase in (steady, "run") or row.question == INPUT)
    ]


def best_choice(results: ExperimentResults) -> list[Finding]:
    """The best of each group of points, clear only if it is clear of each other one."""
    groups: dict[tuple[str, str], dict[str | None, _Rows]] = {}
    for row in comparisons(results):
        if row.against == BEST and row.statistic is None:
            of_choice = groups.setdefault((row.question, row.parameter), {})
            of_choice.setdefault(row.point_id, []).append(row)
    findings: list[Finding] = []
    choices = [", ".join(names) for names in compared_parameters(results.entry)]
    for (_, parameter), by_point in groups.items():
        among = [*by_point.values()]
        if parameter in choices:  # of two values the ratio is said
            among = [rows for rows in among if (rows[0].among or 0) > 2]
        else:
            among = _largest_scale(results, among)
        findings += _shortened(results, parameter, [_best(results, rows) for rows in among])
    return findings


def _largest_scale(results: ExperimentResults, groups: Sequence[_Rows]) -> list[_Rows]:
    """Of what is compared scale by scale the groups at the largest scale, by what is computed."""
    kept: dict[tuple[object, ...], _Rows] = {}
    for rows in groups:
        point, names = rows[0].point, rows[0].parameter.split(", ")
        rest = [n for n in results.leaders if n not in (*names, results.scale)]
        key = results.key(point, rest)
        if results.scale in names or results.scale not in results.leaders:
            kept[*key, len(kept)] = rows
        elif key not in kept or results.scale_of(point) > results.scale_of(kept[key][0].point):
            kept[key] = rows
    return [*kept.values()]


def _best(results: ExperimentResults, rows: _Rows) -> Finding:
    """The sentence on a group: ``rows`` are the best over each other one, the next first."""
    first = rows[0]
    cited = first
    p = max((1.0 if row.p is None else row.p for row in rows), default=1.0)
    if first.question == THREADS:  # against the default, whichever of the others is as good
        base = ", ".join(
            text_of(parameter_of(results.entry, name)["default"])
            for name in first.parameter.split(", ")
        )
        cited = next((row for row in rows if row.base_value == base), first)
        p = 1.0 if cited.p is None else min(1.0, cited.p * len(rows))
    value, at = _value(results, first), _at(results, first)
    lacking = f"; no result at {first.lacking}" if first.lacking else ""
    side = "Highest" if first.better == "higher" else "Lowest"
    measured = f"{side} measured {_label(results, first)}{at}: {_mean(results, first)} with {value}"
    claim = _claim(first, p, "best")
    if p <= SIGNIFICANT:
        next_ = "next, " if cited is first else ""
        text = (
            f"Best {first.parameter}{at} is {value}: {_ratio(cited)} times the "
            f"{_label(results, first)} of the {next_}{cited.base_value}{lacking}."
        )
        return _finding(results, cited, CLEAR, text, claim, measured)
    return _finding(results, cited, OPEN, f"{measured}; {_why_open(rows)}.", claim)


def _why_open(rows: _Rows) -> str:
    """Why the best is not clear of each other one."""
    unknown = [row for row in rows if row.p is None]
    if unknown:
        why = why_unconfirmed(unknown[0].how) if unknown[0].how else "there is no interval"
        return f"not confirmed, {why}"
    rivals = [row for row in rows if (row.p or 0.0) > SIGNIFICANT]
    return f"{counted(len(rivals) or 1, 'other')} cannot be told from it, not confirmed"


def ratios(results: ExperimentResults) -> list[Finding]:
    """One value over another one: of two values of a parameter, of an input over none, later epochs
    over the first, another site over this one, the largest scale over the smallest."""
    groups: dict[tuple[str, ...], _Rows] = {}
    for row in comparisons(results):
        if row.against == REFERENCE and row.quantity == RATIO and row.statistic is None:
            key = (row.question, row.parameter, row.metric, row.phase)
            groups.setdefault(key, []).append(row)
    choices = [", ".join(names) for names in compared_parameters(results.entry)]
    findings: list[Finding] = []
    for (question, parameter, *_), rows in groups.items():
        if question in CLEAREST:
            findings.append(_clearest(results, rows))
        elif question == SCALING or (parameter in choices and len({r.value for r in rows}) == 1):
            single = [row for row in rows if row.how == ONE_REPEAT]
            each = [_one_ratio(results, row) for row in rows if row not in single]
            findings += _shortened(results, parameter, each)
            findings += [_single_runs(results, single)] if single else []
    return findings


def _one_ratio(results: ExperimentResults, row: Comparison) -> Finding:
    claim = _claim(row, row.p, "ratio")
    if row.p is not None and row.p <= SIGNIFICANT:
        return _finding(results, row, CLEAR, f"{_over(results, row)}.", claim)
    why = f"{why_unconfirmed(row.how)}, " if row.p is None else "the interval includes 1, "
    text = f"{_over(results, row)}; {why}not confirmed."
    return _finding(results, row, OPEN, text, claim)


def _clearest(results: ExperimentResults, rows: _Rows) -> Finding:
    """Where two values differ most clearly, among all points (Bonferroni)."""
    row = min(rows, key=lambda row: 1.0 if row.p is None else row.p)
    p = min(1.0, (1.0 if row.p is None else row.p) * len(rows))
    text = _over(results, row)
    text += f", the clearest of {counted(len(rows), 'point')}" if len(rows) > 1 else ""
    level = CLEAR if p <= SIGNIFICANT else SILENT
    if row.question == INPUT and level == SILENT:
        level = OPEN
        text += "; not confirmed"
    return _finding(results, row, level, f"{text}.", _claim(row, p, "clearest"))


def _single_runs(results: ExperimentResults, rows: _Rows) -> Finding:
    """The ratios of single runs, with the sign test over what is computed (``workload``): several
    scales of one model are one pair, by the geometric mean of their ratios."""
    from scipy.stats import binomtest

    workload = [n for n in results.leaders if parameter_of(results.entry, n).get("workload")]
    logs: dict[object, list[float]] = {}
    for row in rows:
        if row.ratio and row.ratio.value > 0:
            logs.setdefault(results.key(row.point, workload), []).append(math.log(row.ratio.value))
    pairs = [mean for each in logs.values() if (mean := sum(each)) != 0]
    above = sum(mean > 0 for mean in pairs)
    ordered = sorted(rows, key=lambda row: row.ratio.value if row.ratio else 0.0)
    cited = ordered[-1] if ordered[-1].ratio and ordered[-1].ratio.value > 1 else ordered[0]
    text, p = f"{_over(results, cited)} in single runs", None
    if len(pairs) > 1:
        p = float(binomtest(above, len(pairs)).pvalue)
        side, most = ("higher", above) if 2 * above >= len(pairs) else ("lower", len(pairs) - above)
        text += f"; {side} in {most} of {len(pairs)} pairs (sign test, p = {number(p, 2)})"
    claim = claim_of(p, "sign test", rows[0].parameter)
    if p is not None and p < SIGNIFICANT:
        return _finding(results, cited, CLEAR, f"{text}.", claim)
    return _finding(results, cited, OPEN, f"{text}; not confirmed.", claim)


def averages(results: ExperimentResults) -> list[Finding]:
    """What a parameter changes on average over all others, and the median over series: notes, which
    claim nothing."""
    rows = [row for row in comparisons(results) if row.statistic]
    findings = []
    for name in results.grid:
        mine = [row for row in rows if row.parameter == name and row.statistic == "mean"]
        best = [row for row in mine if row.against == BEST]
        if not best or (best[0].pairs or 0) < 2:
            continue
        among = len(best)
        alike = [row.base_value for row in best if row.p is None or row.p * among > SIGNIFICANT]
        furthest = max(best, key=lambda row: abs(math.log(row.ratio.value)) if row.ratio else 0.0)
        text = (
            f"{name} on average over {best[0].pairs} settings: {best[0].value} is best, "
            f"{_ratio(furthest)} times {furthest.base_value}"
        )
        text += f"; {listed(alike, 3)} cannot be told from it" if alike else ""
        findings.append(_note(results, furthest, f"{text}.", "effects"))
    medians = [
        row
        for row in rows
        if row.question == SCALING and row.statistic == "median" and (row.pairs or 0) >= MIN_SERIES
    ]
    if medians:
        row = max(medians, key=lambda row: float(row.value))
        text = (
            f"Median over {row.pairs} series: {number(row.ratio and row.ratio.value)} times the "
            f"{_label(results, row)} at {results.scaled(int(row.value))}."
        )
        findings.append(_note(results, row, text, "medians"))
    return findings


def _note(results: ExperimentResults, row: Comparison, text: str, rule: str) -> Finding:
    evidence = declared_evidence(results, row, COLUMNS) | {"parameter": row.parameter}
    evidence["key"] = {"source": row.source}
    return Finding(results.name, rule, NOTE, marked(row.source, text, capital=False), evidence)


def _shortened(
    results: ExperimentResults, parameter: str, findings: Iterable[Finding]
) -> list[Finding]:
    """The first clear ones, and of those that are open one for all beyond the second."""
    clear: list[Finding] = []
    open_: list[Finding] = []
    for finding in findings:
        (clear if finding.state == CLEAR else open_).append(finding)
    kept = [*clear[:MOST], *(replace(each, state=SILENT) for each in clear[MOST:])]
    if len(clear) > MOST:
        text = f"{parameter}: {counted(len(clear) - MOST, 'more clear row')} in the table."
        kept.append(Finding(results.name, clear[0].rule, NOTE, text, clear[0].evidence))
    if len(open_) <= 2:
        return [*kept, *open_]
    claims = tuple(claim for finding in open_ for claim in finding.claims)
    text = (
        f"{parameter}: {len(open_)} comparisons are not confirmed; the table has their intervals."
    )
    return [*kept, replace(open_[0], sentence=text, unless="", claims=claims)]


def _finding(
    results: ExperimentResults,
    row: Comparison,
    level: str,
    text: str,
    claim: Claim,
    unless: str = "",
) -> Finding:
    usual = "best" if row.against == BEST else "ratio"
    evidence = declared_evidence(results, row, COLUMNS) | {"parameter": row.parameter}
    rule = RULE.get(row.question, usual)
    text = marked(row.source, text, capital=usual == "best")
    unless = marked(row.source, unless) if unless else ""
    return Finding(results.name, rule, level, text, evidence, claims=(claim,), unless=unless)


def _claim(row: Comparison, p: float | None, what: str) -> Claim:
    """Told apart from others by the two points and what is compared."""
    return claim_of(p, what, row.question, row.parameter, row.metric, row.phase, row.point_id,
                    row.base_id, row.value)  # fmt: skip


def _over(results: ExperimentResults, row: Comparison) -> str:
    """``b over a (mode): 1.20 [1.10, 1.31] times the rate at 4 ranks``."""
    who = f"{row.value} over {row.base_value} ({row.parameter})"
    if row.question == PHASE:
        who = "later epochs over the first"
    when = f" ({PHASES[row.phase]})" if row.question == INPUT else ""
    at = f" at {results.describe(row.point)}" if row.question in (PHASE, SITE) else ""
    at = at or _at(results, row)
    return f"{who}: {_ratio(row)} times the {_label(results, row)}{when}{at}"


def _ratio(row: Comparison) -> str:
    ratio = row.ratio
    return "no" if ratio is None else with_interval(ratio.value, ratio.low, ratio.high)


def _at(results: ExperimentResults, row: Comparison) -> str:
    """The point, but for what is compared."""
    names = row.parameter.split(", ")
    rest = [name for name in results.leaders if name not in names]
    return f" at {results.describe(row.point, rest)}" if rest else ""


def _value(results: ExperimentResults, row: Comparison) -> str:
    """The value of a choice: of several parameters with their names."""
    names = row.parameter.split(", ")
    return results.describe(row.point, names) if len(names) > 1 else row.value


def _label(results: ExperimentResults, row: Comparison) -> str:
    measure = results.measures.get(row.metric)
    label = row.metric.replace("_", " ") if measure is None else measure.label
    return label[:1].lower() + label[1:] if label[1:2].islower() or " " in label[:2] else label


def _mean(results: ExperimentResults, row: Comparison) -> str:
    measure = results.measures.get(row.metric)
    if measure is None or row.mean is None:
        return "–"
    return with_interval(row.mean * measure.factor, None, None, measure.unit)


_ALL = ("heatmap", "parameter", "groups", "compare-", "scaling", "overview-")
RULES = (
    Rule("best", best_choice, figures=_ALL, on_main=True),
    Rule("threads", None, figures=_ALL, on_main=True),
    Rule("energy", None, figures=("energy-phases", "accuracy-energy", "power-")),
    Rule("ratio", ratios, figures=("ratio-", "compare-"), on_main=True),
    Rule("sites", None, figures=("sites-",), on_main=True),
    Rule("input cost", None, figures=("compare-input", "ratio-input")),
    Rule("final accuracy", None, figures=("accuracy-",)),
    Rule("cache", None, figures=("scaling", "parameter", "heatmap", "groups"), on_main=True),
    Rule("effects", averages, figures=("groups", "heatmap", "compare-")),
    Rule("medians", None, figures=("overview-", "scaling-")),
    Rule("settings", benchmark_settings),
)
