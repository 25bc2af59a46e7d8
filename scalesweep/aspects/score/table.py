"""MLPerf's score of every point: the time to the target, best and worst run left out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from scalesweep.analysis.stats import olympic_mean
from scalesweep.core.files import canonical_json
from scalesweep.core.status import Status
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.bookkeeping import SCORE_RULE, TRAINED
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData, Point

METRIC = "time_to_target"
# Runs that MLPerf HPC asks of CosmoFlow (MLPerf HPC training rules, "Benchmark Results"); logs of
# others say theirs.
STANDARD_RUNS = 10
WEAK, UNCLEAR = "weak", "unclear"


@dataclass(frozen=True, kw_only=True)
class Score(DeclaredRow, table="score"):
    """A point whose runs have a target.

    Models that were trained at the same time for a weak submission have no score: their result is
    ``models_per_minute`` (MLPerf HPC training rules, "Weak-scaling"). Where runs overlap and
    nothing says of which kind they are there is neither.
    """

    source: str | None = column("measured, simulated or imported")
    planned: int = column("planned runs of the point", "1")
    runs: int = column("runs that began, failed and unfinished ones too", "1")
    reached: int = column("those of them that met the target", "1")
    best: float | None = column("time to the target of the fastest run", "s")
    worst: float | None = column(
        "that of the slowest; missing where a run missed the target, as that one is the worst", "s"
    )
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
    models_per_minute: float | None = column(
        "of a weak submission: models that met the target over the time from the first start to "
        "the last stop", "models/min",
    )  # fmt: skip
    at_once: str = column(
        f"`{WEAK}`: models that were trained at the same time for a weak submission; `{UNCLEAR}`: "
        "runs overlap and nothing says of which kind they are; else empty"
    )
    standard: bool = column("whether there are as many runs as MLPerf asks for")


def score_rows(inputs: TableInputs) -> Iterator[Score]:
    """A row per point with a target, where runs have a time to it."""
    data = inputs.data
    if (METRIC, "run") not in data.measures:
        return
    failed, unfinished = _by_point(data, Status.FAILED), _by_point(data, Status.UNFINISHED)
    for point in inputs.points:
        if not _has_target(data, point):
            continue
        key = canonical_json(point.values)
        # What failed here is no run of those whose results were imported.
        others = 0 if point.source == "imported" else failed.get(key, 0)
        times = data.repeats(point, (METRIC, "run"))
        runs = int(point.rows.size) + unfinished.get(key, 0) + others
        missed = runs - times.size
        at_once = _at_once(data, point)
        factor, asked, dropped = _rule(data, point)
        mean = olympic_mean(times, missed, dropped)
        yield Score(
            point=point.values,
            source=point.source,
            planned=point.planned,
            runs=runs,
            reached=times.size,
            best=float(times.min()) if times.size else None,
            worst=float(times.max()) if times.size and not missed else None,
            score=None if at_once or factor is None else mean * factor,
            factor=factor,
            asked=asked,
            dropped=dropped,
            models_per_minute=_models_per_minute(data, point) if at_once == WEAK else None,
            at_once=at_once,
            standard=runs == asked,
        )


def _rule(data: ExperimentData, point: Point) -> tuple[float | None, int | None, int]:
    """The factor of a point's score, the runs asked for, and those dropped at either end.

    No factor where its runs state several.
    """
    notes = data.notes(SCORE_RULE)
    rules = [notes[row] for row in point.rows.tolist() if row in notes]
    if not rules:
        return 1.0, STANDARD_RUNS, 1
    factors, asked, dropped = zip(*rules, strict=True)
    factor = float(factors[0]) if len(set(factors)) == 1 else None
    return factor, asked[0], int(dropped[0])


def _trained(data: ExperimentData, point: Point) -> list[tuple[int, float, float, str | None]]:
    """Row, begin, end (Unix time, s) and kind of submission of the runs that say it, by begin."""
    notes = data.notes(TRAINED)
    trained = [(row, *notes[row]) for row in point.rows.tolist() if row in notes]
    return sorted(trained, key=lambda run: run[1])


def _at_once(data: ExperimentData, point: Point) -> str:
    """Whether the runs of a point are models that were trained at the same time."""
    runs = _trained(data, point)
    kinds = {kind for *_, kind in runs}
    if WEAK in kinds:
        return WEAK
    overlap = any(before[2] > after[1] for before, after in pairwise(runs))
    return UNCLEAR if overlap and None in kinds else ""


def _models_per_minute(data: ExperimentData, point: Point) -> float | None:
    """Models that met the target in a minute, all trained at the same time."""
    runs = _trained(data, point)
    times = data.numbers(METRIC, "mean", "run")
    reached = [run for run in runs if math.isfinite(times[run[0]])]
    if not reached or len(runs) < point.rows.size:
        return None
    return 60 * len(reached) / (max(run[2] for run in reached) - min(run[1] for run in runs))


def _has_target(data: ExperimentData, point: Point) -> bool:
    """Whether the point says what is to be reached, if its benchmark has such a parameter."""
    targets = data.targets(point)
    return not targets or any(value is not None for value in targets)


def _by_point(data: ExperimentData, status: str) -> dict[str, int]:
    """How many runs of each point have a status."""
    counts: dict[str, int] = {}
    for run in data.experiment["runs"]:
        if run["status"] == status:
            key = canonical_json({name: run["point"][name] for name in data.axes})
            counts[key] = counts.get(key, 0) + 1
    return counts


MAKERS = (Maker(Score, score_rows),)
