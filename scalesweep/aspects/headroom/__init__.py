"""What share of what the machine could do each point takes, and which resource binds."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "headroom": "What points take of files, input pipelines, copies, computation, memory and "
        "network, beside what the campaign's probes reach."
    },
)
