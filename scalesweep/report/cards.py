"""The first screen: a card for each experiment, with links, its small figure, and what next."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.core.formatting import counted, duration
from scalesweep.core.plan_format import Plan
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.report.card_content import Next, card_of
from scalesweep.report.efficiency_chart import efficiency_chart
from scalesweep.report.links import Anchors, evidence_links
from scalesweep.tables.provenance import RunFacts


def card_section(
    plan: Plan,
    results: ExperimentResults,
    findings: Sequence[Finding],
    there: Anchors,
    facts: Mapping[str, RunFacts],
) -> dict[str, Any]:
    """The card of an experiment for the template: sentences with links, next step, figure."""
    card = card_of(results, findings)
    return {
        "sentences": [(sentence, evidence_links(sentence, there)) for sentence in card.sentences],
        "next": None if card.next is None else _next(plan, results, card.next, facts),
        "chart": efficiency_chart(results, card.verdicts),
    }


def _next(
    plan: Plan, results: ExperimentResults, step: Next, facts: Mapping[str, RunFacts]
) -> dict[str, Any]:
    """What to do next; where repeats decide, as lines of the campaign file and with their cost."""
    text = step.text[:1].upper() + step.text[1:]
    if step.repeats is None:
        return {"text": text, "snippet": None}
    ids = [run["run_id"] for run in results.entry["runs"]]
    walls = [facts[i].wall_s for i in ids if i in facts and facts[i].wall_s is not None]
    cost = counted(step.runs, "run")
    if walls:
        cost += f", about {duration(sum(wall or 0.0 for wall in walls) / len(walls) * step.runs)}"
    repeats = str(step.repeats)
    if rule := results.entry.get("repeats"):
        most = max(step.repeats, rule["most"])
        repeats = f"{{min: {step.repeats}, max: {most}, until: {100 * rule['until']:.6g} %}}"
    snippet = f"experiments:\n  {results.name}:\n    repeats: {repeats}"
    return {"text": text, "snippet": snippet, "file": plan["file"], "cost": cost}
