"""How the steps of a run are distributed, and what makes them longer."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "causes": "What makes steps longer: ranks, cause, steps, and what a replay gains "
        "without it.",
        "steps": "Quantiles, stalls and drift of the steps of each run and rank.",
    },
)
