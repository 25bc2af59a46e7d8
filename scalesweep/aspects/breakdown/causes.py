"""Findings on causes: which rank makes the others wait in which steps, and what that costs.

What a step would be without a cause is a replay of the steps (``analysis.step_delays``), never a
subtraction of means; effects that overlap are said to.
"""

from collections.abc import Sequence

from scalesweep.analysis.step_delays import RARE
from scalesweep.analysis.step_work import NAMED
from scalesweep.aspects.breakdown.ledgers import Ledger, ledgers
from scalesweep.aspects.breakdown.losses import (
    BEYOND,
    PAST_IDEAL,
    causes_in_losses,
    faster,
    who_is_faster,
)
from scalesweep.aspects.steps.cause_words import (
    NOTABLE,
    STANDS_IN,
    clock_words,
    few_stalls,
    hidden,
    is_sure,
    names_ranks,
    phrase,
    phrases,
    within_words,
)
from scalesweep.aspects.steps.causes import Cause, PointCauses, point_causes
from scalesweep.core.formatting import counted, number, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, OPEN, Finding, marked

RULE = "causes"
MOST = 4  # of a point
CONTRADICTED = "not confirmed: the rate of samples and the step times contradict each other"


def step_causes(results: ExperimentResults) -> list[Finding]:
    """Of each point that has been looked at what costs 2 % of a step or more, the most first.

    Clear over several repeats, if the interval of what the steps gain without it lies above 0 for
    the largest of all that might have been. Where causes hide each other they are named together.
    What the sentence on the largest loss has said already is left out.
    """
    said = causes_in_losses(results)
    return [
        finding for place, point in enumerate(point_causes(results))
        for finding in _of_point(results, point, said.get(place, ()))
    ]  # fmt: skip


def _of_point(
    results: ExperimentResults, point: PointCauses, said: Sequence[Cause]
) -> list[Finding]:
    least = NOTABLE * point.together.numbers["step_ms"]
    notable = [
        cause for cause in point.causes if cause.numbers["gain_ms"] >= least and cause not in said
    ]
    findings = [_finding(results, point, cause) for cause in notable[:MOST]]
    overlap = hidden(point)
    if overlap and not all(cause in said for cause in overlap):
        findings.append(_together(results, point, overlap))
    return findings


def _finding(results: ExperimentResults, point: PointCauses, cause: Cause) -> Finding:
    text = _capital(phrase(cause))
    text += f", at {results.describe(point.row)}" if results.axes else ""
    text += f": without it a step would be {_gain(cause)} shorter"
    ledger = _ledger(results, point)
    # Who is late only beside ranks that are faster than at the reference is no culprit.
    beside = ledger is not None and ledger.ideal is not None and faster(ledger) > 0
    text += "" if beside else _reached(results, point, cause)
    text += f" (a replay of the steps of {counted(point.repeats, 'run')})"
    sure = is_sure(cause) and not beside and not _contradicted(results, point)
    if beside and ledger is not None and not clock_words(cause):
        text += f"; compared with other ranks, not the reference: {who_is_faster(results, ledger)}"
    elif not sure:
        text += f"; {_why(cause, point) if not _contradicted(results, point) else CONTRADICTED}"
    return _cause_finding(results, point, cause, CLEAR if sure else OPEN, f"{text}.", [cause])


def _why(cause: Cause, point: PointCauses) -> str:
    if point.repeats == 1:
        return "one run, not confirmed"
    if cause.side_effects:
        return f"not confirmed: {cause.side_effects} in the step may have shifted its time stamps"
    another = "" if names_ranks(cause) else "it is another rank in each run"
    if said := clock_words(cause) or another or within_words(cause.within, cause.pattern):
        return f"not confirmed: {said}"
    if cause.pattern == RARE:
        return f"not confirmed: {few_stalls(cause) or STANDS_IN}"
    return "not confirmed by the interval"


def _together(results: ExperimentResults, point: PointCauses, causes: Sequence[Cause]) -> Finding:
    """The sentence on causes that hide each other."""
    both = point.together
    alone = sum(cause.numbers["gain_ms"] for cause in causes)
    text = _capital(phrases(causes))
    text += f", at {results.describe(point.row)}" if results.axes else ""
    text += (
        f"; these hide each other: without all of them a step would be {_gain(both)} shorter"
        f"{_reached(results, point, both)}, without one at a time {number(alone)} ms in sum"
    )
    contradicted = _contradicted(results, point)
    rounded = next((cause for cause in causes if clock_words(cause)), None)
    sure = is_sure(both) and all(names_ranks(cause) for cause in causes) and not contradicted
    sure = sure and rounded is None
    text += "" if sure else f"; {CONTRADICTED if contradicted else _why(rounded or both, point)}"
    return _cause_finding(results, point, both, CLEAR if sure else OPEN, f"{text}.", causes)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _gain(cause: Cause) -> str:
    return with_interval(*cause.bounds("gain"), unit="ms")


def _reached(results: ExperimentResults, point: PointCauses, cause: Cause) -> str:
    """What share of the ideal step would be reached without a cause; empty where none is known."""
    ledger = _ledger(results, point)
    if ledger is None or ledger.ideal is None:
        return ""
    left = ledger.elapsed.value - cause.numbers["gain_ms"]
    if left <= 0:
        return ""
    same = _at_reference(ledger, cause)
    share = (ledger.ideal.value - same) / left
    if share >= BEYOND:
        return f", {PAST_IDEAL}"
    return f" and reach {100 * share:.0f} % of the ideal" + (", without it there too" * (same > 0))


def _at_reference(ledger: Ledger, cause: Cause) -> float:
    """Ms of the ideal step that the reference has of an activity too, where it names it."""
    part = ledger.parts.get(cause.cause) if cause.cause in NAMED else None
    if part is None or part.loss is None or ledger.ideal is None:
        return 0.0
    same = part.value - part.loss
    return same if same >= NOTABLE * ledger.ideal.value else 0.0


def _contradicted(results: ExperimentResults, point: PointCauses) -> bool:
    """Whether the rate of samples contradicts the steps of a point."""
    key = (*results.key(point.row, results.axes), point.row["source"])
    return any(
        ledger.contradicts and (*results.key(ledger.row, results.axes), ledger.row["source"]) == key
        for ledger in ledgers(results)
    )


def _ledger(results: ExperimentResults, point: PointCauses) -> Ledger | None:
    key = (*results.key(point.row, results.axes), point.row["source"])
    for ledger in ledgers(results):
        if (*results.key(ledger.row, results.axes), ledger.row["source"]) == key:
            known = ledger.elapsed.loss is not None and not ledger.contradicts
            return ledger if known else None
    return None


def _cause_finding(
    results: ExperimentResults,
    point: PointCauses,
    cause: Cause,
    level: str,
    text: str,
    causes: Sequence[Cause],
) -> Finding:
    evidence = {
        "experiment": results.name,
        "table": "causes",
        "key": {name: point.row.get(name) for name in results.axes}
        | {"source": point.row["source"]},
        "numbers": dict(cause.numbers),
        "causes": [
            {"cause": each.cause, "pattern": each.pattern, "ranks": list(each.ranks)}
            for each in causes
        ],
    }
    return Finding(results.name, RULE, level, marked(point.row["source"], text), evidence)
