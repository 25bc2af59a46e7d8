"""The interval of the ledger's step and of its loss is that of the efficiency."""

import math
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.ledgers import Ledger, ledgers
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import as_text
from tests.fakes.rows import study_of
from tests.unit.aspects.steps.test_efficiency import account

STEPS = 10  # of an epoch, as in ``account``


def campaign(steps: dict[int, Floats], in_blocks: bool = False) -> ExperimentResults:
    """Weak scaling, 32 samples of a rank in a step, by rate: ``steps`` of each repeat in ms, of
    which 100 ms are computation and the rest transfer, where there are so many."""

    def row(ranks: int, ms: float) -> dict[str, Any]:
        samples = 32 * STEPS * ranks
        more = {} if ranks == 1 else {"transfer": max(ms - 100, 0.0)}
        own = account(ranks, compute=ms if ranks == 1 else min(ms, 100.0), **more)
        rate = samples / STEPS / (ms * 1e-3)
        return {"samples": samples, "_account": as_text(own), "rate_mean_run": rate}

    points = [({"ranks": n}, [row(n, ms) for ms in of.tolist()]) for n, of in steps.items()]
    metrics = {"rate": ("samples/s", "higher")}
    return study_of(points, metrics, in_blocks, scaling="weak", main_metric="rate")


def pairs(study: ExperimentResults) -> list[tuple[Ledger, list[float]]]:
    """The ledgers of points with a loss, with the efficiency of the table `scaling`."""
    of = {row["ranks"]: [row[f"rate_eff{end}_run"] for end in ("", "_low", "_high")]
          for row in study.rows("scaling")}  # fmt: skip
    return [(one, of[one.row["ranks"]]) for one in ledgers(study) if one.elapsed.loss is not None]


def scattered(draw: np.random.Generator, ms: float, sd: float, repeats: int = 3) -> Floats:
    return np.asarray(ms * np.exp(sd * draw.standard_normal(repeats)))


@pytest.mark.parametrize("in_blocks", [False, True])
def test_efficiency_and_loss_agree_in_every_campaign(in_blocks: bool) -> None:
    """Random campaigns; of a block, where there are some, all points share a state."""
    draw = np.random.default_rng((28, in_blocks))
    clear = []
    for _ in range(25):
        sd, longer = draw.uniform(0.01, 0.4), draw.uniform(1.0, 2.0)
        state = np.exp(0.3 * draw.standard_normal(3)) if in_blocks else np.ones(3)
        steps = {n: scattered(draw, 100 * longer ** math.log2(n), sd) * state for n in (1, 2, 4)}
        for one, (eff, low, high) in pairs(campaign(steps, in_blocks)):
            assert one.ideal is not None and one.elapsed.loss is not None
            ends = [one.ideal.ms * (1 / share - 1) for share in (eff, high, low)]
            known = astuple(one.elapsed.loss)
            assert known == pytest.approx(ends, rel=1e-9, abs=1e-9)
            assert (known[1] > 0) == (high < 1)
            assert (known[2] < 0) == (low > 1)
            clear.append(high < 1)
    assert 0.2 < np.mean(clear) < 0.9
