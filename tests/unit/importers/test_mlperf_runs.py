"""Importing MLPerf's logs: every way in which they are written, and what they cannot say."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.config.campaign import load_campaign
from scalesweep.core.record import read_record
from scalesweep.importers.detect_logs import RULES, read_source
from scalesweep.importers.write_campaign import campaign_of, write_campaign
from tests.conftest import ROOT
from tests.fakes import mllog as fake
from tests.fakes.imported_runs import import_runs
from tests.fakes.mllog import T0, Read, line, one, swap, training, values, why


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read logs of these lines."""
    return fake.reader_of(tmp_path)


def test_a_closed_run(read: Read) -> None:
    run = one(read, training())
    assert run.benchmark == "cosmoflow_training"
    assert run.point == {
        "ranks": 32, "samples_per_rank": 128, "validation_samples_per_rank": 32, "batch_size": 2,
        "epochs": None, "target_mae": 0.124, "optimizer": "sgd", "base_learning_rate": 0.001,
        "learning_rate_reference_batch": 32, "warmup_epochs": 4, "decay_epochs": [32, 64],
        "decay_factors": [0.25, 0.125],
    }  # fmt: skip
    assert values(run) == pytest.approx({
        "run_time": fake.run_time(),
        "time_to_target": fake.run_time(),
        "epochs_run": 3,
        "training_time": 3 * 100.5,
        "training_samples_per_second": 4096 / 100.5,
        "final_validation_mae": 0.12,
    })  # fmt: skip
    assert run.phases == {"init": 3.5, "data_staging": 4.0, "training": 301.5, "validation": 60.75}
    assert [span[0] for span in run.phase_spans][:4] == [
        "init", "data_staging", "training", "validation",
    ]  # fmt: skip
    assert run.phase_spans[0][1:] == ((T0 + 1000) / 1000, (T0 + 4500) / 1000)
    expected = {
        "validation_mae": [0.4, 0.2, 0.12],
        "training_times": [100.5] * 3,
        "validation_times": [20.25] * 3,
        "epoch_ends": [122.75, 2 * 122.75, 3 * 122.75],
    }
    assert set(run.samples) == set(expected)  # above all no times of single ranks
    for name, array in expected.items():
        np.testing.assert_allclose(run.samples[name], np.array(array)[:, None])
    assert run.started.isoformat() == "2020-09-13T12:26:41+00:00"
    assert (run.ended - run.started).total_seconds() == pytest.approx(fake.run_time() + 4, abs=1)
    assert set(run.notes["assumed"]) == {"ranks", "target_mae", "decay_factors"}
    assert run.notes["submission"]["submission_org"] == "ORG"
    assert run.notes["status"] == "success"


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
    "wrong event types": lambda lines: swap(lines, "INTERVAL_END", "INTERVAL_START"),
    "blocks": lambda lines: swap(
        [re.sub('("[a-z]*)epoch_st(.*)"epoch_num"', r'\1block_st\2"first_epoch_num"', text)
         for text in lines],
        '"block_stop"', '"block_stop"',
    ),
    "Python's dicts": as_python,
    "evaluation behind the epoch": evaluated_outside,
    "every line three times": lambda lines: [text for text in lines for _ in range(3)],
    "srun's labels": two_ranks("{}: "),
    "mpirun's labels": two_ranks("[1,{}]<stdout>:"),
    "padded srun labels": two_ranks("  {}: "),
    "a time before the mark": lambda lines: [f"2021-09-28 12:00:00 {text}" for text in lines],
    "text behind": lambda lines: [text.replace("\n", " <- logged\n") for text in lines],
    "other output between": lambda lines: [
        t for text in lines for t in (text, "loss: 0.1\n", "# :::MLLOG follows\n")
    ],
    "Windows line ends": lambda lines: [text.replace("\n", "\r\n") for text in lines],
    "an evaluation before the first epoch": lambda lines: [
        *lines[:-16], line("eval_start", T0 + 9200), line("eval_stop", T0 + 9300),
        line("eval_error", T0 + 9300, 0.9), *lines[-16:],
    ],
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


def test_epochs_may_count_from_one_and_end_with_the_evaluation(read: Read) -> None:
    lines = training(first=1)
    cut = [text for text in lines if not ('"epoch_stop"' in text and '"epoch_num": 3' in text)]
    assert len(cut) == len(lines) - 1
    run = one(read, cut)
    assert values(run)["epochs_run"] == 3
    np.testing.assert_allclose(run.samples["epoch_ends"][-1, 0], 3 * 122.75 - 2)
    assert run.notes["epochs"] == "numbered 1 to 3 in the log"


