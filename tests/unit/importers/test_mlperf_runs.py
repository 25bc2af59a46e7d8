"""Importing MLPerf's logs: every way in which they are written, and what they cannot say."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.fakes import mllog as fake
from tests.fakes.imported_runs import read_source
from tests.fakes.mllog import EPOCH, T0, Read, line, one, swap, training, values, why


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read logs of these lines."""
    return fake.reader_of(tmp_path)


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
    # Above all no times of single ranks.
    assert set(run.samples) == {
        "validation_mae", "training_times", "validation_times", "epoch_ends",
    }  # fmt: skip
    np.testing.assert_allclose(run.samples["epoch_ends"][:, 0], [122.75, 245.5, 368.25])
    assert run.started and run.started.isoformat() == "2020-09-13T12:26:41+00:00"
    assert set(run.notes["assumed"]) == {"ranks", "target_mae", "decay_factors"}


def without_number(lines: list[str]) -> list[str]:
    return [
        re.sub(r', "epoch_num": \d+', "", text) if '"eval_st' in text else text for text in lines
    ]


def as_python(lines: list[str]) -> list[str]:
    return [f":::MLLOG {json.loads(text[9:])!r}\n" for text in lines]


def evaluated_outside(lines: list[str]) -> list[str]:
    """The epoch ends where the evaluation starts; the end of all is that of the evaluation."""
    found = []
    for text in lines:
        if '"epoch_stop"' in text:
            event = json.loads(text[9:])
            event["time_ms"] -= 2000 + fake.EVALUATION
            found.append(f":::MLLOG {json.dumps(event)}\n")
        else:
            found.append(text)
    return found


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
    "epochs without their number in evaluations": without_number,
    "blocks": lambda lines: swap(
        [re.sub('("[a-z]*)epoch_st(.*)"epoch_num"', r'\1block_st\2"first_epoch_num"', text)
         for text in lines],
        '"block_stop"', '"block_stop"',
    ),
    "Python's dicts": as_python,
    "evaluation behind the epoch": evaluated_outside,
    "srun's labels": two_ranks("{}: "),
    "mpirun's labels": two_ranks("[1,{}]<stdout>:"),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_ways_to_write_the_same(read: Read, style: str) -> None:
    plain, styled = training(), STYLES[style](training())
    assert plain != styled
    expected, found = one(read, plain), one(read, styled)
    assert found.point == expected.point
    outside = style == "evaluation behind the epoch"
    assert values(found) == pytest.approx(values(expected))
    for name, array in expected.samples.items():
        rest = np.arange(1, 4)[:, None] * 0.0 + (2.0 if outside and name == "epoch_ends" else 0.0)
        np.testing.assert_allclose(found.samples[name], array - rest, err_msg=name)


def test_epochs_without_evaluation_have_no_error(read: Read) -> None:
    lines = [text for text in training() if not ('"eval_' in text and '"epoch_num": 1' in text)]
    run = one(read, lines)
    np.testing.assert_array_equal(run.samples["validation_mae"][:, 0], [0.4, np.nan, 0.12])
    np.testing.assert_array_equal(run.samples["validation_times"][:, 0], [20.25, np.nan, 20.25])
    np.testing.assert_allclose(run.samples["training_times"][:, 0], [100.5, 122.75, 100.5])


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
        ({"dropout": 0.5, "sample_shape": [64, 64, 64, 4]}, {"dropout": 0.5,
          "sample_shape": [64, 64, 64, 4]}, {}),
        ({"opt_weight_decay": 0.0}, {}, {}),
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
        fake.head(),
    )
    assert refusals == []
    names = [set(values(run)) & {"run_time", "time_to_target"} for run in runs]
    assert names == [{"run_time", "time_to_target"}, {"run_time"}, set(), set(), set(), set()]
    assert [values(run)["epochs_run"] for run in runs] == [3, 3, 3, 2, 2, 0]
    assert [run.notes["status"] for run in runs[:3]] == [
        "success", "aborted", "unfinished: no run_stop",
    ]  # fmt: skip
    assert runs[5].samples == {}


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
        (AGAIN + training(), [2, 3]),  # not in the order of their times
        (training(status=None) + AGAIN, [3, 2]),  # killed, then started again
        (fake.head() + training([0.3, 0.11], ms=T0 + 6000), [0, 2]),  # within seconds
    ],
)
def test_several_runs_in_a_log(read: Read, lines: list[str], epochs: list[int]) -> None:
    runs, refusals = read(lines)
    assert refusals == []
    assert [values(run)["epochs_run"] for run in runs] == epochs
    assert runs[0].line == 1 and runs[1].line is not None
    assert "cache_clear" in lines[runs[1].line - 1] or "init_start" in lines[runs[1].line - 1]


