"""A budget that is spent in rounds, in the plan and as text."""

import math

from scalesweep.core.formatting import counted, text_of
from scalesweep.core.plan_format import PlanExperiment, PlanRound, PlanSpend
from scalesweep.planning.spending import Spending, costs_of


def spend_entry(spending: Spending, name: str) -> PlanSpend:
    """The entry in the plan of an experiment whose points are chosen in rounds."""
    experiment = next(one for one in spending.widest.experiments if one.name == name)
    benchmark = experiment.benchmark
    rounds: list[PlanRound] = []
    for one in spending.kept.decisions:
        if one.experiment == name:
            ids = [benchmark.run_id(one.point, number) for number in one.repeats]
            rounds.append(
                {
                    "round": one.round,
                    "point": benchmark.scaled(one.point),
                    "runs": len(ids),
                    "done": sum(run_id in spending.costs for run_id in ids),
                    "question": one.question,
                    "now": one.now,
                    "expected": one.after,
                    "node_hours": one.node_hours,
                    "took": costs_of(spending, ids),
                }
            )
    return {
        "budget": spending.rule.budget,
        "spent": spending.spent,
        "reserved": spending.reserved,
        "until": spending.rule.until,
        "target": spending.rule.target,
        "ended": spending.ended,
        "rounds": rounds,
    }


def spend_lines(experiment: PlanExperiment) -> list[str]:
    """The account of an experiment's budget and every decision, a line each."""
    if (spend := experiment.get("spend")) is None:
        return []
    state = f"ended: {spend['ended']}" if spend["ended"] else "goes on"
    head = (
        f"spend: {spend['spent']:.3g} of {spend['budget']:g} node-hours spent, up to "
        f"{spend['reserved']:.3g} more planned; {state}"
    )
    return [head, *(f"  {decision_text(experiment, one)}" for one in spend["rounds"])]


def decision_text(experiment: PlanExperiment, one: PlanRound) -> str:
    """A decision: round, point, why, and its cost, expected and actual."""
    axes = [axis for axis in experiment["axes"] if axis in one["point"]]
    point = " ".join(f"{axis}={text_of(one['point'][axis])}" for axis in axes)
    took = f", took {one['took']:.3g}" if one["done"] else ""
    return (
        f"round {one['round']}: {experiment['name']} {point}, {counted(one['runs'], 'run')}: "
        f"narrows {one['question']} from {math.exp(one['now']):.3g} to an expected "
        f"{math.exp(one['expected']):.3g}; at most {one['node_hours']:.3g} node-hours{took}"
    )
