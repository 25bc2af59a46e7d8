"""The table ``phases``: where the seconds and, where known, the joules of a run go."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scalesweep.analysis.stats import mean_of
from scalesweep.core.formatting import with_interval
from scalesweep.experiment.by_kind import table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns

# Phases in the order of a run, others follow: colour (after Okabe and Ito) and hatch. Those that
# share a colour differ in hatch and are apart in a run.
LOOKS: Mapping[str, tuple[str, str]] = {
    "import": ("#9aa1ab", ""), "init": ("#d5d9de", ""), "data_staging": ("#56B4E9", "////"),
    "data_loading": ("#56B4E9", ""), "preprocessing": ("#F0E442", ""), "build": ("#CC79A7", ""),
    "broadcast": ("#CC79A7", "////"), "warmup": ("#0072B2", "////"), "training": ("#0072B2", ""),
    "timed": ("#0072B2", ""), "validation": ("#E69F00", ""), "evaluation": ("#D55E00", ""),
    "teardown": ("#9aa1ab", "////"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Phase(PointRow, table="phases"):
    """A phase of a point's runs: of training runs, and of all whose energy is known."""

    phase: str = column("the phase, as the program names it")
    runs: int = column("finished runs that had it", "1")
    seconds: Estimate = column("its time on rank 0, mean over runs", "s")
    share: Estimate | None = column("its share of the run's phases", "1")
    energy_runs: int = column("runs whose energy in it is known", "1")
    energy: Estimate | None = column("its energy, all hosts", "J")


def in_order(phases: Iterable[str]) -> list[str]:
    """Phases in the order of a run, unknown ones last."""
    order = {name: place for place, name in enumerate(LOOKS)}
    return sorted(phases, key=lambda name: order.get(name, len(order)))


def phase_rows(inputs: TableInputs) -> Iterator[Phase]:
    """A row per point and phase; means over repeats."""
    data = inputs.data
    if not data.trains and not data.knows_energy:
        return
    seconds, energy = data.notes("_phases"), data.notes("_energy")
    whole = {row: sum(values.values()) for row, values in seconds.items()}
    shares = {
        row: {name: value / whole[row] for name, value in values.items()}
        for row, values in seconds.items()
        if whole[row] > 0
    }
    names = in_order(dict.fromkeys(name for values in seconds.values() for name in values))
    for point in inputs.points:
        rows = point.rows.tolist()
        for name in names:
            times, parts, joules = (
                [known[row][name] for row in rows if name in known.get(row, {})]
                for known in (seconds, shares, energy)
            )
            if times:
                yield Phase(
                    **point_columns(point), phase=name, runs=len(times),
                    seconds=mean_of(times, data.level),
                    share=mean_of(parts, data.level) if parts else None,
                    energy_runs=len(joules),
                    energy=mean_of(joules, data.level) if joules else None,
                )  # fmt: skip


MAKERS = (Maker(Phase, phase_rows),)


_NOTE = "Seconds of rank 0, means over repeats with 95 % intervals."


def phase_table(results: ExperimentResults, limit: int) -> Table | None:
    """Seconds of every phase of every point; None where no phases are known."""
    return table_by_kind(
        results, limit, results.of(Phase), "phase", "seconds", with_interval,
        lambda name: f"{name.replace('_', ' ')} [s]",
    )  # fmt: skip


SECTION = Section("Phases", phase_table, lambda _results: [_NOTE])
