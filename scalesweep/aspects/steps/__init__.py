"""Where the time of a step goes, what makes steps longer, and which ranks are slow."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "efficiency": "The time of a step by loss, and the factors of the efficiency, at each "
        "point.",
        "first_epoch": "The time of the first epoch by loss, at each point.",
        "causes": "What makes steps longer: ranks, cause, steps, and what a replay gains "
        "without it.",
        "steps": "Quantiles, stalls and drift of the steps of each run and rank.",
        "pipeline_idle": "What stages of a pipeline wait for, beside the ideal.",
        "stragglers": "Ranks and hosts that are slower than the others.",
    },
)
