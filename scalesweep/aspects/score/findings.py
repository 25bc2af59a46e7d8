"""Findings on MLPerf's score: the time to the target without the best and the worst run."""

from scalesweep.aspects.score.table import UNCLEAR, Score
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    ATTENTION,
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    declared_evidence,
    number_of,
)

MAX_POINTS, LEAST_RUNS = 4, 3


def score(results: ExperimentResults) -> list[Finding]:
    """The score of the first points of three runs or more, or why one has none."""
    rows = [row for row in results.of(Score) if row.runs >= LEAST_RUNS or row.at_once]
    return [_finding(results, row) for row in rows[:MAX_POINTS]]


def _finding(results: ExperimentResults, row: Score) -> Finding:
    missed = row.runs - row.reached
    missed_words = f"{missed:,} of {counted(row.runs, 'run')} missed the target"
    flags, why = [], ""
    if row.score is not None:
        state = CLEAR if row.standard else OPEN
        why = "" if row.standard else f"MLPerf takes {row.asked or 'another number of'} runs"
        flags = [f"{row.dropped} best and {row.dropped} worst dropped"]
        flags += [missed_words] if missed else []
        flags += [f"times {number(row.factor, 6)} (scaling.json)"] if row.factor != 1 else []
    elif row.at_once == UNCLEAR:
        state, why = ATTENTION, "runs overlap, and no folder is named weak or strong"
    elif row.at_once:
        state, flags = NOTE, [missed_words] if missed else []
        why = "" if row.models_per_minute else "not all say when they trained"
    else:
        state = ATTENTION
        why = "its runs state several factors" if row.factor is None else missed_words
    return Finding(
        results.name, "score", state, evidence=declared_evidence(results, row), reason=why,
        words={"at": f" at {results.describe(row.point)}" if results.axes else ""},
        numbers=(
            number_of("runs", row.runs, "1"), number_of("score", row.score, "s"),
            number_of("best", row.best, "s"), number_of("worst", row.worst, "s"),
            number_of("models per minute", row.models_per_minute, "1/min"),
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
            NOTE: "Models trained at the same time{at}: {runs}, {models per minute}.",
        },
        next={
            OPEN: "add runs until MLPerf's number is reached",
            ATTENTION: "import what the submission has: scaling.json, its folder, runs that reach "
            "the target ({dropped} may miss it)",
        },
    ),
)  # fmt: skip
