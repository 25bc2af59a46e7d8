"""MLPerf's score: the time to the target without the best and the worst run."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings"),
    tables={
        "score": "Mean time to the target without the best and the worst run, as MLPerf counts."
    },
)
