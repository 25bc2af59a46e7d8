"""Findings on demand: from which count on training would wait for what is read."""

from collections.abc import Sequence

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.aspects.reading.demand import Demand
from scalesweep.core.formatting import PHASES, counted, listed, with_interval
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    marked,
)

RULE = "demand"
MOST = 4
COLUMNS = ("factor", "factor_low", "factor_high", "rate", "consumed")


def demands(results: ExperimentResults) -> dict[Key, list[Demand]]:
    """Rows by series, source, phase and training, each by rank count."""
    groups: dict[Key, list[Demand]] = {}
    for row in results.of(Demand):
        series = series_of(results, row)
        groups.setdefault((*series, row.source, row.phase, row.where), []).append(row)
    return {
        key: sorted(rows, key=lambda row: count_of(results, row)) for key, rows in groups.items()
    }


def series_names(results: ExperimentResults) -> list[str]:
    """What tells points of one count apart, also where an experiment has one count."""
    return [name for name in results.leaders if name != results.scale]


def series_of(results: ExperimentResults, row: Demand) -> Key:
    """The values of ``series_names`` of a row."""
    return results.key(row.point, series_names(results))


def input_bound(results: ExperimentResults) -> list[Finding]:
    """Of each series and training, whether the first epoch keeps up with it, and from where not.

    The first epoch reads files; what later ones take from memory is in the table. At each count
    training waits where the whole interval of the factor lies above 1. The count from which on it
    does is chosen by the same data: its p value is the largest of those counts, times their number.
    """
    groups = [rows for rows in demands(results).values() if rows[0].phase == "init"]
    findings = [_finding(results, rows) for rows in groups[:MOST]]
    return [*findings, *_more(results, groups[MOST:])]


def _more(results: ExperimentResults, groups: Sequence[Sequence[Demand]]) -> list[Finding]:
    """That nothing is said of these combinations of reading and training; nothing without any."""
    if not groups:
        return []
    others = counted(len(groups), "more combination")
    text = f"{others} of reading and training: only in the table demand; the sentences above are "
    text += f"on the first {MOST}."
    row = groups[0][0]
    evidence = declared_evidence(results, row, COLUMNS)
    evidence["key"] |= {"phase": row.phase, "where": row.where}
    return [Finding(results.name, RULE, NOTE, text, evidence)]


def _finding(results: ExperimentResults, rows: Sequence[Demand]) -> Finding:
    last, training = rows[-1], f"training on dummy input ({rows[0].where})"
    evidence = declared_evidence(results, last, COLUMNS)
    evidence["key"] |= {"phase": last.phase, "where": last.where}
    if last.refused:
        text = f"reading is not compared with what {training} consumes: the samples differ "
        text += f"({last.refused})."
        return Finding(results.name, RULE, NOTE, marked(last.source, text), evidence)
    # Of a count with several points of reading none is chosen: each is in a series of its own.
    slow = [row for row in rows if _above(row)]
    fast = [row for row in rows if _below(row)]
    on = next((place for place in range(len(rows)) if all(map(_above, rows[place:]))), None)
    every = f"the {counted(len(rows), 'count')} measured in both"
    if on is not None:
        first = rows[on]
        if on == 0 and len(rows) > 1:
            where = f"at each of {every}"
        else:
            where = (
                f"at {_at(results, first)}" if first is last else f"from {_at(results, first)} on"
            )
        text = f"input-bound {where}: {_rates(first)}"
        text += f" at {_at(results, first)}" if on == 0 and len(rows) > 1 else ""
        text += f", {_factor(first)}"
        if last is not first:
            text += f", and {_factor(last)} at {_at(results, last)}"
        level, cited, evidence_row = CONFIRMED, rows[on:], first
        p = _p(cited, len(rows))
    elif len(fast) == len(rows):
        least = max(rows, key=lambda row: row.factor.value if row.factor else 0.0)
        text = f"reading keeps up at {every}: {_rates(least)} at {_at(results, least)}, "
        text += "where it is closest"
        level, evidence_row, p = CONFIRMED, least, _p(rows, 1)
    else:
        names = listed([_at(results, row) for row in slow], 3)
        text = f"whether reading keeps up is not clear at all of {every}"
        text += f" (clearly not at {names})" if slow else ""
        text += f": {_rates(last)} at {_at(results, last)}, {_factor(last)}"
        level, evidence_row, p = OPEN, last, 1.0
    text += f"; {PHASES['init']}, against {training}{_differences(results, rows)}"
    if varied := series_names(results):
        text = f"{results.describe(last.row, varied)}: {text}"
    evidence = declared_evidence(results, evidence_row, COLUMNS)
    evidence["key"] |= {"phase": last.phase, "where": last.where}
    level = OPEN if p >= SIGNIFICANT else level
    key = (*series_of(results, last), last.source, last.where)
    claims = (claim_of(p, RULE, *key),)
    text = marked(last.source, f"{text}{'' if level == CONFIRMED else '; not confirmed'}.")
    return Finding(results.name, RULE, level, text, evidence, claims=claims)


def _differences(results: ExperimentResults, rows: Sequence[Demand]) -> str:
    """In what reading and training differ; by count where that changes with it."""
    words = {row.differs for row in rows}
    if words == {""}:
        return ""
    if len(words) == 1:
        return f"; the two differ in {rows[0].differs}"
    parts = [f"{row.differs} at {_at(results, row)}" for row in rows if row.differs]
    return f"; the two differ in {listed(parts, 3)}"


def count_of(results: ExperimentResults, row: Demand) -> int:
    """What the point scales over, also where an experiment has one count."""
    return int(parameters_at(results.entry, row.point).get(results.scale) or 1)


def _above(row: Demand) -> bool:
    return row.factor is not None and row.factor.low is not None and row.factor.low > 1


def _below(row: Demand) -> bool:
    return row.factor is not None and row.factor.high is not None and row.factor.high < 1


def _p(rows: Sequence[Demand], choices: int) -> float:
    """Of what is claimed at each of some counts, which were chosen among so many."""
    chances = [1.0 if row.factor_p is None else row.factor_p for row in rows]
    return min(1.0, max(chances) * choices)


def _at(results: ExperimentResults, row: Demand) -> str:
    return results.scaled(count_of(results, row))


def _rates(row: Demand) -> str:
    read, used = (
        with_interval(rate.value, rate.low, rate.high) for rate in (row.rate, row.consumed)
    )
    return f"{read} samples/s are read and training consumes {used}"


def _factor(row: Demand) -> str:
    factor = row.factor
    assert factor is not None
    return f"a factor of {with_interval(factor.value, factor.low, factor.high)}"


RULE_OF_DEMAND = Rule(input_bound, figures={RULE: ("demand",)})
