"""Where the time of profiled runs goes: parts of a program, functions, traces and timelines."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "operations": "Time of the framework's operations per step, by device and type.",
        "parts": "The time of each part of a program at each point.",
        "timeline": "What the Horovod timeline shows: time of negotiation, queues and collectives "
        "by tensor.",
    },
)
