"""What the table of comparisons says: which value is best, and one value over another."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from scalesweep.analysis.stats import ONE_REPEAT, SIGNIFICANT
from scalesweep.aspects.comparisons.settings import benchmark_settings
from scalesweep.core.formatting import PHASES, listed, number, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Number,
    Rule,
    claim_of,
    declared_evidence,
    number_of,
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
    state = CLEAR if p <= SIGNIFICANT else OPEN
    return _finding(results, cited, state, _claim(first, p, "best"), reason=_why_open(rows))


def _why_open(rows: _Rows) -> str:
    """Why the best is not clear of each other one; empty if it is."""
    unknown = [row for row in rows if row.p is None]
    if unknown:
        return unknown[0].how or "there is no interval"
    rivals = [row.base_value for row in rows if (row.p or 0.0) > SIGNIFICANT]
    return f"cannot be told from {listed(rivals, 3)}" if rivals else ""


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
        return _finding(results, row, CLEAR, claim)
    why = row.how if row.p is None else "the interval includes 1"
    return _finding(results, row, OPEN, claim, reason=why)


def _clearest(results: ExperimentResults, rows: _Rows) -> Finding:
    """Where two values differ most clearly, among all points (Bonferroni)."""
    row = min(rows, key=lambda row: 1.0 if row.p is None else row.p)
    p = min(1.0, (1.0 if row.p is None else row.p) * len(rows))
    state = CLEAR if p <= SIGNIFICANT else OPEN if row.question == INPUT else SILENT
    return _finding(results, row, state, _claim(row, p, "clearest"), row.how if p == 1.0 else "")


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
    p, reason = None, "single runs"
    if len(pairs) > 1:
        p = float(binomtest(above, len(pairs)).pvalue)
        reason += f", higher in {above} of {len(pairs)} pairs (sign test, p = {number(p, 2)})"
    claim = claim_of(p, "sign test", rows[0].parameter)
    state = CLEAR if p is not None and p < SIGNIFICANT else OPEN
    return _finding(results, cited, state, claim, reason=reason)


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
        furthest = max(best, key=lambda row: abs(math.log(row.ratio.value)) if row.ratio else 0.0)
        findings.append(_note(results, furthest, "effects"))
    medians = [
        row
        for row in rows
        if row.question == SCALING and row.statistic == "median" and (row.pairs or 0) >= MIN_SERIES
    ]
    if medians:
        findings.append(_note(results, max(medians, key=lambda row: float(row.value)), "medians"))
    return findings


def _note(results: ExperimentResults, row: Comparison, rule: str) -> Finding:
    numbers = (number_of("pairs", row.pairs, "1"), _ratio(row))
    evidence = declared_evidence(results, row) | {"parameter": row.parameter}
    evidence["key"] = {"source": row.source}
    words = _words(results, row)
    return Finding(results.name, rule, NOTE, numbers=numbers, words=words, evidence=evidence)


def _shortened(
    results: ExperimentResults, parameter: str, findings: Iterable[Finding]
) -> list[Finding]:
    """The first clear ones, and of those that are open one for all beyond the second."""
    clear: list[Finding] = []
    open_: list[Finding] = []
    for finding in findings:
        (clear if finding.state == CLEAR else open_).append(finding)
    kept = [*clear[:MOST], *(replace(each, state=SILENT) for each in clear[MOST:])]
    for left, state in ((clear[MOST:], CLEAR), (open_[2:], OPEN)):
        if left:
            words, numbers = {"of_state": state}, (number_of("more", len(left), "1"),)
            more = Finding(
                results.name, left[0].rule, NOTE, subject=parameter, words=words, numbers=numbers,
                evidence=left[0].evidence,
            )  # fmt: skip
            kept.append(more)
    return [*kept, *open_[:2], *(replace(each, state=SILENT) for each in open_[2:])]


def _finding(
    results: ExperimentResults, row: Comparison, state: str, claim: Claim, reason: str = ""
) -> Finding:
    evidence = declared_evidence(results, row) | {"parameter": row.parameter}
    rule = RULE.get(row.question, "best" if row.against == BEST else "ratio")
    numbers = (*_mean(results, row), _ratio(row))
    flags = (f"no result at {row.lacking}",) if row.lacking else ()
    return Finding(
        results.name, rule, state, evidence=evidence, numbers=numbers, claims=(claim,),
        subject=_over(row), words=_words(results, row), reason=reason, flags=flags,
    )  # fmt: skip


def _claim(row: Comparison, p: float | None, what: str) -> Claim:
    """Told apart from others by the two points and what is compared."""
    return claim_of(p, what, row.question, row.parameter, row.metric, row.phase, row.point_id,
                    row.base_id, row.value)  # fmt: skip


def _over(row: Comparison) -> str:
    """``b over a (mode)``."""
    if row.question == PHASE:
        return "Later epochs over the first"
    return f"{row.value} over {row.base_value} ({row.parameter})"


def _words(results: ExperimentResults, row: Comparison) -> dict[str, str]:
    """What templates name of a comparison."""
    at = f" at {results.describe(row.point)}" if row.question in (PHASE, SITE) else ""
    when = f" ({PHASES[row.phase]})" if row.question == INPUT else ""
    return {
        "parameter": row.parameter, "value": row.value, "other": row.base_value,
        "setting": _setting(results, row),
        "metric": f"{_label(results, row)}{when}", "at": at or _at(results, row),
        "side": "highest" if row.better == "higher" else "lowest",
    }  # fmt: skip


def _ratio(row: Comparison) -> Number:
    known = row.ratio
    ends = (None, None, None) if known is None else (known.value, known.low, known.high)
    return number_of("ratio", ends[0], "1", *ends[1:])


def _at(results: ExperimentResults, row: Comparison) -> str:
    """The point, but for what is compared."""
    names = row.parameter.split(", ")
    rest = [n for n in results.leaders if n not in names and row.point.get(n) is not None]
    return f" at {results.describe(row.point, rest)}" if rest else ""


def _setting(results: ExperimentResults, row: Comparison) -> str:
    """The values of a choice with their parameters."""
    names = row.parameter.split(", ")
    return results.describe(row.point, names) if len(names) > 1 else f"{names[0]} {row.value}"


def _label(results: ExperimentResults, row: Comparison) -> str:
    measure = results.measures.get(row.metric)
    label = row.metric.replace("_", " ") if measure is None else measure.label
    return label[:1].lower() + label[1:] if label[1:2].islower() or " " in label[:2] else label


def _mean(results: ExperimentResults, row: Comparison) -> tuple[Number, ...]:
    measure = results.measures.get(row.metric)
    if measure is None or row.mean is None:
        return (number_of("mean", row.mean, "1"),)
    return (number_of("mean", row.mean * measure.factor, measure.unit or "1"),)


_ALL = ("heatmap", "parameter", "groups", "compare-", "scaling", "overview-")
_MORE = "More comparisons of {subject} in the table that are {of_state}: {more}."
_BEST = {
    CLEAR: "Best{at} is {setting}: {metric} relative to {other}: {ratio:x}.",
    OPEN: "{side} {metric} measured{at}, with {setting}: {mean}.",
    NOTE: _MORE,
}
_RATIO = {CLEAR: "{subject}: {metric}{at} is {ratio:x}.", NOTE: _MORE}
_REPEAT = {OPEN: "add repeats: `repeats` in the campaign; those that are done stay"}
RULES = (
    Rule("best", best_choice, _BEST, _REPEAT, figures=_ALL, on_main=True),
    Rule("threads", None, _BEST, _REPEAT, figures=_ALL, on_main=True),
    Rule("target", None, _BEST, _REPEAT, figures=("accuracy-",)),
    Rule("energy", None, _BEST, _REPEAT,
         figures=("energy-phases", "accuracy-energy", "power-")),
    Rule("ratio", ratios, _RATIO, _REPEAT, figures=("ratio-", "compare-"), on_main=True),
    Rule("sites", None, _RATIO, _REPEAT, figures=("sites-",), on_main=True),
    Rule("input cost", None, _RATIO, _REPEAT, figures=("compare-input", "ratio-input")),
    Rule("final accuracy", None, _RATIO, _REPEAT, figures=("accuracy-",)),
    Rule("cache", None, _RATIO, figures=("scaling", "parameter", "heatmap", "groups"),
         on_main=True),
    Rule("effects", averages, figures=("groups", "heatmap", "compare-"),
         says={NOTE: "Best on average over {pairs} settings is {setting}: {metric} relative to "
               "{other}: {ratio:x}."}),
    Rule("medians", None, figures=("overview-", "scaling-"),
         says={NOTE: "Median over {pairs} series of {metric} at {parameter} {value}, over "
               "{other}: {ratio:x}."}),
    Rule("settings", benchmark_settings,
         says={NOTE: "Benchmarks differ in the settings that they share: {subject}."},
         next={NOTE: "give all the same values, to compare the programs alone"}),
)  # fmt: skip
