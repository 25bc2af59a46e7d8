"""What the machine did before and after each run: the table `canary`, a row per run and look."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.bookkeeping import CANARY
from scalesweep.tables.making import Maker, TableInputs

# Columns, by kind.
COLUMNS = {
    "compute": "canary_flops",
    "memory": "canary_bytes_per_s",
}


def _rate(text: str, unit: str = "bytes/s") -> Any:
    return column(text, unit, if_known=True, default=None)


@dataclass(frozen=True, kw_only=True)
class Look(DeclaredRow, table="canary", leading=("run_id", "repeat")):
    """What the slowest host reached, or all together, in a look at the machine of a run."""

    run_id: str = column("the run")
    repeat: int = column("its repeat")
    source: str | None = column("measured, simulated or imported")
    started: str | None = column("when the run began")
    look: str = column("`before` or `after` the run")
    canary_flops: float | None = _rate("matrix products, of the slowest host", "FLOP/s")
    canary_bytes_per_s: float | None = _rate("copies, of the slowest host")


def look_rows(inputs: TableInputs) -> Iterator[Look]:
    """A row per run and look, in the order of the plan."""
    data = inputs.data
    looks = data.notes(CANARY)
    started, sources = data.summary["started"].tolist(), data.summary["source"].tolist()
    for run in data.experiment["runs"]:
        row = data.row_of.get(run["run_id"], -1)
        for when, rates in looks.get(row, {}).items():
            yield Look(
                point={name: run["point"][name] for name in data.axes},
                run_id=run["run_id"],
                repeat=run["repeat"],
                source=sources[row],
                started=started[row],
                look=when,
                **{COLUMNS[kind]: float(rate) for kind, (_, rate) in rates.items()},
            )


MAKERS = (Maker(Look, look_rows),)
