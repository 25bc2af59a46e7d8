"""The bench of layouts: how a published sweep is read, and what is scored."""

from pathlib import Path

import numpy as np
import pytest

from bench.layouts import OURS, RANDOM, Study, published, score
from bench.lib.layout_truth import Program, sweep
from scalesweep.analysis.prediction.layouts.fits import fits_as_neighbours

HEAD = "model,nodes,dp,tp,pp,zero,mbs,gradacc,gbs,status,mfu_pct,tok_s_gpu,tok_s,gpu_memory_gb\n"


def test_rows_that_contradict_their_batch_are_left_out_and_equal_rows_count_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sweep.csv"
    path.write_text(
        HEAD
        + "1B,1,8,1,1,0,2,16,256,ok,39.2,4000.0,,30.0\n" * 2
        + "1B,1,8,1,1,1,2,32,256,ok,39.2,4000.0,,30.0\n"  # 8 x 2 x 32 samples are not 256
        + "1B,1,4,1,1,1,2,32,256,ok,39.2,4000.0,,30.0\n"  # 4 ranks are not those of a node
        + "1B,1,1,8,1,1,256,1,256,failed,,,,\n"
    )
    (name, (study, fits)), *others = published(path).items()
    assert (name, others) == ("1B, batch 256", [])
    assert study.ran.tolist() == [True, False]
    assert study.too_large.tolist() == [False, True]
    assert study.seconds[0] == pytest.approx(256 * 4096 / (4000 * 8))
    assert study.layouts[0].layers == 16
    assert study.layouts[0].weights == pytest.approx(1.34e9, rel=0.01)
    assert fits(study, study.layouts) == [True, False]


def test_a_step_is_scored_beside_its_rivals() -> None:
    study = Study(sweep(Program(), (1, 2, 4, 8), np.random.default_rng(1)), fits_as_neighbours)
    result = score("simulated", study, 4, 8)
    assert result is not None
    assert {OURS, RANDOM, "carry over", "nearest neighbours", "cost model"} == result.losses.keys()
    assert result.losses[OURS] <= result.losses[RANDOM]
    assert 0.7 < result.held <= 1
    assert score("simulated", study, 1, 16) is None
