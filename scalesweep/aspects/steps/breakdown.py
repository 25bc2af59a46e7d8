"""Where the time of a step goes: `efficiency`, `first_epoch`, `noexchange`."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.stats import Estimate, mean_of, signed_mean_of
from scalesweep.analysis.step_account import STEPS, StepAccount, companion_account
from scalesweep.aspects.steps.efficiency import efficiency_rows
from scalesweep.aspects.steps.measured_steps import main_rate, stated_accounts
from scalesweep.aspects.steps.terms import IMBALANCE
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import NOEXCHANGE as KIND
from scalesweep.core.profilers import split_name
from scalesweep.core.record import NO_USE, NOT_ARRAYS
from scalesweep.core.status import Status
from scalesweep.table.declared import SourceRow, column
from scalesweep.tables.bookkeeping import FIRST_EPOCH
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.run_arrays import read_arrays

_log = logging.getLogger(__name__)
_MS = 1e3
_RATE = ("total_throughput", "init")  # of first epochs


@dataclass(frozen=True, kw_only=True)
class LedgerRow(SourceRow):
    """A term of a point's ledger, with what it takes more than in the ideal step."""

    repeats: int = column("runs with an account", "1")
    form: str = column(
        "of the accounts: `steps`, `noexchange`, `trace`, `epochs`, `profile` or `first`"
    )
    term: str = column("the term (docs/methods/time_breakdown.md)")
    value: Estimate = column("the term, of a step", "ms", ends=("low", "high"))
    loss: Estimate | None = column("what it takes more than in the ideal step", "ms", default=None)
    loss_p: float | None = column("p value of its taking no more, nor less", "1", default=None)

    @property
    def row(self) -> dict[str, Any]:
        """The point, with the runs that have an account."""
        return {**super().row, "repeats": self.repeats}

    @property
    def ms(self) -> float:
        """The term in ms."""
        return self.value.value

    @property
    def more(self) -> float | None:
        """What it takes more than in the ideal step, in ms; None: not known."""
        return None if self.loss is None else self.loss.value

    @property
    def claimed(self) -> float:
        """The p value of its taking longer than in the ideal step; 1 where nothing tells it."""
        return self.loss_p if self.loss_p is not None and (self.more or 0.0) > 0 else 1.0


@dataclass(frozen=True, kw_only=True)
class EfficiencyRow(LedgerRow, table="efficiency"):
    """A term of a point's ledger.

    Terms add up to ``elapsed``; they are means over repeats with the weight of 1 over
    the step of their main rate.
    """


@dataclass(frozen=True, kw_only=True)
class FirstEpochRow(LedgerRow, table="first_epoch"):
    """A term of the first of several epochs, of programs that do nothing but read.

    As in `efficiency`; the ideal is the first epoch of the reference.
    """


@dataclass(frozen=True, kw_only=True)
class NoExchangeRow(SourceRow, table="noexchange"):
    """A point with runs without exchange, each beside its measured run; means over the pairs."""

    pairs: int = column("runs with a run without exchange", "1")
    step_ms: Estimate = column("a step", "ms")
    without_ms: Estimate = column("a step of the slowest rank without exchange", "ms")
    communication_ms: Estimate = column(
        "exposed communication: the difference, less the barrier", "ms"
    )
    communication_share: Estimate = column("its share of a step", "1")


def breakdown_rows(inputs: TableInputs) -> Iterator[SourceRow]:
    """The rows of all tables, from the accounts of the runs, which are read once."""
    data, series = inputs.data, inputs.series
    own, against = stated_accounts(data), companion_accounts(inputs)
    # The finer of each run: its own time stamps, its run without exchange, what else it holds.
    known = own | against | {row: each for row, each in own.items() if each.form == STEPS}
    for point, cells in efficiency_rows(data, series, known, main_rate(data)):
        yield EfficiencyRow(point=point.values, source=point.source, **cells)
    first = stated_accounts(data, FIRST_EPOCH)
    for point, cells in efficiency_rows(data, series, first, _RATE):
        # Of several epochs an imbalance may be persistent or alternate; of one it is imbalance.
        if cells["term"] != "alternating":
            named = {"term": IMBALANCE} if cells["term"] == "persistent" else {}
            yield FirstEpochRow(point=point.values, source=point.source, **(cells | named))
    for point in inputs.points:
        if pairs := [against[row] for row in point.rows.tolist() if row in against]:
            exposed = np.array([account.terms["communication"] for account in pairs])
            barrier = np.array([account.terms.get("barrier", 0.0) for account in pairs])
            steps = np.array([account.elapsed for account in pairs])
            yield NoExchangeRow(
                point=point.values, source=point.source, pairs=len(pairs),
                step_ms=mean_of(steps * _MS), communication_ms=signed_mean_of(exposed * _MS),
                without_ms=mean_of((steps - exposed - barrier) * _MS),
                communication_share=signed_mean_of(exposed / steps),
            )  # fmt: skip


MAKER = Maker((EfficiencyRow, FirstEpochRow, NoExchangeRow), breakdown_rows)


def companion_accounts(inputs: TableInputs) -> dict[int, StepAccount]:
    """The account of each measured run against its run without exchange (``<run id>.noexchange``),
    by row of the summary. A pair of which one cannot be read is left out, with a line."""
    data, accounts = inputs.data, dict[int, StepAccount]()
    for run in data.experiment["profiles"] if inputs.runs is not None else ():
        run_id = split_name(run["run_id"])[0]
        row = data.row_of.get(run_id)
        if run["kind"] != KIND or run["status"] != Status.DONE or row is None or not inputs.runs:
            continue
        try:
            measured, samples = read_arrays(inputs.runs / run_id)
            alone, without = read_arrays(inputs.runs / run["run_id"])
        except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
            data.unread.append(run["run_id"])
            _log.warning("%s: %s: not compared with its run", run["run_id"], error)
            continue
        notes, others = measured.get("notes") or {}, alone.get("notes") or {}
        ranks = int(measured["point"].get("ranks", 1))
        if account := companion_account(samples, notes, without, others, ranks):
            accounts[row] = account
    return accounts
