"""Real ranks that sleep where a fault is planted: the causes come out where they are."""

import numpy as np
import pytest

from scalesweep.analysis.step_account import account_of
from scalesweep.analysis.step_delays import causes_of, gain
from scalesweep.analysis.step_work import step_work
from tests.benchmarks.programs import start_helper

ATTEMPTS = 3  # other tests on the same cores may add to one of the rows
MORE, BATCH, STALL = 0.03, 0.08, 0.3  # s, as in sleeping.py
SLOW_BATCH = 0.2  # s, as in slow_input.py


def measure(folder):
    """Arrays by row."""
    start_helper("sleeping.py", folder, ranks=2)
    found = {}
    for path in folder.glob("*.npz"):
        with np.load(path) as archive:
            found[path.stem] = dict(archive)
    return found


def look(arrays):
    """Account, causes by cause, pattern and ranks: how long (s) and what is gained without, and
    what is gained without all."""
    account, work = account_of(arrays, {}, 2), step_work(arrays, {}, 2)
    causes = causes_of(work)
    found = {
        (one.cause, one.pattern, tuple(sorted(one.ranks))): (
            float(np.median(one.lengths)), gain(work, [one], causes.bound)
        )
        for one in causes.delays
    }  # fmt: skip
    return account, found, gain(work, causes.delays, causes.bound)


def check_input(arrays):
    """All of what both ranks wait for is their input, though one waits in the exchange instead."""
    account, causes, _ = look(arrays)
    assert account.elapsed == pytest.approx(SLOW_BATCH, rel=0.1)
    assert account.persistent + account.alternating < 0.05 * SLOW_BATCH
    length, alone = causes["input", "bound", (0, 1)]
    assert length > 0.5 * SLOW_BATCH and alone == pytest.approx(account.input, rel=0.15)
    known = account.input + account.compute + account.transfer
    assert known == pytest.approx(account.elapsed, rel=0.1)


def check(rows):
    """Lengths are what was slept; gains are less by as much as others were disturbed."""
    account, causes, every = look(rows["both late"])
    assert abs(account.persistent) < 0.2 * MORE
    assert account.mixed == pytest.approx(MORE, rel=0.2)
    for name in (("compute", "every", (1,)), ("input", "every", (0,))):
        length, alone = causes[name]
        assert length == pytest.approx(MORE, rel=0.15) and alone < 0.3 * MORE
    assert every > 0.8 * MORE

    account, causes, _ = look(rows["input-bound"])
    assert account.persistent < 0.2 * MORE
    assert account.input > 0.3 * BATCH
    assert causes.get(("compute", "every", (1,)), (0.0, 0.0))[1] < 0.2 * MORE

    every = rows["stalls and logging"]
    for between, arrays in (
        ("measured", every),
        ("inferred", {name: each for name, each in every.items() if name != "span_between"}),
    ):
        account, causes, _ = look(arrays)
        assert account.between_steps == between
        length, alone = causes["between", "every", (0,)]
        assert length == pytest.approx(MORE, rel=0.15) and 0.5 * MORE < alone < 1.1 * MORE
        # What rank 0 logs for is hidden by a stall of rank 1.
        length, alone = causes["compute", "rare", (1,)]
        assert length == pytest.approx(STALL, rel=0.1)
        assert 0.8 * (STALL - MORE) / 10 < alone < 1.1 * STALL / 10

    account, causes, _ = look(rows["in turn"])
    assert account.alternating == pytest.approx(MORE, rel=0.2)
    length, alone = causes["compute", "alternating", (0, 1)]
    assert length == pytest.approx(MORE, rel=0.15) and 0.7 * MORE < alone < 1.1 * MORE
    assert abs(account.persistent) < 0.2 * MORE


def measure_input(folder):
    """Arrays of real training whose reader is slow."""
    start_helper("slow_input.py", folder, ranks=2)
    with np.load(folder / "arrays.npz") as archive:
        return dict(archive)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measured", "right"), [(measure, check), (measure_input, check_input)], ids=["made", "input"]
)
def test_ranks_that_sleep_are_named_with_cause_and_size(tmp_path, measured, right):
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        try:
            right(measured(folder))
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return
