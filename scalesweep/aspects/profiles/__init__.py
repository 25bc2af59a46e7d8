"""Where the time of profiled runs goes: parts of a program, functions, traces and timelines."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "collectives": "Calls of each rank in PyTorch's traces by process group and operation: "
        "sizes, exposed and overlapped time.",
        "lateness": "How late each rank begins the collectives of a process group.",
        "operations": "Time of TensorFlow's operations per step, by device and type.",
        "parts": "The time of each part of a program at each point.",
        "timeline": "What the Horovod timeline shows: time of negotiation, queues and collectives "
        "by tensor.",
    },
)
