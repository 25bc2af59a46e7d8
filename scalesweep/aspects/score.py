"""MLPerf's score of every point: the time to the target, best and worst run left out."""

from collections.abc import Iterator
from dataclasses import dataclass

from scalesweep.analysis.stats import olympic_mean
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
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.bookkeeping import SCORE_RULE
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData, Point

METRIC = "time_to_target"
# Runs that MLPerf HPC asks of CosmoFlow (MLPerf HPC training rules, "Benchmark Results"), the
# factor of its score, and the runs that are left out at either end.
STANDARD = (1.0, 10, 1)
MAX_POINTS, LEAST_RUNS = 4, 3  # of which a finding speaks


@dataclass(frozen=True, kw_only=True)
class Score(DeclaredRow, table="score"):
    """A point whose runs have a target; of imported runs those that MLPerf gives a score."""

    source: str | None = column("measured, simulated or imported")
    planned: int = column("planned runs of the point", "1")
    runs: int = column("runs that began, failed and unfinished ones too", "1")
    reached: int = column("those of them that met the target", "1")
    score: float | None = column(
        "the mean time to the target without the `dropped` best and worst runs, times `factor` "
        "(MLPerf training rules); missing where more missed the target, and where no run is left",
        "s",
    )
    factor: float | None = column(
        "what MLPerf multiplies the score by (`scaling.json` of the submission), 1 where there is "
        "none; missing where the runs do not agree on it, as then there is no score", "1",
    )  # fmt: skip
    asked: int | None = column("runs that MLPerf asks for; missing where that is not known", "1")
    dropped: int = column("runs that are left out at either end", "1")


def score_rows(inputs: TableInputs) -> Iterator[Score]:
    """A row per point with a target, where runs have a time to it."""
    data = inputs.data
    if (METRIC, "run") not in data.measures:
        return
    for point in inputs.points:
        rule, targets = _rule(data, point), data.targets(point)
        if rule is None or (targets and all(value is None for value in targets)):
            continue
        factor, asked, dropped = rule
        # What failed here is no run of those whose results were imported.
        others = 0 if point.source == "imported" else len(point.failed)
        times = data.repeats(point, (METRIC, "run"))
        runs = int(point.rows.size) + point.cut + others
        mean = olympic_mean(times, runs - times.size, dropped)
        yield Score(
            point=point.values, source=point.source, planned=point.planned, runs=runs,
            reached=times.size, score=None if factor is None else mean * factor, factor=factor,
            asked=asked, dropped=dropped,
        )  # fmt: skip


def _rule(data: ExperimentData, point: Point) -> tuple[float | None, int | None, int] | None:
    """The factor of a point's score (None: its runs state several), the runs asked for, and those
    dropped at either end. None of imported runs that have no score (of weak submissions)."""
    notes = data.notes(SCORE_RULE)
    rules = [notes[row] for row in point.rows.tolist() if row in notes]
    if not rules:
        return None if point.source == "imported" else STANDARD
    factors, asked, dropped = zip(*rules, strict=True)
    return float(factors[0]) if len(set(factors)) == 1 else None, asked[0], int(dropped[0])


def score_findings(results: ExperimentResults) -> list[Finding]:
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


MAKERS = (Maker(Score, score_rows),)
RULES = (
    Rule(
        "score", score_findings,
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
