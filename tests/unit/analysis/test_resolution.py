"""The resolution of a program's clock, from its times; noise of any kind has none."""

import numpy as np
import pytest

from scalesweep.analysis.resolution import resolution_of
from scalesweep.analysis.types import Floats
from tests.acceptance.faults import Arrays, Noise, Program, every, planted_run


def counted(arrays: Arrays, tick: float, how: str = "rint") -> Arrays:
    """The times of a clock that counts in steps of ``tick`` s."""
    return {name: getattr(np, how)(values / tick) * tick for name, values in arrays.items()}


@pytest.mark.parametrize("tick", [0.0005, 0.001, 0.005, 0.01])
@pytest.mark.parametrize("how", ["rint", "floor"])
def test_a_coarse_clock_is_found(tick: float, how: str) -> None:
    for seed, noise in enumerate((Noise(), Noise(step=5), Noise(step=0.3, run=0.1))):
        run = counted(planted_run(Program(), 8, 60, seed, noise), tick, how)
        assert resolution_of(run, 8) == pytest.approx(tick, rel=1e-6)


def test_one_rank_and_one_span_with_a_coarse_clock_are_found() -> None:
    run = planted_run(Program(), 4, 60, 1, Noise(step=5))
    run["span_compute"][:, 2] = counted(run, 0.004)["span_compute"][:, 2]
    assert resolution_of(run, 4) == pytest.approx(0.004)


def test_noise_has_no_resolution() -> None:
    """Nor have times that are kept with few digits, of few steps, or that planted faults share."""

    def changed(arrays: Arrays) -> list[Arrays]:
        kept: list[Arrays] = [arrays]
        kept.append({name: values.astype(np.float32) for name, values in arrays.items()})
        kept.append({name: np.round(values, 5) for name, values in arrays.items()})
        kept += [{name: values[:steps] for name, values in arrays.items()} for steps in (1, 8, 20)]
        return kept

    faults = {"compute": every(100, 10, 1), "checkpoint": every(300, 10, 0)}
    for seed in range(20):
        for noise in (Noise(), Noise(tails=3), Noise(step=0.01, run=0.0), Noise(spikes=0.1)):
            run = planted_run(Program(faults=faults), 4, 40, seed, noise, ("between", "checkpoint"))
            assert [resolution_of(each, 4) for each in changed(run)] == [0.0] * 6


def test_times_that_repeat_by_design_have_none_where_they_are_no_multiples() -> None:
    """A delay of one length in steps that are equally long otherwise is no step of a clock."""

    def steady(value: float) -> Floats:
        return np.full((60, 2), value)

    run = {
        "step_times": steady(0.0683), "span_input": steady(0.004), "span_compute": steady(0.06),
        "span_communication": steady(0.0043),
    }  # fmt: skip
    assert resolution_of(run, 2) == 0.0
    run["span_compute"][::2, 1] += 0.03
    assert resolution_of(run, 2) == 0.0
    assert resolution_of({"step_times": np.zeros((20, 2))}, 2) == 0.0
    assert resolution_of({"span_compute": steady(0.1)}, 2) == 0.0
