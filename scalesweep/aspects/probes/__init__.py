"""What probes found: the ceilings of a machine, and the fit of its network."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings"),
    tables={
        "network": "Latency, bandwidth and algorithm fitted to each collective, with their "
        "intervals."
    },
)
