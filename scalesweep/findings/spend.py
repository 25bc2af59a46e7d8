"""Findings on a budget that is spent in rounds: what it went to, and why."""

from scalesweep.core.formatting import counted
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding
from scalesweep.planning.adaptive_text import decision_text


def spent(results: ExperimentResults) -> list[Finding]:
    """What of the budget is spent, why it ended, and a finding for each decision."""
    spend = results.entry.get("spend")
    if not spend:
        return []
    rounds = spend["rounds"]
    state = f"It ended: {spend['ended']}" if spend["ended"] else "It goes on"
    goal = "" if spend["until"] is None else f", until ±{100 * spend['until']:.3g} %"
    target = f" on {spend['target']}" if spend["target"] else ""
    head = (
        f"{spend['spent']:.3g} of {spend['budget']:g} node-hours are spent{target}{goal}: the "
        f"first runs, then {counted(len(rounds), 'decision')} in "
        f"{counted(max((round['round'] for round in rounds), default=0), 'round')}. {state}."
    )
    texts = [head, *(f"{_sentence(decision_text(results.entry, round))}." for round in rounds)]
    numbers = {"budget": spend["budget"], "spent": spend["spent"], "rounds": len(rounds)}
    evidence = {"experiment": results.name, "table": "points", "key": {}, "numbers": numbers}
    return [Finding(results.name, "spend", NOTE, text, evidence) for text in texts]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