def test_models_trained_at_the_same_time(read: Read) -> None:
    both = [training(), training([0.5, 0.1])]
    told = [[text.replace('"lineno": 7', f'"instance": {n}') for text in lines]
            for n, lines in enumerate(both)]  # fmt: skip
    mixed = [text for pair in zip(told[0], told[1], strict=False) for text in pair]
    runs, refusals = read(mixed + told[0][len(told[1]) :])
    assert refusals == []
    assert [values(run)["epochs_run"] for run in runs] == [3, 2]


def test_logs_of_our_own_program(tmp_path: Path) -> None:
    benchmarks = ROOT / "workflow" / "benchmarks"
    sys.path.insert(0, str(benchmarks))
    try:
        from harness.mllog import MLLog
    finally:
        sys.path.remove(str(benchmarks))
    path = tmp_path / "attempts" / "1" / "mlperf.log"
    log, silent = MLLog(path), MLLog(None)
    for each in (log, silent):
        each.start("init_start")
        each.event("submission_benchmark", "cosmoflow")
        each.end("init_stop")
        each.start("run_start")
        for key, value in {**fake.HYPERPARAMETERS, "number_of_ranks": np.int64(4)}.items():
            each.event(key, value)
        each.event("target_mae", 0.3)
        for number, error in enumerate([np.float32(0.5), float("nan"), 0.25]):
            each.start("epoch_start", epoch_num=number)
            each.start("eval_start", epoch_num=number)
            each.end("eval_stop", epoch_num=number)
            each.event("eval_error", error, epoch_num=number)
            each.end("epoch_stop", epoch_num=number)
    assert list(tmp_path.rglob("*.log")) == [path]
    ((unfinished,), _, _) = read_source(path)  # every line is there when it is written
    assert "time_to_target" not in unfinished.metrics
    log.end("run_stop", status="success")
    log.close()
    log.event("after the end")
    runs, refusals, _ = read_source(tmp_path / "attempts")
    assert refusals == []
    (run,) = runs
    assert run.point["ranks"] == 4 and run.point["target_mae"] == 0.3
    assert "time_to_target" in run.metrics and values(run)["final_validation_mae"] == 0.25
    np.testing.assert_array_equal(run.samples["validation_mae"][:, 0], [0.5, np.nan, 0.25])
    events = [json.loads(text[9:]) for text in path.read_text().splitlines()]
    assert {event["event_type"] for event in events} == {
        "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END",
    }  # fmt: skip
    assert all(event["metadata"]["file"] == Path(__file__).name for event in events)
    assert [event["time_ms"] for event in events] == sorted(event["time_ms"] for event in events)


# mlcommons/hpc_results_v3.0, NVIDIA/results/eos_n256_ngc23.09_pytorch/weak/cosmoflow/result_0.txt:
# key, time in ms after 1,695,710,000,000, value, metadata; epochs 1, 7 (here 2) and 8 (here 3).
_OF = {"instance": 0}
V3 = (
    ("init_start", 610_687, None, _OF),
    ("submission_benchmark", 610_687, "cosmoflow", {}),
    ("submission_org", 610_687, "NVIDIA", {}),
    ("submission_division", 610_687, "closed", {}),
    ("submission_platform", 610_687, "256xNVIDIA DGX H100", {}),
    ("number_of_nodes", 610_687, 4, _OF),
    ("accelerators_per_node", 610_687, 8, _OF),
    ("global_batch_size", 620_742, 32, _OF),
    ("train_samples", 620_742, 524_288, _OF),
    ("eval_samples", 620_742, 65_536, _OF),
    ("init_stop", 892_753, None, {}),
    ("run_start", 892_754, None, {}),
    ("epoch_start", 905_917, None, {"epoch_num": 1, "lr": [0.001], **_OF}),
    ("eval_start", 983_270, None, {"epoch_num": 1, **_OF}),
    ("eval_stop", 989_146, None, {"epoch_num": 1, **_OF}),
    ("epoch_stop", 989_146, None, {"epoch_num": 1, **_OF}),
    ("eval_error", 989_147, 0.1910761296749115, {"epoch_num": 1, **_OF}),
    ("epoch_start", 1_385_630, None, {"epoch_num": 2, "lr": [0.00025], **_OF}),
    ("eval_start", 1_458_779, None, {"epoch_num": 2, **_OF}),
    ("eval_stop", 1_464_603, None, {"epoch_num": 2, **_OF}),
    ("epoch_stop", 1_464_604, None, {"epoch_num": 2, **_OF}),
    ("eval_error", 1_464_604, 0.12279101461172104, {"epoch_num": 2, **_OF}),
    ("run_stop", 1_464_605, None, {"status": "success", "time": 571.849781036377, "epoch_num": 2}),
    ("epoch_start", 1_464_605, None, {"epoch_num": 3, "lr": [0.00025], **_OF}),
    ("eval_start", 1_537_847, None, {"epoch_num": 3, **_OF}),
    ("eval_stop", 1_543_672, None, {"epoch_num": 3, **_OF}),
    ("epoch_stop", 1_543_672, None, {"epoch_num": 3, **_OF}),
    ("eval_error", 1_543_673, 0.12436418980360031, {"epoch_num": 3, **_OF}),
)


