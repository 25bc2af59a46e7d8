"""Where the time of a step goes: `efficiency`, `first_epoch`, `exchange`, `noexchange`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.aspects.breakdown.accounts import stated_accounts
from scalesweep.aspects.breakdown.companions import companion_accounts, finer, noexchange_rows
from scalesweep.aspects.breakdown.efficiency import efficiency_rows
from scalesweep.aspects.breakdown.exchange import exchange_rows
from scalesweep.aspects.breakdown.first_epoch import first_epoch_rows
from scalesweep.aspects.breakdown.measured_steps import main_rate
from scalesweep.table.declared import DeclaredRow, Estimate, column, row_of
from scalesweep.tables.making import Maker, TableInputs


@dataclass(frozen=True, kw_only=True)
class _BreakdownRow(DeclaredRow):
    """What all tables say of a point."""

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        return {**self.point, "source": self.source}


@dataclass(frozen=True, kw_only=True)
class LedgerRow(_BreakdownRow):
    """A term of a point's ledger, with what it takes more than in the ideal step."""

    repeats: int = column("runs with an account", "1")
    form: str = column(
        "of the accounts: `steps`, `noexchange`, `trace`, `epochs`, `profile` or `first`"
    )
    kind: str = column(
        "`ledger`, `part` (of computation), `multiplicative`, `additive` or `machine`"
    )
    variant: str | None = column("how serialisation and transfer are defined")
    term: str = column("the term (docs/methods/time_breakdown.md)")
    value: Estimate = column("the term", ends=("low", "high"))
    unit: str = column("its unit: ms (of a step) or 1")
    loss: Estimate | None = column("what it takes more than in the ideal step", "ms")
    loss_p: float | None = column("p value of its taking no more, nor less", "1")
    machine_from: str | None = column("the probe that `machine` is of")
    machine: Estimate | None = column("what the machine needs for the term", "ms")
    machine_loss: Estimate | None = column("what the machine needs of its loss", "ms")

    @property
    def row(self) -> dict[str, Any]:
        """The point, with the runs that have an account."""
        return {**self.point, "source": self.source, "repeats": self.repeats}


@dataclass(frozen=True, kw_only=True)
class EfficiencyRow(LedgerRow, table="efficiency"):
    """A term of a point's ledger, one of its factors, or what of the machine a term reaches.

    Terms of the ledger add up to ``elapsed``; they are means over repeats with the weight of 1 over
    the step of their main rate.
    """


@dataclass(frozen=True, kw_only=True)
class FirstEpochRow(LedgerRow, table="first_epoch"):
    """A term of the first of several epochs, of programs that do nothing but read.

    As in `efficiency`; the ideal is the first epoch of the reference.
    """


@dataclass(frozen=True, kw_only=True)
class ExchangeRow(_BreakdownRow, table="exchange"):
    """A point that exchanges gradients and whose network a probe has measured."""

    repeats: int = column("runs with an account", "1")
    message_bytes: int = column("what a step exchanges", "bytes")
    tensors: int = column("in how many tensors", "1")
    messages: int = column("in how many messages, at least", "1")
    largest_bytes: int = column("the largest message", "bytes")
    bucket_bytes: float | None = column("up to which tensors are sent together", "bytes")
    cycle_ms: float | None = column(
        "for how long tensors are collected before they are sent, where they are", "ms"
    )
    transfer_ms: Estimate = column(
        "transfer in a step, as in the ledger", "ms", ends=("transfer_low", "transfer_high")
    )
    rate: Estimate = column("the bus bandwidth that it comes to", "bytes/s")
    fused_ms: Estimate = column(
        "what the network takes for these messages", "ms", ends=("fused_low", "fused_high")
    )
    one_ms: Estimate = column(
        "what it takes for a single message", "ms", ends=("one_low", "one_high")
    )
    of_network: Estimate = column("`one_ms` / `transfer_ms`", "1")
    machine_from: str = column("the probe")


@dataclass(frozen=True, kw_only=True)
class NoExchangeRow(_BreakdownRow, table="noexchange"):
    """A point with runs without exchange, each beside its measured run; means over the pairs."""

    pairs: int = column("runs with a run without exchange", "1")
    method: str = column("`noexchange`")
    step_ms: Estimate = column("a step", "ms")
    without_ms: Estimate = column("a step of the slowest rank without exchange", "ms")
    communication_ms: Estimate = column(
        "exposed communication: the difference, less the barrier", "ms"
    )
    communication_share: Estimate = column("its share of a step", "1")
    stamped_ms: float | None = column("the same by time stamps of the measured runs", "ms")


def breakdown_rows(inputs: TableInputs) -> Iterator[_BreakdownRow]:
    """The rows of all tables, from the accounts of the runs, which are read once."""
    data, machine = inputs.data, inputs.machine
    own, against = stated_accounts(data), companion_accounts(data, inputs.runs)
    known = finer(own, against)
    for cells in efficiency_rows(data, inputs.series, machine, known, main_rate(data)):
        yield row_of(EfficiencyRow, cells.pop("point"), cells)
    for cells in first_epoch_rows(data, inputs.series, machine):
        yield row_of(FirstEpochRow, cells.pop("point"), cells)
    for cells in exchange_rows(data, inputs.points, machine, own):
        yield row_of(ExchangeRow, cells.pop("point"), cells)
    for cells in noexchange_rows(inputs.points, against, own):
        yield row_of(NoExchangeRow, cells.pop("point"), cells)


MAKERS = (Maker((EfficiencyRow, FirstEpochRow, ExchangeRow, NoExchangeRow), breakdown_rows),)
