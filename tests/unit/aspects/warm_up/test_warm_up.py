"""The warm-up of runs: where their steps become steady, from the first one on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.draw import draw
from scalesweep.aspects.warm_up import WarmUp, WarmUpCurve, warm_up_table
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.ranks import ranked, steady
from tests.fakes.training import study_of

DECLARED, REAL, STEPS = 5, 12, 60


def study(root: Path, drift: float = 0.0) -> ExperimentResults:
    """Runs whose first 12 steps take three times as long, the first six, of which they leave out
    five; ``drift``: how much longer the last step takes than the first."""

    def arrays(found: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
        ranks = int(point["ranks"])
        times = steady(STEPS, 0.02)(np.random.default_rng([ranks, repeat]), ranks, repeat)
        times[:REAL] *= 1 if drift else 3
        times[0] *= 2
        times *= np.linspace(1, 1 + drift, STEPS)[:, None]
        found.clear()
        found |= {"step_times": times[DECLARED:], "warmup_step_times": times[:DECLARED]}

    fake = ranked(steady(STEPS, 0.02), name="warm", arrays=arrays, axes={"ranks": [2]})
    return study_of(root, fake)


@pytest.mark.slow
def test_declared_and_detected_warm_up_reach_table_page_and_figure(tmp_path: Path) -> None:
    results = study(tmp_path)
    (row,) = results.of(WarmUp)
    assert (row.count, row.declared, row.detected) == (STEPS, DECLARED, REAL)
    assert row.detected_s == pytest.approx((REAL + 1) * 0.3, rel=0.05)
    assert (row.first_ms, row.steady_ms) == pytest.approx((600, 100), rel=0.02)
    curve = results.of(WarmUpCurve)
    assert [row.step for row in curve] == list(range(1, STEPS + 1))
    assert all(row.p10_ms < row.p50_ms < row.p90_ms for row in curve)
    cells = {cell.text: cell.bad for cell in warm_up_table(results, 10).rows[0]}
    assert cells["12"] and not cells["5"]  # longer than declared: marked
    (drawing,) = [each for each in draw(results) if each.name == "warm-up"]
    for ax in drawing.figure.axes:
        line, _longest, *lines = ax.get_lines()
        assert len(line.get_xdata()) == STEPS
        assert np.median(line.get_ydata()) == pytest.approx(100, rel=0.05)
        assert [float(each.get_xdata()[0]) for each in lines] == [DECLARED + 0.5, REAL + 0.5]


def test_nothing_is_steady_of_runs_that_become_slower_all_the_time(tmp_path: Path) -> None:
    results = study(tmp_path, drift=1.0)
    (row,) = results.of(WarmUp)
    assert row.unsteady == row.runs > 0
    assert (row.detected, row.detected_s, row.steady_ms) == (None,) * 3
    assert "not steady" in [cell.text for cell in warm_up_table(results, 10).rows[0]]
    (drawing,) = [each for each in draw(results) if each.name == "warm-up"]
    assert "1 point not steady" in drawing.caption
    assert len(drawing.figure.axes[0].get_lines()) == 3  # two curves, and the declared warm-up
