"""What the report says of the values of one parameter with all others held.

Notes: they estimate, and claim nothing, so they take nothing from the claims of an experiment
(``findings.family``). Where pairs disagree, or the best value is seldom the best, they say so.
"""

from collections.abc import Sequence
from statistics import median

from scalesweep.aspects.effects.table import Effect
from scalesweep.core.formatting import (
    PHASES,
    counted,
    listed,
    number,
    percent,
    text_of,
    with_interval,
)
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, Number, Rule, declared_evidence, marked

MAX_VALUES = 6
MIN_SERIES = 3
_COLUMNS = ("ratio", "ratio_low", "ratio_high")


def _rows(results: ExperimentResults, name: str, phase: str) -> list[Effect]:
    """Rows on a parameter in a phase, of measured runs where there are."""
    rows = [row for row in results.of(Effect) if row.parameter == name and row.phase == phase]
    sources = {row.source for row in rows}
    source = "measured" if "measured" in sources else next(iter(results.sources), None)
    return [row for row in rows if row.source == source]


def effects_of_values(results: ExperimentResults) -> list[Finding]:
    """For each parameter but the scale what its values change, and between which the best lie; in
    all phases."""
    main = results.main
    if main is None:
        return []
    findings = []
    for name in results.grid:
        if parameter_of(results.entry, name).get("workload"):
            continue
        phases = [main.steady_phase, *(p for p in main.phases if p != main.steady_phase)]
        of_phase = {phase: rows for phase in phases if (rows := _rows(results, name, phase))}
        for rows in of_phase.values():
            findings += _changes(results, main, rows)
        findings += _best(results, main, name, of_phase)
    return findings


def _changes(results: ExperimentResults, main: Measure, rows: Sequence[Effect]) -> list[Finding]:
    """What each value changes against the base, where there are two pairs or more."""
    others = [row for row in rows if row.value != row.base and row.pairs > 1]
    if not others:
        return []
    first = others[0]
    parts = [f"{row.value} {_times(row)}" for row in others[:MAX_VALUES]]
    more = len(others) - MAX_VALUES
    text = (
        f"{first.parameter} against {first.base}, all else being equal ({main.label.lower()}, "
        f"{PHASES[first.phase]}): {'; '.join(parts)}"
        f"{_more(more, 'value')}."
    )
    numbers = tuple(
        Number(f"{row.parameter} {row.value}", row.ratio.value, "1", row.ratio.low, row.ratio.high)
        for row in others[:MAX_VALUES]
    )
    return [_note(results, first, text, numbers)]


def _times(row: Effect) -> str:
    """``0.6 (0.59 to 0.61) times, lower in all 6 pairs``; where pairs disagree, from where to
    where; and how many pairs have no ratio."""
    if not row.not_positive:
        return _ratios(row)
    pairs = counted(row.not_positive, "more pair")
    return f"{_ratios(row)}, without {pairs} of which a mean is not above 0"


def _ratios(row: Effect) -> str:
    low, high = row.ratio.low, row.ratio.high
    times = f"{with_interval(row.ratio.value, low, high)} times"
    if low is None and row.pairs >= MIN_SERIES:
        times += f" (median {number(row.median)})"
    if row.higher in (0, row.pairs) and row.least != 1 != row.most:
        unsure = low is not None and high is not None and low <= 1 <= high
        word = "higher" if row.higher else "lower"
        end = ", but the interval includes 1" if unsure else ""
        return f"{times}, {word} in {'both' if row.pairs == 2 else f'all {row.pairs}'} pairs{end}"
    return (
        f"{times} on average, from {number(row.least)} to {number(row.most)}, higher in "
        f"{row.higher} of {row.pairs} pairs"
    )


