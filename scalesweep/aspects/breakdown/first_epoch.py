"""Where the time of the first epoch goes at every point, against its reference."""

from collections.abc import Iterator, Sequence
from typing import Any

from scalesweep.aspects.breakdown.accounts import stated_accounts
from scalesweep.aspects.breakdown.efficiency import IMBALANCE, LEDGER, efficiency_rows
from scalesweep.tables.epoch_curves import FIRST_EPOCH
from scalesweep.tables.machine import Machine
from scalesweep.tables.points import ExperimentData, Point

RATE = ("total_throughput", "init")


def first_epoch_rows(
    data: ExperimentData, series: Sequence[Sequence[Point]], machine: Machine
) -> Iterator[dict[str, Any]]:
    """The columns of a row per point and term, as ``efficiency_rows``; terms of the ledger alone.

    Of several epochs an imbalance may be persistent or alternate; of one it is imbalance.
    """
    accounts = stated_accounts(data, FIRST_EPOCH)
    for cells in efficiency_rows(data, series, machine, accounts, RATE):
        if cells["kind"] == LEDGER and cells["term"] != "alternating":
            yield cells | ({"term": IMBALANCE} if cells["term"] == "persistent" else {})
