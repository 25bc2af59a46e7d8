"""Findings on causes: which rank makes the others wait in which steps, and what that costs.

What a step would be without a cause is a replay of the steps (``analysis.step_delays``), never a
subtraction of means; effects that overlap are said to.
"""

from collections.abc import Sequence

from scalesweep.analysis.step_delays import RARE
from scalesweep.analysis.step_work import NAMED
from scalesweep.core.formatting import counted, number, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_causes import Cause, PointCauses, point_causes
from scalesweep.experiment.step_ledger import Ledger, ledgers
from scalesweep.findings.base import CONFIRMED, OPEN, Finding, marked
from scalesweep.findings.cause_words import (
    NOTABLE,
    STANDS_IN,
    clock_words,
    few_stalls,
    hidden,
    is_sure,
    names_ranks,
    phrase,
    phrases,
)
from scalesweep.findings.efficiency import (
    BEYOND,
    PAST_IDEAL,
    causes_in_losses,
    faster,
    who_is_faster,
)

RULE = "causes"
MOST = 4  # of a point
CONTRADICTED = "not confirmed: the rate of samples and the step times contradict each other"


def step_causes(study: ExperimentResults) -> list[Finding]:
    """Of each point that has been looked at what costs 2 % of a step or more, the most first.

    Clear over several repeats, if the interval of what the steps gain without it lies above 0 for
    the largest of all that might have been. Where causes hide each other they are named together.
    What the sentence on the largest loss has said already is left out.
    """
    said = causes_in_losses(study)
    return [
        finding for place, one in enumerate(point_causes(study))
        for finding in _of_point(study, one, said.get(place, ()))
    ]  # fmt: skip


def _of_point(study: ExperimentResults, point: PointCauses, said: Sequence[Cause]) -> list[Finding]:
    least = NOTABLE * point.together.numbers["step_ms"]
    notable = [one for one in point.causes if one.numbers["gain_ms"] >= least and one not in said]
    found = [_finding(study, point, one) for one in notable[:MOST]]
    overlap = hidden(point)
    if overlap and not all(one in said for one in overlap):
        found.append(_together(study, point, overlap))
    return found


def _finding(study: ExperimentResults, point: PointCauses, one: Cause) -> Finding:
    text = _capital(phrase(one))
    text += f", at {study.describe(point.row)}" if study.axes else ""
    text += f": without it a step would be {_gain(one)} shorter"
    ledger = _ledger(study, point)
    # Who is late only beside ranks that are faster than at the reference is no culprit.
    beside = ledger is not None and ledger.ideal is not None and faster(ledger) > 0
    text += "" if beside else _reached(study, point, one)
    text += f" (a replay of the steps of {counted(point.repeats, 'run')})"
    sure = is_sure(one) and not beside and not _contradicted(study, point)
    if beside and ledger is not None and not clock_words(one):
        text += f"; compared with other ranks, not the reference: {who_is_faster(study, ledger)}"
    elif not sure:
        text += f"; {_why(one, point) if not _contradicted(study, point) else CONTRADICTED}"
    return _made(study, point, one, CONFIRMED if sure else OPEN, f"{text}.", [one])


def _why(one: Cause, point: PointCauses) -> str:
    if point.repeats == 1:
        return "one run, not confirmed"
    if one.side_effects:
        return f"not confirmed: {one.side_effects} in the step may have shifted its time stamps"
    if coarse := clock_words(one):
        return f"not confirmed: {coarse}"
    if not names_ranks(one):
        return "not confirmed: it is another rank in each run"
    if one.pattern == RARE:
        return f"not confirmed: {few_stalls(one) or STANDS_IN}"
    return "not confirmed by the interval"


def _together(study: ExperimentResults, point: PointCauses, causes: Sequence[Cause]) -> Finding:
    """The sentence on causes that hide each other."""
    both = point.together
    alone = sum(one.numbers["gain_ms"] for one in causes)
    text = _capital(phrases(causes))
    text += f", at {study.describe(point.row)}" if study.axes else ""
    text += (
        f"; these hide each other: without all of them a step would be {_gain(both)} shorter"
        f"{_reached(study, point, both)}, without one at a time {number(alone)} ms in sum"
    )
    contradicted = _contradicted(study, point)
    rounded = next((one for one in causes if clock_words(one)), None)
    sure = is_sure(both) and all(names_ranks(one) for one in causes) and not contradicted
    sure = sure and rounded is None
    text += "" if sure else f"; {CONTRADICTED if contradicted else _why(rounded or both, point)}"
    return _made(study, point, both, CONFIRMED if sure else OPEN, f"{text}.", causes)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _gain(one: Cause) -> str:
    return with_interval(*one.bounds("gain"), unit="ms")


def _reached(study: ExperimentResults, point: PointCauses, one: Cause) -> str:
    """What share of the ideal step would be reached without a cause; empty where none is known."""
    ledger = _ledger(study, point)
    if ledger is None or ledger.ideal is None:
        return ""
    left = ledger.elapsed.value - one.numbers["gain_ms"]
    if left <= 0:
        return ""
    same = _at_reference(ledger, one)
    share = (ledger.ideal.value - same) / left
    if share >= BEYOND:
        return f", {PAST_IDEAL}"
    return f" and reach {100 * share:.0f} % of the ideal" + (", without it there too" * (same > 0))


def _at_reference(ledger: Ledger, one: Cause) -> float:
    """Ms of the ideal step that the reference has of an activity too, where it names it."""
    part = ledger.parts.get(one.cause) if one.cause in NAMED else None
    if part is None or part.loss is None or ledger.ideal is None:
        return 0.0
    same = part.value - part.loss
    return same if same >= NOTABLE * ledger.ideal.value else 0.0


def _contradicted(study: ExperimentResults, point: PointCauses) -> bool:
    """Whether the rate of samples contradicts the steps of a point."""
    key = (*study.key(point.row, study.axes), point.row["source"])
    return any(
        one.contradicts and (*study.key(one.row, study.axes), one.row["source"]) == key
        for one in ledgers(study)
    )


def _ledger(study: ExperimentResults, point: PointCauses) -> Ledger | None:
    key = (*study.key(point.row, study.axes), point.row["source"])
    for one in ledgers(study):
        if (*study.key(one.row, study.axes), one.row["source"]) == key:
            known = one.elapsed.loss is not None and not one.contradicts
            return one if known else None
    return None


def _made(
    study: ExperimentResults,
    point: PointCauses,
    one: Cause,
    level: str,
    text: str,
    causes: Sequence[Cause],
) -> Finding:
    evidence = {
        "experiment": study.name,
        "table": "causes",
        "key": {name: point.row.get(name) for name in study.axes} | {"source": point.row["source"]},
        "numbers": dict(one.numbers),
        "causes": [
            {"cause": each.cause, "pattern": each.pattern, "ranks": list(each.ranks)}
            for each in causes
        ],
    }
    return Finding(study.name, RULE, level, marked(point.row["source"], text), evidence)