def test_epochs_without_evaluation_have_no_error(read: Read) -> None:
    lines = [text for text in training() if not ('"eval_' in text and '"epoch_num": 1' in text)]
    run = one(read, lines)
    np.testing.assert_array_equal(run.samples["validation_mae"][:, 0], [0.4, np.nan, 0.12])
    np.testing.assert_array_equal(run.samples["validation_times"][:, 0], [20.25, np.nan, 20.25])
    np.testing.assert_allclose(run.samples["training_times"][:, 0], [100.5, 122.75, 100.5])


def test_learning_rates_of_the_log(read: Read) -> None:
    lines = [
        text.replace('"epoch_num": 1}', '"epoch_num": 1, "lr": [0.006, 0.006]}')
        for text in training()
    ]
    run = one(read, lines)
    np.testing.assert_array_equal(run.samples["learning_rate"][:, 0], [np.nan, 0.006, np.nan])
    assert run.notes["learning_rate"] == "at the start of each epoch"


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
    assert (f"not those of --ranks {given}" in str(run.notes["assumed"])) == unlike


def test_ranks_that_nobody_tells(read: Read) -> None:
    for told in ({}, {"number_of_nodes": 8, "accelerators_per_node": 0}):
        refusal = why(read, training(**told), ranks=None)
        assert refusal.message.endswith(
            "result_0.txt:1: the log does not state the number of ranks: add --ranks N"
        )


@pytest.mark.parametrize(
    ("told", "point", "variant"),
    [
        ({"opt_learning_rate_decay_factor": [0.5, 0.1]}, {"decay_factors": [0.5, 0.1]}, {}),
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


def test_how_many_epochs_a_run_needed_is_no_parameter(read: Read) -> None:
    runs, refusals = read(*(training([0.5] * n, ms=T0 + n * 10**8) for n in (3, 128, 129, 300)))
    assert refusals == []
    assert len({json.dumps(run.point) for run in runs}) == 1
    (said, *_), _ = read(training(epochs=200))
    assert said.point["epochs"] == 200


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
    assert runs[4].notes["cut"] == f"line {len(killed) - 1} is not whole"
    assert runs[5].samples == {}
    assert len({run.source_digest for run in runs[:4]}) == 4


@pytest.mark.parametrize(("last", "reached"), [(0.123, True), (0.125, False)])
def test_a_run_that_does_not_tell_how_it_ended(read: Read, last: float, reached: bool) -> None:
    lines = swap(training([0.3, last]), ', "status": "success"', "")
    run = one(read, lines)
    assert ("time_to_target" in run.metrics) == reached
    assert run.notes["status"].startswith("not stated")


def test_success_that_no_error_bears_out(read: Read) -> None:
    run = one(read, training([0.5, 0.3]))
    assert "time_to_target" in run.metrics and "no eval_error is 0.124" in run.notes["target"]
    assert "target" not in one(read, training()).notes


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


def test_records_and_a_campaign_over_ranks(read: Read, tmp_path: Path) -> None:
    hours = 10**7
    small = [training([0.4, 0.1 + n / 100], ms=T0 + n * hours) for n in range(3)]
    large = training([0.4, 0.1], T0 + 9 * hours, number_of_ranks=64, global_batch_size=128,
                     opt_base_learning_rate=0.004, opt_learning_rate_warmup_factor=4)  # fmt: skip
    other = training(ms=T0 + 5 * hours, submission_platform="Other")
    runs, refusals = read(*small, large, small[1], other)
    assert refusals == []
    written, refused = import_runs(runs, tmp_path / "runs" / "imported")
    assert [entry.repeat for entry in written] == [0, 1, 2, 0, 3]
    (copy,) = refused
    assert copy.copy and "the same run as in" in copy.reason
    for path in tmp_path.glob("runs/imported/*/record.json"):
        record = read_record(path)
        assert record["source"] == "imported" and record["phases"]["training"] > 0
        assert record["phase_spans"][0][0] == "init"
    content = campaign_of(written, RULES, "test", "imported", str(tmp_path / "results"))
    write_campaign(content, tmp_path / "campaign.yaml")
    experiment, apart = load_campaign(tmp_path / "campaign.yaml").experiments
    assert (experiment.name, experiment.scaling) == (
        "cosmoflow_training_org_machine_closed",
        "strong",
    )
    assert [run.repeat for run in experiment.runs] == [0, 0, 1, 2]  # none of the other platform
    assert [run.repeat for run in apart.runs] == [3]
    assert "submission_platform: Other" in apart.description
    assert [point["ranks"] for point in experiment.points] == [32, 64]
    assert [point["samples_per_rank"] for point in experiment.points] == [128, 64]


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


def test_instances_that_share_a_log_stay_apart(read: Read) -> None:
    first = [text.replace('"lineno": 7', '"lineno": 7, "instance": 0') for text in training()]
    other = [text.replace('"lineno": 7', '"lineno": 7, "instance": 1') for text in training()]
    mixed = [text for pair in zip(first, other, strict=True) for text in pair]
    runs, refusals = read(mixed)
    assert (len(runs), refusals) == (2, [])
