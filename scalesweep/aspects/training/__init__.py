"""What training gave: time, rate, loss, accuracy and energy, by epoch and by point."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "figure", "findings", "section"),
    tables={
        "accuracy": "Accuracy of each point, with the time and energy to reach it.",
        "score": "Mean time to the target without the best and the worst run, as MLPerf counts.",
    },
)
