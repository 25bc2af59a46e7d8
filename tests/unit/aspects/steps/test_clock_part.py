"""Slower computation that a lower clock explains, and where nothing is said of it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scalesweep.analysis.step_account import StepAccount
from scalesweep.aspects.steps.breakdown_figure import ledger_figures
from scalesweep.aspects.steps.losses import largest_loss
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import curves_of
from tests.fakes.finding_rows import said
from tests.unit.aspects.steps.test_efficiency import noisy, stepwise, study_of, terms_of


def study(here: float, mhz: float | None, base_mhz: float | None = 3000.0) -> ExperimentResults:
    """Computation of 100 ms on one rank, and of ``here`` ms on four."""

    def at(clock: float | None, accounts: Sequence[StepAccount]) -> list[StepAccount]:
        return [replace(one, clock_mhz=clock and clock + n) for n, one in enumerate(accounts)]

    points = [
        ({"ranks": 1}, at(base_mhz, noisy(1, compute=100)), 10),
        ({"ranks": 4}, at(mhz, noisy(4, compute=here)), 40),
    ]
    return study_of(points)


def test_the_example_of_the_page() -> None:
    one = study(130, 2500)
    ledger = terms_of(one, 4)
    assert ledger["clock"] == pytest.approx(20, rel=0.03)
    parts = ledger["at_reference"] + ledger["clock"] + ledger["slower"]
    assert parts + ledger["unattributed"] == pytest.approx(ledger["elapsed"])
    (finding,) = said(largest_loss(one))
    assert "lower clock (at most)" in finding.sentence
    assert ledger_figures(one)


@pytest.mark.parametrize(("here", "mhz", "most"), [(105, 2000, 5.5), (95, 2500, 0.5)])
def test_it_is_never_more_than_there_is(here: float, mhz: float, most: float) -> None:
    ledger = terms_of(study(here, mhz), 4)
    assert 0 <= ledger["clock"] < most + 2
    if here < 100:
        # Faster at a lower clock: the clock explains nothing.
        assert ledger["clock"] == 0


@pytest.mark.parametrize(("mhz", "base"), [(None, 3000.0), (2500.0, None), (None, None)])
def test_without_clocks_nothing_is_said(mhz: float | None, base: float | None) -> None:
    ledger = terms_of(study(130, mhz, base), 4)
    assert "clock" not in ledger
    assert ledger["slower"] == pytest.approx(30, abs=4)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"values": [2400, 2600]}, 2500),
        ({"values": [2400, None]}, None),
        (None, None),
    ],
)
def test_clocks_come_from_the_ranks_of_a_record(told: object, expected: float | None) -> None:
    record = {"point": {"ranks": 2}, "environment": {"ranks": {"clock_mhz": told}}}
    account = curves_of({**record, "source": "measured"}, stepwise(), None)["_account"]
    assert account.clock_mhz == expected
