"""Idle pipelines beside the formula."""

from pathlib import Path

import numpy as np
import pytest

from scalesweep.aspects.steps.pipeline import RULES, PipelineIdle, pipeline_idle
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.epoch_study import Study

STEPS = 40
FIXED = {"ranks": 2, "ranks_per_node": 2, "tp": 1, "virtual_stages": 1}


def study_of(folder: Path, idle: tuple[float, ...]) -> ExperimentResults:
    """Runs of a pipeline of two stages and four micro-batches: 60 and 70 ms of passes, of which
    forward is a third; ranks wait so that their idle time is ``idle`` of that, a run each."""
    folder.mkdir(exist_ok=True)
    study = Study(folder, "e", "none")
    study.experiment |= {
        "benchmark": "torch_training", "fixed": FIXED, "mesh": {"dp": "1", "tp": "tp", "pp": "2"},
        "transformer": {"layers": "4", "width": "64", "sequence": "16", "accumulation": "4"},
        "memory": {"virtual_stages": "virtual_stages", "peak": "", "rank": "most"},
    }  # fmt: skip
    passes = np.tile([0.060, 0.070], (STEPS, 1))
    for share in idle:
        waits = share * 0.065 - np.tile([-0.005, 0.005], (STEPS, 1))  # the busier rank waits less
        optimizer, rest = np.full((STEPS, 2), 0.008), 0.002
        spans = {
            "span_forward": passes / 3, "span_backward": passes * 2 / 3,
            "span_optimizer": optimizer, "span_compute": passes + optimizer,
            "span_input": np.full((STEPS, 2), 0.001), "span_pipeline_wait": waits,
            "span_data_parallel": np.zeros((STEPS, 2)), "span_communication": waits,
            "span_between": np.zeros((STEPS, 2)),
        }  # fmt: skip
        step = passes + optimizer + waits + 0.001 + rest
        study.run(
            FIXED, None, arrays={"step_times": step, **spans},
            benchmark="torch_training", wall_s=60.0,
        )  # fmt: skip
    return study.results()


def test_idle_stages_are_held_against_the_formula(tmp_path: Path) -> None:
    results = study_of(tmp_path, (0.50, 0.52, 0.51))
    (row,) = results.of(PipelineIdle)
    assert (row.stages, row.virtual_stages, row.micro_batches) == (2, 1, 4)
    assert row.formula == 0.25 and row.idle.value == pytest.approx(0.51)
    assert row.difference.low is not None and row.difference.low > 0.2
    assert row.unequal == pytest.approx(70 / 65 - 1)
    (finding,) = pipeline_idle(results)
    assert finding.state == "note"
    said = RULES[0].say(finding).sentence
    assert "stages wait for 51" in said and "unequal stages cause 7.7 %" in said


@pytest.mark.parametrize("idle", [(0.24, 0.26, 0.25), (0.5,), (0.2, 0.8)])
def test_nothing_is_said_where_the_interval_holds_the_formula(
    tmp_path: Path, idle: tuple[float, ...]
) -> None:
    """As the formula has it, a run without an interval, and two that scatter."""
    assert pipeline_idle(study_of(tmp_path, idle)) == []
