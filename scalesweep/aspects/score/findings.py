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
    marked,
)

MAX_POINTS = 4
LEAST_RUNS = 3
_COLUMNS = ("runs", "reached", "best", "worst", "score", "factor", "models_per_minute")


def score(results: ExperimentResults) -> list[Finding]:
    """The score of every point, or why it has none; of many points the first are named."""
    rows = [row for row in results.of(Score) if row.runs]
    enough = [row for row in rows if row.runs >= LEAST_RUNS or row.at_once]
    findings = [_finding(results, row) for row in enough[:MAX_POINTS]]
    if len(enough) > MAX_POINTS:
        text = f"The tables have the scores of {counted(len(enough) - MAX_POINTS, 'more point')}."
        findings.append(Finding(results.name, "score", NOTE, text, {"experiment": results.name}))
    if few := len(rows) - len(enough):
        text = (
            f"No score for {counted(few, 'point')} with fewer than {LEAST_RUNS} runs: MLPerf takes "
            "several runs and drops the best and the worst."
        )
        findings.append(Finding(results.name, "score", NOTE, text, {"experiment": results.name}))
    return findings


def _finding(results: ExperimentResults, row: Score) -> Finding:
    """The score of a point with enough runs."""
    runs, missed = row.runs, row.runs - row.reached
    where = f" at {results.describe(row.point)}" if results.axes else ""
    evidence = declared_evidence(results, row, _COLUMNS)
    if row.at_once:
        text = _at_once(row, where)
        return Finding(results.name, "score", NOTE, marked(row.source, text), evidence)
    if row.score is not None:
        level = CLEAR if row.standard else OPEN
        counts = "best and worst dropped"
        if row.dropped != 1:
            counts = f"{row.dropped} best and {row.dropped} worst dropped"
        if row.factor != 1:
            counts += f", times {number(row.factor, 6)} of the submission's scaling.json"
        if not row.standard:
            asked = "an unknown number" if row.asked is None else row.asked
            counts = f"MLPerf takes {asked}; {counts}"
        worst = "one that missed the target" if missed else f"{number(row.worst, 4)} s"
        text = (
            f"Score of {counted(runs, 'run')}{where} ({counts}): {number(row.score, 4)} s; "
            f"best {number(row.best, 4)} s, worst {worst}."
        )
    elif row.factor is None:
        level = ATTENTION
        text = f"No score{where}: its runs state several factors (scaling.json)."
    else:
        level = ATTENTION
        allowed = "one" if row.dropped == 1 else row.dropped
        text = (
            f"No score{where}: {missed:,} of {counted(runs, 'run')} missed the target; "
            f"MLPerf allows {allowed}."
        )
    return Finding(results.name, "score", level, marked(row.source, text), evidence)


def _at_once(row: Score, where: str) -> str:
    """What is said of models that were, or may have been, trained at the same time."""
    runs = counted(row.runs, "model")
    if row.at_once == UNCLEAR:
        return (
            f"No score{where}: {counted(int(row.runs), 'run')} overlap in time, and no folder "
            "says whether they are of a strong submission (weak or strong in its name) or models "
            "of a weak one, whose result is models per minute."
        )
    if row.models_per_minute is None:
        return f"No score{where}: {runs} of a weak submission, and not all say when they trained."
    missed = row.runs - row.reached
    but = f" ({missed:,} missed the target)" if missed else ""
    return (
        f"{runs} trained at the same time{where}{but}: {number(row.models_per_minute, 3)} "
        "models/min from the first start to the last stop; a weak submission has no score."
    )


RULES = (Rule("score", score),)
