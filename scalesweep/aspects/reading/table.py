"""The tables ``reading``, the rate at which files were read against plain reads, and ``demand``."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.roofline import share_interval
from scalesweep.aspects.reading.demand import Demand, demand_rows
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.read_ceilings import state_of

RATE = "read_rate"
# Of the bytes of an epoch: below this they come from elsewhere, and their rate is not of files.
FROM_FILES = 0.5


@dataclass(frozen=True, kw_only=True)
class Reading(PointRow, table="reading"):
    """A point in a phase, on as many nodes and in the state of the page cache of its ceiling."""

    phase: str = column("`init` (the first epoch) or `later`")
    state: str | None = column("what the page cache held: `cold` or `warm`")
    rate: Estimate = column(
        "bytes of the files over the time of the epoch, of all ranks",
        "bytes/s", ends=("low", "high"), ends_after="where",
    )  # fmt: skip
    ceiling: float = column("the best run of plain reads", "bytes/s")
    where: str = column("the experiment that measured the ceiling")
    share: Estimate = column("`rate` / `ceiling`; its interval holds the scatter of both", "1")
    from_files: bool = True  # else its bytes come from a cache of the pipeline's own


def reading_rows(inputs: TableInputs) -> Iterator[Reading]:
    """A row per point and phase with a ceiling."""
    data = inputs.data
    ceilings = {
        (ceiling.state, ceiling.nodes): ceiling for ceiling in reversed(inputs.machine.reading)
    }
    for point in inputs.points:
        parameters = parameters_at(data.experiment, point.values)
        nodes = Layout.of(parameters).nodes
        for phase in EPOCH_PHASES:
            values = data.repeats(point, (RATE, phase))
            state = state_of(parameters, phase)
            ceiling = ceilings.get((state, nodes))
            if not values.size or ceiling is None:
                continue
            mean, best = float(values.mean()), ceiling.best.value
            span = data.interval(point, (RATE, phase))
            share = share_interval(values / best, ceiling.least, data.level)
            yield Reading(
                **point_columns(point),
                phase=phase,
                state=state,
                rate=Estimate(mean, span.low, span.high),
                ceiling=best,
                where=ceiling.where,
                share=Estimate(mean / best, share.low, share.high),
            )


MAKERS = (Maker(Reading, reading_rows), Maker(Demand, demand_rows))


def readings(results: ExperimentResults, phase: str | None = None) -> list[Reading]:
    """The rows of a phase, by default the one in which points are compared, in plan order."""
    rows = results.of(Reading)
    later = any(row.phase == "later" for row in rows)
    wanted = phase or ("later" if later else "init")
    cached: set[Key] = _cached(results) if wanted == "later" else set()
    return [
        replace(row, from_files=(*results.key(row.row, results.axes), row.source) not in cached)
        for row in rows
        if row.phase == wanted
    ]


def _cached(results: ExperimentResults) -> set[Key]:
    """Points whose last epoch read fewer bytes than its samples take in files."""
    measure = results.measures.get("bytes_read_per_byte")
    if measure is None:
        return set()
    return {
        (*results.key(row, results.axes), row["source"])
        for row in results.points
        if (read := measure.value(row, "mean", "run")) is not None and read < FROM_FILES
    }
