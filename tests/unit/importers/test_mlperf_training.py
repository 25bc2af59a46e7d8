"""Importing MLPerf Training's logs, with what lies beside them: system and factor."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from scalesweep.importers.imported_run import ImportedRun
from tests.conftest import ROOT
from tests.fakes.imported_runs import import_runs, read_source
from tests.fakes.mllog import T0, line, values

TASK = ROOT / "tests/acceptance/imports/logs/mlperf/results/machine_n4/llama31_405b"
LOG = (TASK / "result_0.txt").read_text()


def submission(folder: Path, *logs: str) -> None:
    """A submission's folder as MLPerf's rules want it, of other logs."""
    shutil.copytree(TASK.parents[2], folder)
    for number, text in enumerate(logs):
        (folder / "results/machine_n4/llama31_405b" / f"result_{number}.txt").write_text(text)


def one_of(folder: Path, text: str) -> ImportedRun:
    """The run of a submission with this log."""
    submission(folder / "source", text)
    (run,), refusals, others = read_source(folder)
    assert (refusals, others) == ([], [])
    return run


def test_a_run(tmp_path: Path) -> None:
    run = one_of(tmp_path, LOG)
    # What a block says of memory has no unit. (Other numbers: tests/acceptance/imports.)
    assert set(values(run)) == {
        "time_to_target", "run_time", "step_time", "throughput", "samples_to_target",
        "final_quality",
    }  # fmt: skip
    assert run.samples["train_step_times"][:, 0].tolist() == [9.0, 2.0, 2.1, 1.9]
    assert run.metrics["final_quality"]["better"] == "lower"
    assert run.variant == {
        "submission_org": "ORG", "submission_division": "closed",
        "submission_platform": "Machine", "GPU": "GPU X",
    }  # fmt: skip
    assert run.notes["assumed"] == {"ranks": "the accelerators of systems/machine_n4.json"}
    assert run.notes["score"] == {"factor": 1.25, "runs": 3, "dropped": 1}
    assert run.phases == {"init": 0.9, "validation": 28.991}


def test_a_run_of_two_rounds_is_one(tmp_path: Path) -> None:
    """Rounds repeat runs under another name of the platform, as v4.1 and v5.0 do."""
    submission(tmp_path / "v4.1" / "ORG", LOG, LOG.replace(str(T0)[:6], "160001"))
    submission(tmp_path / "v5.0" / "ORG", LOG.replace("4xMachine", "1x4xMACHINE"))
    runs, _, _ = read_source(tmp_path)
    written, refusals = import_runs(runs, tmp_path / "out" / "runs" / "imported")
    assert len(written) == 2
    assert [refusal.what for refusal in refusals] == ["copy"]
    assert "the same run as in" in refusals[0].reason


def rated(task: str, rate: float, **progress: Any) -> str:
    """A run of 570 s of training without step times, whose log tracks a rate."""
    head = LOG[: LOG.index(":::MLLOG", LOG.index('"run_start"'))].splitlines(True)
    end = T0 + 1000 + 600_000
    return "".join([
        *(text.replace("llama31_405b", task) for text in head if "tracked_stats" not in text),
        line("tracked_stats", end - 30_000, {"throughput": rate}, step=1),
        line("eval_start", end - 30_000, **progress),
        line("eval_accuracy", end - 10, 0.75, **progress),
        line("eval_stop", end - 9, **progress),
        line("run_stop", end, status="success"),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("task", "rate", "progress", "more", "expected"),
    [
        # epoch_num counts samples where it is large, else epochs of train_samples.
        ("bert", 4000.0, {"epoch_num": 2_280_000}, {}, 4000.0),
        ("resnet", 4000.0, {"epoch_num": 4}, {"train_samples": 570_000}, 4000.0),
        # SSD's rates of v4.0 are those of one GPU: known by the clock alone.
        ("resnet", 250.0, {"epoch_num": 4}, {"train_samples": 570_000}, 4000.0),
        # train_samples of RetinaNet counts batches; no epoch of them has ended.
        ("retinanet", 4000.0, {"epoch_num": 4}, {"train_samples": 4572}, None),
        ("resnet", 77.0, {"epoch_num": 4}, {"train_samples": 570_000}, None),
    ],
)
def test_rates_count_where_the_clock_agrees(
    tmp_path: Path, task: str, rate: float, progress: dict[str, Any], more: dict[str, Any],
    expected: float | None,
) -> None:  # fmt: skip
    said = "".join(line(key, T0 + 700, value) for key, value in more.items())
    run = one_of(tmp_path, said + rated(task, rate, **progress))
    assert values(run).get("throughput") == (None if expected is None else pytest.approx(expected))
    assert ("left out" in run.notes["throughput"]) == (expected is None)


def test_an_end_that_only_another_rank_prints(tmp_path: Path) -> None:
    """As of UNet3D's ranks that only evaluate, under srun --label (Oracle's and smc's of v4.0)."""
    labelled = "".join(
        f"{57 if 'run_stop' in text else rank}: {text}"
        for text in LOG.splitlines(True)
        for rank in ((8, 0) if "eval_accuracy" in text or "block" in text else (0,))
    )
    run = one_of(tmp_path, labelled)
    assert (run.unfinished, values(run)["time_to_target"]) == ("", 600.0)
