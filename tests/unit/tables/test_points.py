"""Intervals of points that were repeated until they were precise, and which runs they are of."""

import json
from typing import Any

import numpy as np
import pytest

from scalesweep.tables.machine_load import undisturbed
from tests.fakes.rows import study_of

SLOWER = np.exp(0.1 * np.arange(4))  # the machine, from repeat to repeat


def tables(in_blocks: bool, source: str = "measured", **entry: Any) -> Any:
    """Weak scaling on 1, 2 and 4 ranks by a rate that scatters."""
    draw = np.random.default_rng(7)
    points = [
        ({"ranks": ranks}, [
            {"source": source, "rate_mean_run": 100 * ranks / slower * (1 + 0.01 * draw.normal())}
            for slower in SLOWER
        ])
        for ranks in (1, 2, 4)
    ]  # fmt: skip
    more = {"scaling": "weak", "main_metric": "rate", "parameters": {"ranks": {"default": 1}}}
    return study_of(points, {"rate": ("samples/s", "higher")}, in_blocks, **more, **entry).tables


def test_repeats_until_precise_have_their_level_in_every_table_and_share_nothing() -> None:
    alone = tables(False, source="imported")
    wide = tables(True, repeats={"level": 0.968})
    for table, name in (
        ("points", "rate_{}_run"), ("scaling", "rate_eff_{}_run"), ("comparisons", "{}"),
    ):  # fmt: skip
        low, high = name.format("low"), name.format("high")
        known = np.isfinite(alone[table][low].to_numpy())
        assert known.any(), table
        assert (wide[table][low] < alone[table][low])[known].all(), table
        assert (wide[table][high] > alone[table][high])[known].all(), table


def test_what_slows_a_whole_block_widens_no_efficiency() -> None:
    """Each repeat is 10 % slower than the one before; runs of a block differ by 1 %."""
    blocks, apart = (tables(in_blocks)["scaling"][1:] for in_blocks in (True, False))
    widths = [of["rate_eff_high_run"] - of["rate_eff_low_run"] for of in (blocks, apart)]
    assert (widths[0] < widths[1] / 3).all()


def test_runs_that_others_disturbed_enter_no_estimate() -> None:
    assert undisturbed([0.0, 0.4, None]) == [0, 2]
    # Two that nothing disturbed are to remain.
    assert undisturbed([0.0, 0.4, 0.4]) == [0, 1, 2] and undisturbed([0.4]) == [0]


def test_intervals_of_numbers_with_few_digits_are_wider_by_half_of_the_last() -> None:
    """All may be off to one side: weak scaling by a rate with three digits."""
    rates = {1: (2850.0, 2860.0, 2840.0), 8: (22800.0, 22700.0, 22900.0)}
    half = {1: 5.0, 8: 50.0}
    exact, rounded = (
        study_of(
            [({"ranks": ranks}, [
                {"source": "imported", "rate_mean_run": rate,
                 "_rounded": json.dumps({"rate": half[ranks]}) if known else None}
                for rate in rates[ranks]
             ]) for ranks in rates],
            {"rate": ("tokens/s", "higher")}, scaling="weak", main_metric="rate",
        ).tables
        for known in (False, True)
    )  # fmt: skip
    shares = np.array([half[ranks] / np.mean(rates[ranks]) for ranks in rates])
    for end, sign in (("mean", 0), ("low", -1), ("high", 1)):
        rates_of = [tables["points"][f"rate_{end}_run"] for tables in (rounded, exact)]
        assert (rates_of[0] / rates_of[1]).to_list() == pytest.approx(1 + sign * shares)
    low, exactly = (tables["scaling"]["rate_eff_low_run"][1] for tables in (rounded, exact))
    assert low / exactly == pytest.approx(1 - shares.sum(), abs=1e-4)
