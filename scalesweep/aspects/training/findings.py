"""The finding on training: MLPerf's score."""

from scalesweep.aspects.training.score import Score
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    ATTENTION,
    CLEAR,
    OPEN,
    Finding,
    Rule,
    declared_evidence,
    number_of,
)

MAX_POINTS, LEAST_RUNS = 4, 3  # of scores


def score(results: ExperimentResults) -> list[Finding]:
    """The score of the first points of three runs or more, or why one has none."""
    rows = [row for row in results.of(Score) if row.runs >= LEAST_RUNS]
    return [_score(results, row) for row in rows[:MAX_POINTS]]


def _score(results: ExperimentResults, row: Score) -> Finding:
    missed = row.runs - row.reached
    missed_words = f"{missed:,} of {counted(row.runs, 'run')} missed the target"
    flags: list[str] = []
    if row.score is None:
        state, why = ATTENTION, missed_words
        if row.factor is None:
            why = "its runs state several factors"
    else:
        state = CLEAR if row.runs == row.asked else OPEN
        why = f"MLPerf takes {row.asked or 'another number of'} runs" if state == OPEN else ""
        flags = [f"{row.dropped} best and {row.dropped} worst dropped"]
        flags += [missed_words] if missed else []
        flags += [f"times {number(row.factor, 6)} (scaling.json)"] if row.factor != 1 else []
    return Finding(
        results.name, "score", state, evidence=declared_evidence(results, row), reason=why,
        words={"at": f" at {results.describe(row.point)}" if results.axes else ""},
        numbers=(
            number_of("runs", row.runs, "1"), number_of("score", row.score, "s"),
            number_of("dropped", row.dropped, "1"),
        ),
        flags=tuple(flags),
    )  # fmt: skip


RULES = (
    Rule(
        "score", score,
        says={
            CLEAR: "MLPerf score{at} of {runs} runs: {score}.",
            ATTENTION: "No MLPerf score{at} of {runs} runs.",
        },
        next={
            OPEN: "add runs until MLPerf's number is reached",
            ATTENTION: "import what the submission has: scaling.json, runs that reach the target "
            "({dropped} may miss it)",
        },
    ),
)  # fmt: skip
