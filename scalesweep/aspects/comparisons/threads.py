"""Findings on numbers of threads: the best setting, and by how much."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.analysis.stats import without_interval
from scalesweep.core.formatting import PHASES, counted, finite, plain, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.learning import learns
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    SILENT,
    Finding,
    best_among,
    claim_of,
    columns_of,
    evidence_of,
    marked,
    point_key,
    why_unconfirmed,
)
from scalesweep.findings.differences import Differences

RULE = "threads"
UNIT = "threads"  # of the parameters that this is about
MAX_SENTENCES = 6


def best_threads(results: ExperimentResults) -> list[Finding]:
    """The best number of threads where all else is equal, and its ratio to the default.

    Parameters of threads that vary independently are one setting. The ratio is to the default, or
    to the next best where that was not measured or is itself the best. Its interval is Student's t
    on logarithms (within blocks, else Welch's), so wide that those of all settings, among which
    the best is chosen, hold together (Bonferroni); where it holds 1, nothing is called best.
    """
    main = results.main
    names = [
        name
        for name in results.leaders
        if name != results.scale
        and parameter_of(results.entry, name).get("unit") == UNIT
        and all(value is None or finite(value) for value in results.values(name))
    ]
    if main is None or not names:
        return []
    rest = [name for name in results.leaders if name not in names]
    differences = Differences(results, main.metric, main.steady_phase)
    groups: dict[Key, list[Row]] = {}
    for row in results.points:
        values = differences.repeats(row)
        if values.size and values.min() > 0 and learns(results, row):
            groups.setdefault((*results.key(row, rest), row["source"]), []).append(row)
    findings = [
        _finding(results, main, rows, names, rest, differences)
        for rows in groups.values()
        if len(rows) > 1
    ]
    findings.sort(key=lambda finding: finding.level != CONFIRMED)
    if (more := len(findings) - MAX_SENTENCES) > 0:
        text = f"The tables have {counted(more, 'more best thread count')}."
        evidence = {"experiment": results.name, "table": "points", "key": {}, "numbers": {}}
        left = [replace(finding, level=SILENT) for finding in findings[MAX_SENTENCES:]]
        note = Finding(results.name, RULE, NOTE, text, evidence)
        findings = [*findings[:MAX_SENTENCES], note, *left]
    return findings


def _finding(
    results: ExperimentResults,
    main: Measure,
    rows: Sequence[Row],
    names: Sequence[str],
    rest: Sequence[str],
    differences: Differences,
) -> Finding:
    """The best of points that differ in their threads only."""
    phase = main.steady_phase
    values = [differences.repeats(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: float(values[i].mean()), reverse=main.higher)
    usual = _default(results, rows, names)
    best = order[0]
    other = order[1] if usual in (None, best) else usual
    assert other is not None

    def best_over(i: int) -> tuple[float, float, float]:
        ratio = differences.ratio(rows[best], rows[i], len(rows) - 1)
        assert ratio is not None
        return ratio[0], ratio[1].low, ratio[1].high

    def beaten(i: int) -> bool:
        _, low, high = best_over(i)
        return low > 1 if main.higher else high < 1

    ratio, low, high = best_over(other)
    clear = low > 1 if main.higher else high < 1
    where = f" at {results.describe(rows[best], rest)}" if rest else ""
    label = f"{main.label.lower()} ({PHASES[phase]})"
    times = f"{with_interval(ratio, low, high)} times"
    against = (
        f"the default ({results.describe(rows[other], names)})"
        if other == usual
        else f"the next best ({results.describe(rows[other], names)})"
    )
    mine = f"{results.describe(rows[best], names)}{', the default,' if best == usual else ''}"
    rivals = [i for i in order[1:] if i != other and not beaten(i)]
    if clear:
        if rivals:
            begin, verb = "threads matter", "gives"
            end = f"; indistinguishable from {counted(len(rivals), 'other')}"
        else:
            begin, verb, end = "best thread count", "with", f", clear of {_others(len(rows))}"
        text = f"{begin}{where}: {mine} {verb} {times} the {label} of {against}{end}"
    else:
        why = without_interval(values[best], values[other])
        lacks = why_unconfirmed(why) if why else "the 95 % interval includes 1"
        text = (
            f"no best thread count can be identified{where}: {mine} was measured with {times} the "
            f"{label} of {against}; {lacks}"
        )
    evidence = evidence_of(results, "points", rows[best], columns_of(main, phase))
    evidence["numbers"] |= {"ratio": ratio, "ratio_low": low, "ratio_high": high}
    evidence["runner_up"] = evidence_of(results, "points", rows[other], columns_of(main, phase))
    source = rows[best]["source"]
    level = CONFIRMED if clear else OPEN
    # The best is chosen among all settings, which its interval pays for.
    p = differences.p(rows[best], rows[other]) * (len(rows) - 1)
    claim = claim_of(min(p, 1.0), RULE, *point_key(results, rows[best]))
    unless = f"best thread count measured{where}: {mine} with {times} the {label} of {against}"
    return Finding(
        results.name, RULE, level, marked(source, f"{text}."), evidence, claims=(claim,),
        unless=marked(source, unless), facts=frozenset({best_among(results, rows, phase)}),
    )  # fmt: skip


def _default(results: ExperimentResults, rows: Sequence[Row], names: Sequence[str]) -> int | None:
    """Which of the points has the defaults; None if it was not measured."""
    default = tuple(plain(parameter_of(results.entry, name)["default"]) for name in names)
    keys = [results.key(row, names) for row in rows]
    return keys.index(default) if default in keys else None


def _others(points: int) -> str:
    return f"all {points - 1:,} others" if points > 2 else "the only other"