def _best(
    results: ExperimentResults, main: Measure, name: str, of_phase: dict[str, list[Effect]]
) -> list[Finding]:
    """Between which values the best lie, by phase; nothing where a value has no interval."""
    parts, row = [], None
    for phase, rows in of_phase.items():
        known = [(row, row.of_best) for row in rows if row.of_best is not None and row.settings]
        if len(known) < 3 or (known[0][0].settings or 0) < 2:
            continue
        best = next((row for row, ratio in known if ratio.value == 1 and ratio.low is None), None)
        rivals = [(row, ratio) for row, ratio in known if row is not best]
        if (
            best is None
            or not best.settings
            or any(ratio.low is None or ratio.high is None for _, ratio in rivals)
        ):
            continue
        row = row or best
        # Told apart from the best in its direction.
        apart = {
            row.value
            for row, ratio in rivals
            if ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high
        }
        left = [row.value for row, _ in known if row.value not in apart]
        words = _range(results, name, [row.value for row, _ in known], left)
        often = f"{best.value} is the best at {best.best_in} of {best.settings} settings"
        if not apart:
            parts.append(f"no value is told from the best ({PHASES[phase]}; {often})")
        elif 2 * sum(row.best_in or 0 for row, _ in known if row.value in left) <= best.settings:
            depends = "which value is the best depends on the other parameters"
            parts.append(f"{depends} ({PHASES[phase]}; {often})")
        else:
            parts.append(f"{words} ({PHASES[phase]}; {often})")
    if row is None:
        return []
    text = f"best {name} on average over all other parameters ({main.label.lower()}): "
    return [_note(results, row, f"{text}{'; '.join(parts)}.", ())]


def _range(
    results: ExperimentResults, name: str, values: Sequence[str], left: Sequence[str]
) -> str:
    """``12 to 24`` of neighbours among numbers, else all of them."""
    if not results.numeric(name) or len(left) < 2:
        return listed(list(left), MAX_VALUES)
    order = sorted(values, key=float)
    places = sorted(order.index(value) for value in left)
    if places == list(range(places[0], places[-1] + 1)):
        return f"{order[places[0]]} to {order[places[-1]]}"
    return listed([order[place] for place in places], MAX_VALUES)


def medians_over_series(results: ExperimentResults) -> list[Finding]:
    """The median ratio and efficiency over all series that have the smallest scale."""
    main = results.main
    if main is None or not main.higher or results.scale not in results.leaders:
        return []
    if results.scaled_measure is not main:
        return []
    findings = []
    for phase in main.phases:
        rows = [
            row
            for row in _rows(results, results.scale, phase)
            if row.value != row.base and row.pairs >= MIN_SERIES
        ]
        if not rows:
            continue
        parts, numbers = [], []
        for row in rows[:MAX_VALUES]:
            share = _median_efficiency(results, main, phase, row)
            numbers.append(Number(f"median ratio at {row.value}", row.median, "1"))
            words = counted(row.pairs, "series", "series")
            if share is not None:
                numbers.append(Number(f"median efficiency at {row.value}", share, "1"))
                words = f"efficiency {percent(share)}, {words}"
            parts.append(
                f"{number(row.median)} times at {results.scaled(int(row.value))} ({words})"
            )
        more = len(rows) - MAX_VALUES
        text = (
            f"median over the series that have {results.scaled(int(rows[0].base))}, "
            f"{main.label.lower()} ({PHASES[phase]}): {', '.join(parts)}"
            f"{_more(more, 'scale')}."
        )
        findings.append(_note(results, rows[0], text, tuple(numbers), "medians"))
    return findings


def _median_efficiency(
    results: ExperimentResults, main: Measure, phase: str, row: Effect
) -> float | None:
    """The median efficiency at a scale over the series of an effect, by the table ``scaling``: what
    is ideal depends on whether the metric is of a rank or of all. None where it has not all."""
    base = f"base_{results.scale}"
    efficiencies = [
        main.efficiency(at, phase)[0]
        for at in results.scaling
        if (text_of(at[results.scale]), text_of(at.get(base))) == (row.value, row.base)
        and at["source"] == row.source
    ]
    known = [value for value in efficiencies if value is not None]
    return median(known) if len(known) == row.pairs else None


def _more(count: int, noun: str) -> str:
    return f"; {counted(count, f'more {noun}')} in the table effects" if count > 0 else ""


def _note(
    results: ExperimentResults,
    row: Effect,
    text: str,
    numbers: Sequence[Number],
    rule: str = "effects",
) -> Finding:
    evidence = declared_evidence(results, row, _COLUMNS)
    evidence |= {"parameter": row.parameter, "key": {"source": row.source}}
    text = marked(row.source, text, capital=False)
    return Finding(results.name, rule, NOTE, text, evidence, tuple(numbers))


RULES = (
    Rule(effects_of_values, figures={"effects": ("groups", "heatmap", "compare-")}),
    Rule(medians_over_series, figures={"medians": ("overview-", "scaling-")}),
)
