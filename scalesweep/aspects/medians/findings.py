"""Sentences on what is typical of many series."""

from collections.abc import Sequence

from scalesweep.aspects.medians.table import EFFICIENCY, RATIO, SPEEDUP, Median
from scalesweep.core.formatting import PHASES, listed, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    NOTE,
    Finding,
    Number,
    Rule,
    declared_evidence,
    marked,
    number_of,
)

RULE = "median over series"
NAMED = 4  # counts in a sentence, and values of a parameter


def medians_over_series(results: ExperimentResults) -> list[Finding]:
    """Median speedup by count, and median ratios, of the metric that the experiment is about.

    They describe the series that were measured and claim nothing of others.
    """
    main = results.main
    if main is None:
        return []
    rows = [row for row in results.of(Median) if row.phase == main.steady_phase]
    findings = []
    for source in dict.fromkeys(row.source for row in rows):
        of_source = [row for row in rows if row.source == source]
        for kind in (SPEEDUP, RATIO):
            groups: dict[str, list[Median]] = {}
            for row in of_source:
                if row.kind == kind:
                    groups.setdefault(row.parameter, []).append(row)
            say = _speedups if kind == SPEEDUP else _ratios
            for parameter, group in groups.items():
                shown = _spread(group) if kind == SPEEDUP else group[:NAMED]
                text, numbers = say(results, of_source, parameter, shown)
                evidence = declared_evidence(results, shown[0], ["median", "series"])
                findings.append(
                    Finding(results.name, RULE, NOTE, marked(source, text), evidence, numbers)
                )
    return findings


def _spread(rows: Sequence[Median]) -> list[Median]:
    """The smallest counts and the largest one."""
    return [*rows] if len(rows) <= NAMED else [*rows[: NAMED - 1], rows[-1]]


def _speedups(
    results: ExperimentResults, rows: Sequence[Median], parameter: str, shown: Sequence[Median]
) -> tuple[str, tuple[Number, ...]]:
    """``Median over series: 1.91 times at 2 gpus (96 % of the ideal, 46 series), ...``."""
    shares = {row.value: row for row in rows if row.kind == EFFICIENCY}
    parts = [
        f"{number(row.median)} times at {results.scaled(int(row.value))} "
        f"({percent(shares[row.value].median)} of the ideal, {row.series} series, "
        f"{number(row.lowest)} to {number(row.highest)} times)"
        for row in shown
    ]
    base = results.scaled(int(shown[0].reference))
    text = f"median speedup over series, against {base}: {listed(parts, len(parts))}."
    numbers = [
        number_of(f"{row.kind} at {row.value} {parameter}", row.median, "1")
        for each in shown
        for row in (each, shares[each.value])
    ]
    return text, tuple(numbers)


def _ratios(
    results: ExperimentResults, _rows: Sequence[Median], parameter: str, shown: Sequence[Median]
) -> tuple[str, tuple[Number, ...]]:
    """``Median over 8 pairs: NCHW over NHWC (data_format) 1.47 times the rate (1.41 to 1.73)``."""
    assert results.main is not None
    phase = PHASES.get(shown[0].phase, shown[0].phase)
    parts = [
        f"{row.value} over {row.reference} {number(row.median)} times ({number(row.lowest)} to "
        f"{number(row.highest)}, {row.series} pairs of points)"
        for row in shown
    ]
    text = (
        f"median {results.main.label.lower()} ({phase}) of otherwise equal points, {parameter}: "
        f"{listed(parts, len(parts))}."
    )
    numbers = [number_of(f"{row.value} over {row.reference}", row.median, "1") for row in shown]
    return text, tuple(numbers)


RULES = (Rule(medians_over_series),)
