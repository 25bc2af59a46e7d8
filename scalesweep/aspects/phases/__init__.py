"""Where the time and the energy of a run go, by phase."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "section"),
    tables={"phases": "Seconds, and joules where known, of every phase of every point."},
)