def test_a_log_of_v3_whose_lines_name_their_instance_or_none(read: Read) -> None:
    """One run: nodes and accelerators are on lines of instance 0, run_start on one of none. The
    program went on training behind run_stop; what it did then is not of the run."""
    lines = [line(key, 1_695_710_000_000 + ms, value, **more) for key, ms, value, more in V3]
    run = one(read, lines, ranks=None)
    assert (run.point["ranks"], run.point["ranks_per_node"]) == (32, 8)
    assert run.notes["assumed"]["ranks"] == "one for each accelerator"
    found = values(run)
    assert found["run_time"] == found["time_to_target"] == pytest.approx(571.8498, abs=0.002)
    assert found["epochs_run"] == 2
    assert found["final_validation_mae"] == pytest.approx(0.12279101461172104)
    assert run.notes["after_run_stop"] == "1 epoch behind run_stop: not of the run"


BROKEN = len(fake.head()) + 2  # the line of the first epoch's evaluation


def broken(text: str) -> list[str]:
    """A run with another line instead."""
    lines = training()
    lines[BROKEN - 1] = f"{text}\n"
    return lines


def ending(*lines: str) -> list[str]:
    """A run with other lines instead of its last."""
    return [*training()[:-1], *lines]


def without(*words: str) -> list[str]:
    """A run without the lines that hold all of the words."""
    return [text for text in training() if not all(word in text for word in words)]


LAST = training()[-1]
EVALUATED = f'"time_ms": {T0 + 10_000 + EPOCH + fake.TRAINING}'
BLOCK = line("block_start", T0, first_epoch_num=3, epoch_count=4)
ENDLESS = [text for text in without("epoch_stop", '"epoch_num": 1') if "eval_error" not in text]
REFUSED: dict[str, tuple[list[str], str]] = {
    "of nothing": (without("submission_benchmark"), "no submission_benchmark"),
    "no run_start": (fake.head()[:5], "no run_start"),
    "samples": (training(train_samples=4097), "train_samples 4097 does not divide evenly among"),
    "batch": (training(global_batch_size=16), "global_batch_size 16 does not divide evenly among"),
    "two batches": (ending(line("global_batch_size", T0, 128), LAST), "is 64 and 128"),
    "two errors": (ending(line("eval_error", T0, 0.3, epoch_num=1), LAST), "0.2 and 0.3: "),
    "a gap": (without('"epoch_num": 1'), "epoch 1 is missing"),
    "no end": (ENDLESS, "epoch 1 has no end"),
    "backwards": (swap(training(), EVALUATED, f'"time_ms": {T0 + 10_000}'), "its end is earlier"),
    "after the end": (ending(line("run_stop", T0 + 50_000)), "epoch 0 ends after run_stop"),
    "a date beyond": (broken(line("eval_start", 10**18, epoch_num=0)), "a damaged line: "),
    "a block of epochs": (ending(BLOCK), "block_start of no single epoch"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(read: Read, kind: str) -> None:
    lines, reason = REFUSED[kind]
    refusal = why(read, lines)
    assert reason in refusal.reason and "\n" not in refusal.message
    assert refusal.line is not None
    if reason.startswith("a damaged line: "):
        assert refusal.line == BROKEN


def test_the_rest_is_imported_beside_what_is_refused(read: Read) -> None:
    runs, refusals = read(training() + REFUSED["a date beyond"][0] + training(ms=T0 + 10**7))
    assert len(runs) == 2
    assert [refusal.line for refusal in refusals] == [len(training()) + BROKEN]
