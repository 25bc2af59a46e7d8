"""Runs without exchange: the account against them by hand, and the table; idle pipelines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.step_account import NOEXCHANGE, account_of, companion_account
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.steps.findings import largest_loss
from scalesweep.aspects.steps.ledgers import ledgers
from scalesweep.aspects.steps.pipeline import PipelineIdle, pipeline_idle
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.epoch_study import Study
from tests.fakes.finding_rows import only
from tests.fakes.training import SITE, Training, make_training

STEPS = {"spans": {"method": "none", "steps_per_epoch": 2}}
LEFT_OUT = {"spans": {**STEPS["spans"], "exchange": "left out"}}


def test_the_account_by_hand() -> None:
    """Steps of 100 ms that all ranks share; alone they take 60, 70 and 90 ms."""
    whole = np.full((4, 3), 0.100)
    alone = np.array([[0.060, 0.070, 0.080], [0.060, 0.070, 0.100]])
    found = companion_account({"step_times": whole}, {}, {"step_times": alone}, {}, 3)
    assert (found.form, found.steps, found.ranks) == (NOEXCHANGE, 4, 3)
    assert found.terms == pytest.approx({"busy": 0.07, "persistent": 0.02, "communication": 0.01})


def test_epochs_leave_out_the_first_and_have_a_barrier() -> None:
    samples = {
        "local_times": np.array([[9.0, 9.0], [0.20, 0.20], [0.24, 0.22]]),
        "global_times": np.array([[9.02, 9.02], [0.22, 0.22], [0.26, 0.26]]),
    }
    alone = {
        "local_times": np.array([[9.0, 9.0], [0.10, 0.16]]),
        "global_times": np.array([[9.0, 9.0], [0.16, 0.16]]),
        "span_input": np.array([[1.0, 1.0], [0.02, 0.04]]),
    }
    found = companion_account(samples, STEPS, alone, LEFT_OUT, 2)
    assert (found.steps, found.per_epoch) == (4, 2)
    # Two epochs of two steps: 0.22 + 0.26 s until all were done, 0.20 + 0.24 on the last rank.
    assert found.elapsed == pytest.approx(0.48 / 4)
    # Alone: 50 and 80 ms, of which 10 and 20 are input.
    terms = {"input": 0.010, "compute": 0.040, "persistent": 0.030, "communication": 0.030}
    assert found.terms == pytest.approx({**terms, "barrier": 0.04 / 4})
    assert found.term("unattributed") == pytest.approx(0)
    # Its epochs alone hold the exchange: they say nothing of computation.
    assert account_of(samples, STEPS, 2) is None
    assert companion_account({}, STEPS, alone, LEFT_OUT, 2) is None
    assert companion_account(samples, {}, alone, LEFT_OUT, 2) is None


def alone_ms(ranks: int, repeat: int) -> float:
    """A step without exchange, which the ranks slow down a little; repeats scatter."""
    return 50.0 * (1 + 0.02 * ranks) * (1 + 0.01 * (repeat - 1))


def with_companions(root: Path) -> ExperimentResults:
    """Training whose steps take 50 ms of computation and 10 ms of exchange for each rank."""
    steps = 10

    def arrays(found: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
        ranks = int(point["ranks"])
        step = alone_ms(ranks, repeat) + 10.0 * ranks
        found["local_times"] = np.full((3, ranks), step * steps / 1e3)
        found["global_times"] = found["local_times"].copy()

    notes = {"spans": {**STEPS["spans"], "steps_per_epoch": steps}}
    fake = Training(
        {"ranks": [1, 2, 4]}, scaling="weak", samples=lambda p: steps * p["ranks"], arrays=arrays,
        changes=lambda p, r: {"notes": notes}, epochs=lambda p: 3, watts=lambda p, r: None,
    )  # fmt: skip
    make_training(root, fake)
    plan = json.loads((root / "plan.json").read_text())
    entry = plan["experiments"][0]
    runs = root / "runs" / SITE
    for run in entry["runs"]:
        name, ranks = f"{run['run_id']}.noexchange", run["point"]["ranks"]
        record = json.loads((runs / run["run_id"] / "record.json").read_text())
        kept = {key: value for key, value in record.items() if key not in ("digest", "files")}
        kept |= {"profile": {"kind": "noexchange", "files": []}}
        kept["notes"] = {"spans": {**notes["spans"], "exchange": "left out"}}
        own = np.full((3, ranks), alone_ms(ranks, run["repeat"]) * steps / 1e3)
        np.savez(root / "alone.npz", local_times=own, global_times=own)
        (runs / name).mkdir()
        write_record(runs / name, kept, root / "alone.npz")
        entry["profiles"].append(
            {"run_id": name, "kind": "noexchange", "point": run["point"], "status": "done",
             "cause": "", "detail": "", "to_run": False}
        )  # fmt: skip
    tables = make_tables(pd.read_parquet(root / "summary.parquet"), plan, runs=runs)["train"]
    return ExperimentResults(entry, tables)


def test_where_no_stamps_are_the_ledger_is_that_against_the_run_without(tmp_path: Path) -> None:
    study = with_companions(tmp_path)
    every = ledgers(study)
    assert [one.form for one in every] == [NOEXCHANGE] * 3
    last = every[-1]
    assert sum(term.ms for term in last.parts.values()) == pytest.approx(last.elapsed.ms)
    assert last.parts["communication"].ms == pytest.approx(40, rel=1e-3)
    assert last.parts["communication"].more == pytest.approx(30, rel=1e-3)
    assert last.parts["slower"].ms == pytest.approx(3, rel=1e-2)
    assert "transfer" not in last.parts
    assert "exposed communication" in only(largest_loss(study)).sentence
    (four,) = (row for row in study.rows("noexchange") if row["ranks"] == 4)
    assert four["pairs"] == 3
    assert (four["without_ms"], four["communication_ms"]) == pytest.approx((54, 40))
    assert four["communication_ms_low"] is None  # the same in each pair: no scatter is known
    assert four["communication_share_low"] < 40 / 94 < four["communication_share_high"]


# --- idle pipelines beside the formula ---

PASSES = 40  # steps
FIXED = {"ranks": 2, "ranks_per_node": 2, "tp": 1, "virtual_stages": 1}


def pipeline_of(folder: Path, idle: tuple[float, ...]) -> ExperimentResults:
    """Runs of a pipeline of two stages and four micro-batches: 60 and 70 ms of passes, of which
    forward is a third; ranks wait so that their idle time is ``idle`` of that, a run each."""
    folder.mkdir(exist_ok=True)
    study = Study(folder, "e", "none")
    study.experiment |= {
        "benchmark": "torch_training", "fixed": FIXED, "mesh": {"dp": "1", "tp": "tp", "pp": "2"},
        "transformer": {"layers": "4", "width": "64", "sequence": "16", "accumulation": "4"},
        "memory": {"virtual_stages": "virtual_stages", "peak": "", "rank": "most"},
    }  # fmt: skip
    passes = np.tile([0.060, 0.070], (PASSES, 1))
    for share in idle:
        waits = share * 0.065 - np.tile([-0.005, 0.005], (PASSES, 1))  # the busier rank waits less
        optimizer, rest = np.full((PASSES, 2), 0.008), 0.002
        spans = {
            "span_forward": passes / 3, "span_backward": passes * 2 / 3,
            "span_optimizer": optimizer, "span_compute": passes + optimizer,
            "span_input": np.full((PASSES, 2), 0.001), "span_pipeline_wait": waits,
            "span_data_parallel": np.zeros((PASSES, 2)), "span_communication": waits,
            "span_between": np.zeros((PASSES, 2)),
        }  # fmt: skip
        step = passes + optimizer + waits + 0.001 + rest
        study.run(
            FIXED, None, arrays={"step_times": step, **spans},
            benchmark="torch_training", wall_s=60.0,
        )  # fmt: skip
    return study.results()


def test_idle_stages_are_held_against_the_formula(tmp_path: Path) -> None:
    results = pipeline_of(tmp_path, (0.50, 0.52, 0.51))
    (row,) = results.of(PipelineIdle)
    assert (row.stages, row.virtual_stages, row.micro_batches) == (2, 1, 4)
    assert row.formula == 0.25 and row.idle.value == pytest.approx(0.51)
    assert row.difference.low is not None and row.difference.low > 0.2
    assert row.unequal == pytest.approx(70 / 65 - 1)
    sentence = only(pipeline_idle(results)).sentence
    assert "stages wait for 51" in sentence and "unequal stages cause 7.7 %" in sentence


@pytest.mark.parametrize("idle", [(0.24, 0.26, 0.25), (0.5,), (0.2, 0.8)])
def test_idle_times_near_the_formula_are_not_told(tmp_path: Path, idle: tuple[float, ...]) -> None:
    """As the formula has it, a run without an interval, and two that scatter."""
    assert pipeline_idle(pipeline_of(tmp_path, idle)) == []
