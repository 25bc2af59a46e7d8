"""Which GPUs the runs of a point could see, where they differ: clocks, links, and the rate."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure"),
    tables={"gpus": "The GPUs of each point, their clocks and links, where these differ."},
)
