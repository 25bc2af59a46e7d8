"""The efficiency of the first screen and that of the ledger are one number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.scaling.efficiencies import efficiencies
from scalesweep.aspects.scaling.findings import scaling_verdict
from scalesweep.aspects.steps.ledgers import Ledger, ledgers
from scalesweep.aspects.steps.losses import largest_loss
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.finding_rows import only, said
from tests.fakes.training import Training, make_training
from tests.unit.aspects.steps.test_efficiency import noisy, study_of

RANKS = {"ranks": [1, 2, 4]}


def epoch_s(point: dict[str, Any]) -> float:
    return 10.0 * (1 + 0.2 * float(point["ranks"]))


def factors(repeat: int) -> Any:
    """A slow first epoch, later ones that differ, and a machine that slows down by repeats."""
    return np.array([3.0, 1.0, 1.3, 0.8])[:, None] * (1 + 0.05 * repeat)


def uneven(arrays: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
    """Ranks of which each is slower than the one before; all wait for the last."""
    waited = 1 - 0.1 * np.arange(int(point["ranks"]))
    arrays["local_times"] = epoch_s(point) * factors(repeat) * waited
    arrays["global_times"] = np.broadcast_to(
        arrays["local_times"].max(axis=1, keepdims=True), arrays["local_times"].shape
    )


def rates(point: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Metrics over all epochs, as a training program has them."""
    total = float(epoch_s(point) * factors(repeat).sum())
    rate = 400.0 * point["ranks"] / total
    values = {"training_samples_per_second": (rate, "samples/s", "higher"),
              "training_time": (total, "s", "lower")}  # fmt: skip
    return {"metrics": {name: {"value": value, "unit": unit, "better": better, "scope": "total"}
                        for name, (value, unit, better) in values.items()}}  # fmt: skip


def measured(tmp_path: Path, **changes: Any) -> ExperimentResults:
    fake = Training(
        RANKS, scaling="weak", samples=lambda p: 100 * p["ranks"], arrays=uneven,
        changes=rates, **changes,
    )  # fmt: skip
    return make_training(tmp_path, fake)["train"]


def check(study: ExperimentResults) -> list[Ledger]:
    """Every ledger adds up, and its ideal over its step is the efficiency of its point."""
    assert study.main is not None
    (series,) = study.series
    phase = study.main.steady_phase
    told = {one.count: one for one in efficiencies(study, series, phase)}
    every = ledgers(study)
    for one in every:
        total = sum(term.ms for term in one.parts.values())
        assert total == pytest.approx(one.elapsed.ms, rel=1e-9)
        assert one.ideal is not None
        if one.elapsed.loss is not None:
            reached = one.ideal.ms / one.elapsed.ms
            assert reached == pytest.approx(told[int(one.row["ranks"])].value, rel=1e-9)
    assert len(every) == 3
    return every


def test_repeats_that_differ_give_one_efficiency(tmp_path: Path) -> None:
    study = measured(tmp_path)
    for one in check(study):
        rest = one.parts["unattributed"].ms
        # Means of the epochs' rates are not the rates of their means: a rest, always shown.
        assert 0 < abs(rest) < 0.06 * one.elapsed.ms
    (loss,) = said(largest_loss(study))
    verdict = only(scaling_verdict(study))
    largest = check(study)[-1]
    assert largest.ideal is not None
    reached = largest.ideal.ms / largest.elapsed.ms
    values = {stated.name: stated.value for stated in verdict.numbers}
    assert values["efficiency"] == pytest.approx(reached)
    # What it reaches is the verdict's to say.
    assert f"efficiency at 4 ranks: {100 * reached:.0f} [" in verdict.sentence
    assert (
        loss.sentence.count(" % of the ideal") == 1
        and f"{100 * reached:.0f} %" not in loss.sentence
    )


def test_the_warm_up_that_a_metric_holds_has_its_line(tmp_path: Path) -> None:
    study = measured(tmp_path, main_metric="training_samples_per_second")
    every = check(study)
    # The first of four epochs takes 3 times, the others 1, 1.3 and 0.8: 6.1 / 4 against 3.1 / 3.
    outside = (6.1 / 4) / (3.1 / 3)
    for one in every:
        rest = one.elapsed.ms - one.parts["outside"].ms
        assert one.elapsed.ms / rest == pytest.approx(outside, rel=1e-2)
        assert abs(one.parts["unattributed"].ms) < 1e-6 * one.elapsed.ms


def test_devices_of_one_rank_share_its_samples() -> None:
    """Weak scaling over the devices of a rank: each has as many samples as the one before."""
    base, two = noisy(1, compute=100), noisy(1, compute=125)
    points = [({"devices": 1}, base, 320), ({"devices": 2}, two, 640)]
    study = study_of(points, scale="devices")
    last = ledgers(study)[-1]
    assert last.ideal is not None
    assert last.ideal.ms == pytest.approx(100, rel=0.03)
    assert last.parts["slower"].ms == pytest.approx(25, abs=4)
