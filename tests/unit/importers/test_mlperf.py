"""Importing MLPerf's logs: how they are written, what lies beside them, and what is refused."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.importers.imported_run import ImportedRun
from tests.conftest import ROOT
from tests.fakes.imported_runs import Read, import_runs, read_source
from tests.fakes.mllog import EPOCH, T0, TRAINING, line, one, swap, training, values, why


def test_a_closed_run(read: Read) -> None:
    run = one(read, training())
    assert run.point == {
        "ranks": 32, "samples_per_rank": 128, "validation_samples_per_rank": 32, "batch_size": 2,
        "epochs": None, "target_mae": 0.124, "optimizer": "sgd", "base_learning_rate": 0.001,
        "learning_rate_reference_batch": 32, "warmup_epochs": 4, "decay_epochs": [32, 64],
        "decay_factors": [0.25, 0.125],
    }  # fmt: skip
    assert run.phases == {"init": 3.5, "data_staging": 4.0, "training": 301.5, "validation": 60.75}
    assert run.phase_spans[0] == ("init", (T0 + 1000) / 1000, (T0 + 4500) / 1000)
    # No times of single ranks.
    assert {*run.samples} == {"validation_mae", "training_times", "validation_times", "epoch_ends"}
    np.testing.assert_allclose(run.samples["epoch_ends"][:, 0], [122.75, 245.5, 368.25])
    assert run.started and run.started.isoformat() == "2020-09-13T12:26:41+00:00"
    assert set(run.notes["assumed"]) == {"ranks", "target_mae", "decay_factors"}


def two_ranks(label: str) -> Callable[[list[str]], list[str]]:
    """Lines of two ranks, of which rank 1 is a second late and wrong."""

    def ranks(lines: list[str]) -> list[str]:
        late = []
        for text in lines:
            event = json.loads(text[9:])
            event["time_ms"] += 1000
            event["value"] = 99 if event["key"] == "eval_error" else event["value"]
            late.append(f"{label.format(1)}:::MLLOG {json.dumps(event)}\n")
        pairs = zip(late, lines, strict=True)
        return [text for other, own in pairs for text in (other, label.format(0) + own)]

    return ranks


STYLES: dict[str, Callable[[list[str]], list[str]]] = {
    "blocks": lambda lines: swap(
        [re.sub('("[a-z]*)epoch_st(.*)"epoch_num"', r'\1block_st\2"first_epoch_num"', text)
         for text in lines],
        '"block_stop"', '"block_stop"',
    ),
    "Python's dicts": lambda lines: [f":::MLLOG {json.loads(it[9:])!r}\n" for it in lines],
    "srun's labels": two_ranks("{}: "),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_ways_to_write_the_same(read: Read, style: str) -> None:
    plain, styled = training(), STYLES[style](training())
    assert plain != styled
    expected, found = one(read, plain), one(read, styled)
    assert found.point == expected.point
    assert values(found) == pytest.approx(values(expected))
    for name, array in expected.samples.items():
        np.testing.assert_allclose(found.samples[name], array, err_msg=name)


@pytest.mark.parametrize(
    ("told", "given", "ranks", "per_node"),
    [
        ({"number_of_ranks": 64, "number_of_nodes": 16, "accelerators_per_node": 0}, 32, 64, 4),
        ({"number_of_nodes": 8, "accelerators_per_node": 4}, None, 32, 4),
        ({"number_of_nodes": 8.0, "accelerators_per_node": 2}, 2, 16, 2),
        ({}, 64, 64, None),
    ],
)
def test_ranks(
    read: Read, told: dict[str, Any], given: int | None, ranks: int, per_node: int | None
) -> None:
    run = one(read, training(**told), ranks=given)
    assert run.point["ranks"] == ranks
    assert run.point.get("ranks_per_node") == per_node
    assert run.point["samples_per_rank"] == 4096 // ranks
    unlike = given not in (None, ranks)
    assert (f"not --ranks {given}" in str(run.notes["assumed"])) == unlike


@pytest.mark.parametrize(
    ("told", "point", "variant"),
    [
        ({"opt_learning_rate_decay_factor": [0.5, 0.1]}, {"decay_factors": [0.5, 0.1]}, {}),
        ({"opt_learning_rate_decay_factor": [0.5]}, {},
         {"learning rate decay": "[[32, 64], [0.5]]"}),
        ({"opt_learning_rate_warmup_factor": 3}, {"base_learning_rate": 0.002,
          "learning_rate_reference_batch": 64}, {"opt_learning_rate_warmup_factor": "3"}),
        ({"opt_weight_decay": 0.01}, {}, {"opt_weight_decay": "0.01"}),
        ({"submission_platform": "32xBox 8"}, {}, {"submission_platform": "NxBox 8"}),
        ({"submission_division": None}, {"target_mae": None}, {"submission_division": None}),
    ],
)  # fmt: skip
def test_hyperparameters(
    read: Read, told: dict[str, Any], point: dict[str, Any], variant: dict[str, Any]
) -> None:
    run = one(read, training(**told))
    for found, expected in ((run.point, point), (run.variant, variant)):
        assert {name: found.get(name) for name in expected} == expected
    assert ("opt_weight_decay" in run.variant) == ("opt_weight_decay" in variant)


def test_runs_that_did_not_finish(read: Read) -> None:
    whole = training()
    killed = training(status=None)
    runs, refusals = read(
        whole,
        training(status="aborted"),
        killed,
        killed[:-2],  # in its last epoch
        [*killed[:-2], whole[-2][:60]],  # cut within a line
        training([], status=None),
        ranks=32,
    )
    assert refusals == []
    timed = [("run_time" in run.metrics, "time_to_target" in run.metrics) for run in runs]
    assert timed == [(True, True), (True, False), *[(False, False)] * 4]
    assert [values(run)["epochs_run"] for run in runs] == [3, 3, 3, 2, 2, 0]
    states = [run.notes["status"] for run in runs[:3]]
    assert states == ["success", "aborted", "unfinished: no run_stop"]


@pytest.mark.parametrize(("last", "reached"), [(0.123, True), (0.125, False)])
def test_a_run_that_does_not_tell_how_it_ended(read: Read, last: float, reached: bool) -> None:
    lines = swap(training([0.3, last]), ', "status": "success"', "")
    run = one(read, lines)
    assert ("time_to_target" in run.metrics) == reached
    assert run.notes["status"].startswith("not stated")


AGAIN = training([0.3, 0.11], ms=T0 + 3_600_000)


@pytest.mark.parametrize(
    ("lines", "epochs"),
    [
        (training() + AGAIN, [3, 2]),
        (training(status=None) + AGAIN, [3, 2]),  # killed, then started again
        (training([], status=None) + training([0.3, 0.11], ms=T0 + 6000), [0, 2]),  # within seconds
    ],
)
def test_several_runs_in_a_log(read: Read, lines: list[str], epochs: list[int]) -> None:
    runs, _ = read(lines, ranks=32)
    assert [values(run)["epochs_run"] for run in runs] == epochs
    begin = lines[(runs[1].line or 0) - 1]
    assert runs[0].line == 1 and ("cache_clear" in begin or "init_start" in begin)


def test_models_trained_at_the_same_time(read: Read) -> None:
    both = [training(), training([0.5, 0.1])]
    told = [swap(lines, '"lineno": 7', f'"instance": {n}') for n, lines in enumerate(both)]
    mixed = [text for pair in zip(told[0], told[1], strict=False) for text in pair]
    runs, _ = read(mixed + told[0][len(told[1]) :], ranks=32)
    assert [values(run)["epochs_run"] for run in runs] == [3, 2]


def without(*words: str) -> list[str]:
    """A run without the lines that hold all of the words."""
    return [text for text in training() if not all(word in text for word in words)]


LINES = training()
EVALUATED = f'"time_ms": {T0 + 10_000 + EPOCH + TRAINING}'
BLOCK = line("block_start", T0, first_epoch_num=3, epoch_count=4)
ENDLESS = [text for text in without("epoch_stop", '"epoch_num": 1') if "eval_error" not in text]
REFUSED: dict[str, tuple[list[str], str]] = {
    "samples": (training(train_samples=4097), "train_samples 4097 does not divide evenly among"),
    "two batches": ([*LINES[:-1], line("global_batch_size", T0, 128), LINES[-1]], "is 64 and 128"),
    "a gap": (without('"epoch_num": 1'), "epoch 1 is missing"),
    "no end": (ENDLESS, "epoch 1 has no end"),
    "backwards": (swap(LINES, EVALUATED, f'"time_ms": {T0 + 10_000}'), "its end is earlier"),
    "a date beyond": ([*LINES[:-1], line("eval_start", 10**18), LINES[-1]], "a damaged line: "),
    "a block of epochs": ([*LINES[:-1], BLOCK], "block_start of no single epoch"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(read: Read, kind: str) -> None:
    lines, reason = REFUSED[kind]
    refusal = why(read, lines)
    assert reason in refusal.reason and "\n" not in refusal.message and refusal.line
    assert kind != "a date beyond" or refusal.line == len(LINES)


# --- MLPerf Training ---

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


def test_a_run_of_mlperf_training(tmp_path: Path) -> None:
    """Other numbers of it: tests/acceptance/imports."""
    run = one_of(tmp_path, LOG)
    assert len(run.metrics) == 6  # what a block says of memory has no unit
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
    assert len(written) == 2 and [refusal.what for refusal in refusals] == ["copy"]


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
