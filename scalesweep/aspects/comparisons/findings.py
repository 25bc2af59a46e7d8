"""What the table of comparisons says: which value is best, and one value over another."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scalesweep.analysis.stats import ONE_REPEAT, SIGNIFICANT
from scalesweep.core.formatting import PHASES, counted, listed, number
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    DISAGREE,
    NOTE,
    OPEN,
    REPEAT,
    SAME,
    SILENT,
    VARY,
    Claim,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    number_of,
)
from scalesweep.findings.totals import unsure_total
from scalesweep.tables.comparisons import (
    BEST,
    INPUT,
    PHASE,
    RATIO,
    REFERENCE,
    SCALING,
    Comparison,
    compared_parameters,
)

MOST, MOST_OPEN = 6, 2  # that are said of one parameter
# Questions of which one sentence names the point where the two values differ most clearly.
CLEAREST = (PHASE, INPUT)
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
        findings += _shortened([_best(results, rows) for rows in among])
    return findings


def _largest_scale(results: ExperimentResults, groups: Sequence[_Rows]) -> list[_Rows]:
    """Of what is compared scale by scale the groups at the largest scale, by what is computed."""
    kept: dict[tuple[object, ...], _Rows] = {}
    for rows in groups:
        point, names = rows[0].point, rows[0].parameter.split(", ")
        key = results.key(point, [n for n in results.leaders if n not in (*names, results.scale)])
        if results.scale in names or results.scale not in results.leaders:
            kept[*key, len(kept)] = rows
        elif key not in kept or results.scale_of(point) > results.scale_of(kept[key][0].point):
            kept[key] = rows
    return [*kept.values()]


def _best(results: ExperimentResults, rows: _Rows) -> Finding:
    """The sentence on a group: ``rows`` are the best over each other one, the next first."""
    p = max((_p(row) for row in rows), default=1.0)
    unknown = [row.how or "there is no interval" for row in rows if row.p is None]
    rivals = [row.base_value for row in rows if _p(row) > SIGNIFICANT]
    why = unknown[0] if unknown else f"cannot be told from {listed(rivals, 3)}" if rivals else ""
    state = CLEAR if p <= SIGNIFICANT else OPEN
    return _finding(results, "best", rows[0], state, _claim(rows[0], p, "best"), why)


def ratios(results: ExperimentResults) -> list[Finding]:
    """One value over another one: of two values of a parameter, of an input over none, later epochs
    over the first, the largest scale over the smallest; and averages over pairs."""
    groups: dict[tuple[str, ...], _Rows] = {}
    for row in comparisons(results):
        if row.against == REFERENCE and row.quantity == RATIO and row.statistic is None:
            key = (row.question, row.parameter, row.metric, row.phase)
            groups.setdefault(key, []).append(row)
    choices = [", ".join(names) for names in compared_parameters(results.entry)]
    findings: list[Finding] = []
    for (question, parameter, *_), rows in groups.items():
        if question in CLEAREST:
            findings.append(_one_ratio(results, rows))
        elif question == SCALING or (parameter in choices and len({r.value for r in rows}) == 1):
            single = [row for row in rows if row.how == ONE_REPEAT]
            each = [_one_ratio(results, [row]) for row in rows if row not in single]
            findings += _shortened(each)
            findings += [_single_runs(results, single)] if single else []
    return findings + averages(results)


def _one_ratio(results: ExperimentResults, rows: _Rows) -> Finding:
    """The ratio of two values, of several the clearest (Bonferroni)."""
    row = min(rows, key=_p)
    p = min(1.0, _p(row) * len(rows))
    state = CLEAR if p <= SIGNIFICANT else SILENT if row.question == PHASE else OPEN
    why = "the interval includes 1" if _p(row) > SIGNIFICANT else f"the clearest of {len(rows)}"
    why = "" if state == CLEAR else row.how if row.p is None else why
    return _finding(results, "ratio", row, state, _claim(row, p, "ratio"), why)


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
    p, why = None, "single runs"
    if len(pairs) > 1:
        p = float(binomtest(above, len(pairs)).pvalue)
        why += f", higher in {above} of {len(pairs)} pairs (sign test, p = {number(p, 2)})"
    claim = claim_of(p, "sign test", rows[0].parameter)
    state = CLEAR if p is not None and p < SIGNIFICANT else OPEN
    return _finding(results, "ratio", cited, state, claim, why)


def averages(results: ExperimentResults) -> list[Finding]:
    """What a parameter changes most on average over all others, of the scale the median over
    series: notes, which claim nothing."""
    noted: _Rows = []
    for name in [*results.grid, results.scale]:
        wanted = name, "median" if name == results.scale else "mean"
        rows = [row for row in comparisons(results)
                if (row.parameter, row.statistic) == wanted and (row.pairs or 0) > 1]  # fmt: skip
        noted += sorted(rows, key=lambda r: -abs(math.log(r.ratio.value)) if r.ratio else 0.0)[:1]
    return [_note(results, row) for row in noted]


def _note(results: ExperimentResults, row: Comparison) -> Finding:
    made = _finding(results, "ratio", row, NOTE, _claim(row, None, "average"))
    evidence = {**made.evidence, "key": {"source": row.source}}
    return replace(
        made, evidence=evidence, claims=(), words={**made.words, "average": row.statistic or ""},
        numbers=(number_of("pairs", row.pairs, "1"), made.numbers[1]),
    )  # fmt: skip


def _shortened(findings: Sequence[Finding]) -> list[Finding]:
    """The first clear ones and the first open ones; the last of each kind counts the others."""
    kept: list[Finding] = []
    for state, most in ((CLEAR, MOST), (OPEN, MOST_OPEN)):
        alike = [finding for finding in findings if finding.state == state]
        if more := alike[most:]:
            flag = f"{counted(len(more), 'more comparison')} in the table"
            alike[most - 1] = replace(alike[most - 1], flags=(*alike[most - 1].flags, flag))
        kept += [*alike[:most], *(replace(each, state=SILENT) for each in more)]
    return kept


def _finding(
    results: ExperimentResults, rule: str, row: Comparison, state: str, claim: Claim, why: str = ""
) -> Finding:
    names = row.parameter.split(", ")
    many = len(names) > 1
    measure = results.measures.get(row.metric)
    factor, unit = (measure.factor, measure.unit or "1") if measure else (1.0, "1")
    known = row.ratio
    flags = [f"no result at {row.lacking}"] if row.lacking else []
    if state == CLEAR and (unsure := unsure_total(results, row.metric)):
        state, why, flags = OPEN, unsure, [*flags, DISAGREE]
    evidence = declared_evidence(results, row)
    later = row.question == PHASE
    return Finding(
        results.name, rule, state, evidence=evidence, claims=(claim,), reason=why,
        next=VARY if why == SAME else "",
        subject="Later epochs over the first" if later
        else f"{row.value} over {row.base_value} ({row.parameter})",
        words={
            "value": row.value, "other": row.base_value, "at": _at(results, row, names),
            "setting": results.describe(row.point, names) if many else f"{names[0]} {row.value}",
            "metric": _label(results, row), "side": "highest" if row.better == "higher" else
            "lowest",
        },
        numbers=(
            number_of("mean", None if row.mean is None else row.mean * factor, unit),
            number_of("ratio", known.value, "1", known.low, known.high)
            if known else number_of("ratio", None, "1"),
        ),
        flags=tuple(flags),
    )  # fmt: skip


def _p(row: Comparison) -> float:
    return 1.0 if row.p is None else row.p


def _claim(row: Comparison, p: float | None, what: str) -> Claim:
    """Told apart from others by the two points and what is compared."""
    return claim_of(p, what, row.question, row.parameter, row.metric, row.phase, row.point_id,
                    row.base_id, row.value)  # fmt: skip


def _at(results: ExperimentResults, row: Comparison, names: Sequence[str]) -> str:
    """The point, but for what is compared."""
    if row.question == PHASE:
        return f" at {results.describe(row.point)}"
    rest = [n for n in results.leaders if n not in names and row.point.get(n) is not None]
    return f" at {results.describe(row.point, rest)}" if rest else ""


def _label(results: ExperimentResults, row: Comparison) -> str:
    measure = results.measures.get(row.metric)
    label = row.metric.replace("_", " ") if measure is None else measure.label
    small = label[1:2].islower() or " " in label[:2]  # abbreviations stay
    when = f" ({PHASES[row.phase]})" if row.question == INPUT else ""
    return f"{label[:1].lower() + label[1:] if small else label}{when}"


RULES = (
    Rule(
        "best", best_choice,
        says={
            CLEAR: "Best{at} is {setting}; {metric} over that of {other}: {ratio:x}.",
            OPEN: "{side} {metric} measured{at}, with {setting}: {mean}.",
        },
        next=REPEAT,
    ),
    Rule(
        "ratio", ratios,
        says={
            CLEAR: "{subject}, {metric}{at}: {ratio:x}.",
            NOTE: "{subject}, {metric}, {average} of {pairs} pairs of points: {ratio:x}.",
        },
        next=REPEAT,
    ),
)  # fmt: skip
