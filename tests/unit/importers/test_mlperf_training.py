"""Importing MLPerf Training's logs, with what lies beside them: system and factor."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.importers.imported_run import ImportedRun
from tests.fakes.imported_runs import import_runs, read_source
from tests.fakes.mllog import T0, line, values

SYSTEM = {"submitter": "ORG", "number_of_nodes": "4", "accelerators_per_node": 4,
          "accelerator_model_name": "GPU X", "framework": "NeMo"}  # fmt: skip
PLATFORM = "4xMachine"


def lines_of(
    seconds: float = 600.0,
    task: str = "llama31_405b",
    steps: Sequence[float] = (9.0, 2.0, 2.1, 1.9),
    status: str | None = "success",
    ms: int = T0,
    org: str = "ORG",
    **more: Any,
) -> list[str]:
    """A run as NeMo's logger writes it: a line of each rank first, steps, a block, evaluations."""
    settings = {"global_batch_size": 64, "gradient_accumulation_steps": 24.0,
                "max_sequence_length": 8192, "opt_name": "adamw", **more}  # fmt: skip
    step = 0.0
    lines = [
        *(line("init_start", ms + rank) for rank in range(16)),
        *(line("cache_clear", ms + 500, True) for _ in range(4)),
        line("submission_benchmark", ms + 600, task),
        line("submission_org", ms + 600, org),
        line("submission_division", ms + 600, "closed"),
        line("submission_platform", ms + 600, PLATFORM),
        *(line(key, ms + 700, value) for key, value in settings.items() if value is not None),
        line("tracked_stats", ms + 800, {"warmup_time": 100.0}, step=0),
        line("init_stop", ms + 900),
        line("run_start", ms + 1000),
        line("block_start", ms + 1001, samples_count=0),
    ]
    for number, value in enumerate(steps, 1):
        step += value
        said = {"train_step_time": value, "reduced_train_loss": 7.0}
        lines.append(
            line("tracked_stats", ms + 1000 + round(step * 1000), said, step=64.0 * number)
        )
    end = ms + 1000 + round(seconds * 1000)
    rate = {"throughput": 32.0, "train_step_time": 2.0, "max_memory_usage": 90.0}
    lines += [
        line("tracked_stats", end - 30_000, rate, step=0),
        line("block_stop", end - 30_000, samples_count=256),
        line("eval_start", end - 29_000, samples_count=256),
        line("eval_accuracy", end - 10, 5.5, samples_count=256),
        line("eval_stop", end - 9, samples_count=256),
    ]
    if status is not None:
        lines.append(line("run_stop", end, samples_count=256, status=status))
    return lines


def submission(
    folder: Path,
    logs: Sequence[list[str]],
    task: str = "llama31_405b",
    system: dict[str, Any] | None = SYSTEM,
    factor: Any = None,
    name: str = "machine_n4",
) -> Path:
    """A submission's folder as MLPerf's rules want it; returns the folder of its logs."""
    results = folder / "results" / name / task
    results.mkdir(parents=True)
    for number, lines in enumerate(logs):
        (results / f"result_{number}.txt").write_text("".join(lines))
    if system is not None:
        (folder / "systems").mkdir(exist_ok=True)
        (folder / "systems" / f"{name}.json").write_text(json.dumps(system))
    if factor is not None:
        (results / "scaling.json").write_text(json.dumps({"scaling_factor": factor}))
    return results


def one_of(folder: Path, ranks: int | None = None) -> ImportedRun:
    (run,), refusals, others = read_source(folder, ranks)
    assert (refusals, others) == ([], [])
    return run


def reason_of(folder: Path, ranks: int | None = None) -> str:
    runs, (refusal,), _ = read_source(folder, ranks)
    assert runs == []
    return refusal.reason


def test_a_run(tmp_path: Path) -> None:
    submission(tmp_path, [lines_of()], factor=1.25)
    run = one_of(tmp_path)
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
    again = [text.replace(PLATFORM, "1x4xMACHINE") for text in lines_of()]
    submission(tmp_path / "v4.1" / "ORG", [lines_of(), lines_of(700, ms=T0 + 10**7)])
    submission(tmp_path / "v5.0" / "ORG", [again])
    runs, _, _ = read_source(tmp_path)
    written, refusals = import_runs(runs, tmp_path / "out" / "runs" / "imported")
    assert len(written) == 2
    assert [refusal.what for refusal in refusals] == ["copy"]
    assert "the same run as in" in refusals[0].reason


def rated(task: str, rate: float, **progress: Any) -> list[str]:
    """A run of 570 s of training without step times, whose log tracks a rate."""
    lines = [text for text in lines_of(task=task, steps=()) if "samples_count" not in text]
    lines = [text for text in lines if "tracked_stats" not in text]
    end = T0 + 1000 + 600_000
    return [
        *lines,
        line("tracked_stats", end - 30_000, {"throughput": rate}, step=1),
        line("eval_start", end - 30_000, **progress),
        line("eval_accuracy", end - 10, 0.75, **progress),
        line("eval_stop", end - 9, **progress),
        line("run_stop", end, status="success"),
    ]


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
    said = [line(key, T0 + 700, value) for key, value in more.items()]
    submission(tmp_path, [[*said, *rated(task, rate, **progress)]])
    run = one_of(tmp_path)
    assert values(run).get("throughput") == (None if expected is None else pytest.approx(expected))
    assert ("left out" in run.notes["throughput"]) == (expected is None)


def test_an_end_that_only_another_rank_prints(tmp_path: Path) -> None:
    """As of UNet3D's ranks that only evaluate, under srun --label (Oracle's and smc's of v4.0)."""
    labelled = [
        f"{57 if 'run_stop' in text else rank}: {text}"
        for text in lines_of(600.0)
        for rank in ((8, 0) if "eval_accuracy" in text or "block" in text else (0,))
    ]
    submission(tmp_path, [labelled])
    run = one_of(tmp_path)
    assert (run.unfinished, values(run)["time_to_target"]) == ("", 600.0)
