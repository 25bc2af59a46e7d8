"""Importing logs: which formats are read, what is refused by line, that nothing is invented."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.benchmark import load_benchmark
from scalesweep.campaign import load_campaign
from scalesweep.errors import UserError
from scalesweep.importers.campaigns import campaign_of, write_campaign
from scalesweep.importers.logfiles import RULES, read_source
from scalesweep.importers.records import import_runs
from scalesweep.importers.runs import ImportedRun, Refusal
from scalesweep.record import read_record
from tests.unit import fake_logs as fake
from tests.unit.fake_logs import command, gpus, one, run

POINT = {
    "ranks": 1, "devices_per_rank": 1, "model": "alexnet", "data_set": "cifar10", "data_dir": None,
    "batch_size": 128, "device": "gpu", "data_format": "NCHW", "parameter_device": "gpu",
    "variable_update": "parameter_server", "optimizer": "sgd", "warmup_batches": 10,
    "batches": 100, "display_every": 10,
}  # fmt: skip
Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write texts into a log each and read them."""

    def reader(*texts: str | bytes) -> tuple[list[ImportedRun], list[Refusal]]:
        for number, text in enumerate(texts):
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / f"log{number}.txt").write_bytes(content)
        runs, refusals, _ = read_source(tmp_path)
        return runs, refusals

    return reader


def rate(run: ImportedRun) -> float:
    return float(run.metrics["total_images_per_second"]["value"])


def test_a_log_with_commands(read: Read) -> None:
    flags = "--local_parameter_device cpu --data_dir /data/cifar"
    runs, refusals = read(one(1000.0) + one(1170.0, flags, devices=2, parameters=[1756620.0] * 2))
    assert refusals == []
    first, second = runs
    assert first.point == POINT
    assert first.line == 1
    assert second.point == {
        **POINT, "devices_per_rank": 2, "parameter_device": "cpu", "data_dir": "/data/cifar",
    }  # fmt: skip
    assert {name: metric["value"] for name, metric in first.metrics.items()} == {
        "total_images_per_second": 1000.0,
        "images_per_second": 990.0,
        "images_per_second_uncertainty": 10.0,
        "images_per_second_jitter": 5.0,
        "final_loss": 2.0,
        "model_parameters": 1756620,
    }
    assert rate(second) / (2 * rate(first)) == pytest.approx(0.585)
    np.testing.assert_array_equal(first.samples["steps"], [1, *range(10, 101, 10)])
    assert first.samples["images_per_second"].shape == (11, 1)
    assert first.samples["losses"][-1, 0] == 2.0
    assert all(array.dtype == np.float64 for array in first.samples.values())


def test_what_tensorflow_tells_of_the_machine_is_kept(read: Read) -> None:
    assignment = "++ CUDA_VISIBLE_DEVICES=0,1\n"
    ((found,), _) = read(assignment + one(1170.0, devices=2))
    assert found.environment["versions"] == {"tensorflow": "1.3"}
    node = found.environment["node"]
    assert node["gpu_model"] == "Tesla M60"
    assert node["devices"] == [
        {
            "name": "Tesla M60",
            "pci.bus_id": "0fa3:00:00.0",
            "clock_ghz": 1.1775,
            "memory_gib": 7.93,
        },
        {
            "name": "Tesla M60",
            "pci.bus_id": "1fa3:00:00.0",
            "clock_ghz": 1.1785,
            "memory_gib": 7.93,
        },
    ]
    assert (node["no_peer_access"], node["peer_access"]) == (["0-1"], ["0: Y N"])
    assert found.started.isoformat() == "2017-10-02T16:50:17+00:00"
    assert found.notes["visible_gpus"] == "0,1"
    assert found.variant == {"GPU": "Tesla M60"}


def test_other_versions_tell_gpus_in_other_words(read: Read) -> None:
    found = (
        "2018-05-15 18:30:10.8: I tensorflow/gpu_device.cc:1344] Found device 0 with properties:\n"
    )
    old = (
        f"{found}name: Tesla P100-PCIE-16GB major: 6 minor: 0 memoryClockRate(GHz): 1.3285\n"
        "pciBusID: 0000:05:00.0\ntotalMemory: 15.90GiB freeMemory: 15.61GiB\n"
    )
    new = (
        f"{found}pciBusID: 0000:05:00.0 name: Tesla P100-PCIE-16GB computeCapability: 6.0\n"
        "coreClock: 1.3285GHz coreCount: 56 deviceMemorySize: 15.90GiB\n"
    )
    created = (
        "2018-05-15 18:30:11.3: I tensorflow/gpu_device.cc:1053] Created TensorFlow device "
        "(/job:localhost/replica:0/task:0/device:GPU:0 with 15127 MB memory) -> physical GPU "
        "(device: 0, name: Tesla P100-PCIE-16GB, pci bus id: 0000:05:00.0, compute capability: 6)\n"
    )
    runs, _ = read(old + created + run(1000.0), new + created + run(1001.0))
    for found_run in runs:
        assert found_run.environment["node"]["devices"] == [
            {"name": "Tesla P100-PCIE-16GB", "pci.bus_id": "0000:05:00.0", "clock_ghz": 1.3285,
             "memory_gib": 15.9},
        ]  # fmt: skip


FLAGS = "--model=alexnet --data_name=cifar10 --num_gpus=1"


@pytest.mark.parametrize(
    "echo",
    [
        command(FLAGS),
        command(FLAGS, "+ "),
        command(FLAGS, ""),
        command(FLAGS, "(venv) [user@node01 dir]$ "),
        command(FLAGS, "CUDA_VISIBLE_DEVICES=0 "),
        command(FLAGS, program="/usr/bin/python3.6 -u ./tf_cnn_benchmarks.py"),
        command(f"{FLAGS} 2>&1 | tee log.txt", "$ "),
        command("\\\n    " + FLAGS.replace(" ", " \\\n    "), "$ "),
        "++ RUN='python tf_cnn_benchmarks.py --model vgg16 --num_gpus 8'\n" + command(FLAGS),
        'Traceback:\n  File "tf_cnn_benchmarks.py", line 68, in <module>\n' + command(FLAGS),
    ],
)
def test_commands_as_they_stand_in_logs(read: Read, echo: str) -> None:
    ((found,), refusals) = read(echo + run())
    assert refusals == []
    assert found.point == POINT
    assert "data_set" not in found.notes["assumed"]


def test_logs_without_commands(read: Read) -> None:
    few = [271164.0]
    runs, refusals = read(
        run(1000.0) + run(3000.0, model="resnet20", parameters=few) + run(50.0, model="vgg16")
    )
    assert refusals == []
    assert [found.point["data_set"] for found in runs] == ["cifar10", "cifar10", "imagenet"]
    assert "parameters" in runs[0].notes["assumed"]["data_set"]
    assert runs[0].notes["assumed"]["parameter_device"]
    length = len(run().splitlines())
    assert [found.line for found in runs] == [1, 1 + length, 1 + 2 * length]


def variants() -> dict[str, str | bytes]:
    text = one(1000.0)
    return {
        "crlf": text.replace("\n", "\r\n"),
        "utf-8 with mark": b"\xef\xbb\xbf" + text.encode(),
        "utf-16": text.encode("utf-16"),
        "latin-1": ("Zeit für nichts\n" + text).encode("latin-1"),
        "spaces for tabs": text.replace("\t", "       "),
        "colours": text.replace("total", "\x1b[1;32mtotal").replace("16:50", "\x1b[0m16:50"),
        "logger": text.replace("Model: ", "INFO:tensorflow:Model: ").replace(
            "10\timages", "I1018 14:27:02.072400 139798001403648 cnn_util.py:42] 10\timages", 1
        ),
        "no end of line": text.rstrip("\n-"),
        "accuracy": text.replace("loss\n", "loss\ttop_1_accuracy\n").replace(
            "\t2.000\n", "\t2.000\t0.125\n"
        ),
        "a line of TensorFlow behind a loss": text.replace(
            "\t2.000\n", "\t2.0002017-10-02 16:59:17.1: I tensorflow/pool_allocator.cc:247] x\n"
        ),
    }


@pytest.mark.parametrize("name", variants())
def test_one_run_in_many_forms(read: Read, name: str) -> None:
    ((found,), refusals) = read(variants()[name])
    assert refusals == []
    assert found.point == POINT
    assert (rate(found), found.metrics["final_loss"]["value"]) == (1000.0, 2.0)
    assert found.samples["images_per_second"][-1, 0] == 990.0


def test_newer_headers(read: Read) -> None:
    text = "".join(fake.new_run(200.0, 201.5, update="replicated", more="AllReduce:   nccl\n"))
    ((found,), refusals) = read(text)
    assert refusals == []
    assert found.point == {
        "ranks": 1, "devices_per_rank": 1, "model": "resnet50", "data_set": "imagenet",
        "data_dir": None, "batch_size": 64, "device": "gpu", "data_format": "NCHW",
        "variable_update": "replicated", "all_reduce_spec": "nccl", "optimizer": "momentum",
        "parameter_device": "gpu", "warmup_batches": 10, "batches": 30, "display_every": 10,
    }  # fmt: skip


def test_real_images_without_their_place(read: Read) -> None:
    text = "".join(fake.new_run(200.0, 201.5, update="independent")).replace(" (synthetic)", "")
    ((found,), _) = read(text)
    assert found.point["data_dir"] == "unnamed"
    assert "data_dir" in found.notes["assumed"]


def labelled(ranks: int, label: str) -> str:
    """A Horovod job whose ranks' lines are mixed, each behind its label."""
    logs = [fake.new_run(100.0 + rank, 200.0 + rank / 10, ranks) for rank in range(ranks)]
    lines = []
    for together in zip(*logs, strict=True):
        lines += [label.format(rank) + line for rank, line in enumerate(together)]
    return "".join(lines)


def blocks(ranks: int) -> str:
    """A Horovod job whose ranks wrote one after the other."""
    logs = [fake.new_run(100.0 + rank, 200.0 + rank / 10, ranks) for rank in range(ranks)]
    return "".join("".join(log) for log in logs)


@pytest.mark.parametrize(
    "text",
    [
        labelled(2, "[{}]<stdout>:"),
        labelled(2, "[1,{}]<stdout>:"),
        labelled(2, "Mon Jun  1 12:00:00 2020[{}]<stdout>:"),
        labelled(2, "{}: "),
        labelled(2, ""),
        blocks(2),
        command("--variable_update horovod", program=f"mpirun -np 2 python {fake.PROGRAM}")
        + labelled(2, ""),
    ],
)  # fmt: skip
def test_horovod_totals_are_taken_once(read: Read, text: str) -> None:
    ((found,), refusals) = read(text)
    assert refusals == []
    assert (found.point["ranks"], found.point["devices_per_rank"]) == (2, 1)
    assert found.point["variable_update"] == "horovod"
    assert rate(found) == 200.0
    assert found.metrics["images_per_second"]["value"] == 100.5
    assert found.samples["images_per_second"].shape == (4, 2)
    np.testing.assert_array_equal(found.samples["images_per_second"][-1], [100.0, 101.0])
    assert found.notes["totals"] == ["200.00", "200.10"]


def test_horovod_of_which_one_rank_is_in_the_log(read: Read) -> None:
    ((found,), refusals) = read("".join(fake.new_run(100.0, 400.0, 4)))
    assert refusals == []
    assert (found.point["ranks"], rate(found)) == (4, 400.0)
    assert found.samples["images_per_second"].shape == (4, 1)


def test_hosts_of_a_launcher_tell_the_ranks_of_a_node(read: Read) -> None:
    flags = "--model resnet50 --variable_update horovod"
    for words, per_node in (
        ("mpirun -np 4 -H a:2,b:2", 2),
        ("mpirun -np 4 -npernode 4", 4),
        ("srun -n 4 --ntasks-per-node=1", 1),
        ("mpirun -np 4 -H a:3,b:1", None),
    ):
        text = command(flags, program=f"{words} python {fake.PROGRAM}")
        ((found,), _) = read(text + "".join(fake.new_run(100.0, 400.0, 4)))
        assert found.point.get("ranks_per_node") == per_node


def test_several_horovod_jobs_in_one_log(read: Read) -> None:
    flags = "--model resnet50 --variable_update horovod"
    echo = command(flags, program=f"mpirun -np 2 python {fake.PROGRAM}")
    runs, refusals = read(
        echo + labelled(2, "") + echo + "".join(fake.new_run(101.0, 202.0, 2)) + echo + blocks(2)
    )
    assert refusals == []
    assert [rate(found) for found in runs] == [200.0, 202.0, 200.0]


def test_the_header_wins_over_the_command(read: Read) -> None:
    text = one(1170.0, "--batch_size 64 --data_format NHWC", devices=2)
    ((found,), _) = read(text)
    assert (found.point["batch_size"], found.point["data_format"]) == (128, "NCHW")
    assert found.notes["command_differs"] == {
        "batch_size": "--batch_size 64, the header says 128",
        "data_format": "--data_format NHWC, the header says NCHW",
    }


def test_replicas_are_counted_once(read: Read) -> None:
    names: dict[str, Any] = {"devices": 2, "update": "replicated", "more": "Use NCCL:    True\n"}
    texts = [
        one(1170.0, "--use_nccl true", parameters=numbers, **names)
        for numbers in ([1756620.0, 3513239.0], [3513239.0], [1756620.0, 1000.0])
    ]
    runs, refusals = read(*texts)
    assert refusals == []
    assert [r.metrics["model_parameters"]["value"] for r in runs] == [1756620, 3513239, 1756620]
    assert runs[0].notes["printed_parameters"] == [1756620, 3513239]
    assert "one copy" in runs[0].notes["printed_parameters_meaning"]
    assert "printed_parameters" not in runs[1].notes
    assert "do not fit" in runs[2].notes["printed_parameters_meaning"]
    assert runs[0].point["all_reduce_spec"] == "nccl"


def test_flags_that_are_no_parameter_set_runs_apart(read: Read) -> None:
    runs, _ = read(one(1000.0, "--use_fp16=True --train_dir /tmp/x --weight_decay 1e-4"))
    assert runs[0].variant == {"GPU": "Tesla M60", "--use_fp16": "True"}


def test_a_worker_of_a_distributed_job(read: Read) -> None:
    devices = "['/job:worker/replica:0/task:{}/gpu:0']"
    chief, other = (run(500.0).replace("['/gpu:0']", devices.format(n)) for n in (0, 3))
    runs, refusals = read(chief.replace("128 global", "512 global"))
    assert refusals == []
    assert runs[0].point["ranks"] == 4
    for text, told in ((other, "of worker 3"), (chief, "how many workers")):
        assert told in read(text)[1][0].reason


def test_processors(read: Read) -> None:
    text = one(10.0, "--device=cpu", data_format="NHWC").replace("/gpu:0']", "/cpu:0']")
    ((found,), _) = read(text)
    assert (found.point["device"], found.point["parameter_device"]) == ("cpu", "cpu")


def test_a_loss_that_is_no_number(read: Read) -> None:
    ((found,), _) = read(one(1000.0).replace("\t2.000\n", "\tnan\n"))
    assert "final_loss" not in found.metrics
    assert found.notes["final_loss"] == "not a finite number"


TEXT = one(1000.0)
LINES = TEXT.splitlines()


def step(number: int) -> str:
    """The line of progress of a step, with its end."""
    return next(line for line in LINES if line.startswith(f"{number}\timages")) + "\n"


def without(text: str) -> str:
    """TEXT without a part of it."""
    return TEXT.replace(text, "")


def instead(old: str, new: str) -> str:
    """TEXT with something else in a place."""
    return TEXT.replace(old, new, 1)


NOT_ONE = "total images/sec: 1000"
# What is left of TEXT, the reason, and how the line begins that the refusal names.
DAMAGE = {
    "no total": (
        TEXT[: TEXT.index("total im")],
        "cut: no 'total images/sec' behind step 100",
        "100",
    ),
    "cut in the total": (TEXT[: TEXT.index("1000.00") + 5], "cut: no 'total", "100\t"),
    "cut in the warm-up": (TEXT[: TEXT.index("Step\t")], "cut: no line of progress", "number of"),
    "no model": (without("Model:       alexnet\n"), "the header lacks Model", "++ "),
    "no devices": (instead("Devices: ", "Devises: "), "the header lacks Devices", "++ "),
    "no header": (TEXT[TEXT.index(step(1)) :], "lines of progress without the header", "1\t"),
    "a total alone": ("total images/sec: 1234.50\n", "a total without the header", "total"),
    "a step lost": (without(step(40)), "step 40 is missing", "100\t"),
    "the last step lost": (without(step(100)), "of step 90, not 100", "90\t"),
    "the first step lost": (without(step(1)), "is of step 10, not 1", "100\t"),
    "a step damaged": (instead("40\timages/sec: ", "40\timages/sec: x"), "a damaged line", "40\t"),
    "mixed lines": (instead(step(30), step(30) + step(1)), "step 1 comes twice", "1\t"),
    "a hole": (instead("Running warm up\n", "Runn\0\0\0arm up\n"), "a damaged line", "Runn"),
    "two totals": (instead(fake.RULE, "total images/sec: 999.00"), "two totals", NOT_ONE),
    "another total": (instead("1000.00", "100.00"), "does not go with 990", "total"),
    "no rate": (instead("1000.00", "0.00"), "a total of 0", "total"),
    "batches": (instead("128 global", "256 global"), "a global batch of 256 is not 128", "++ "),
    "a batch that is none": (instead("128 global", "x global"), "not a whole number", "++ "),
    "not training": (instead("training", "forward-only"), "forward-only", "++ "),
    "no list of devices": (instead("['/gpu:0']", "[]"), "not a list of devices", "++ "),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_with_file_line_and_reason(read: Read, name: str, tmp_path: Path) -> None:
    damaged, reason, begin = DAMAGE[name]
    runs, (refusal,) = read(damaged, one(2000.0))
    assert [rate(found) for found in runs] == [2000.0]
    assert reason in refusal.reason
    numbers = [n for n, line in enumerate(damaged.split("\n"), 1) if line.startswith(begin)]
    assert refusal.line in numbers
    assert refusal.message.startswith(f"{tmp_path}/log0.txt:{refusal.line}: ")


def test_whole_runs_around_a_damaged_one_are_kept(read: Read) -> None:
    cut = TEXT[: TEXT.index("50\timages")]
    runs, (refusal,) = read(one(1100.0) + cut + one(1200.0) + one(1300.0))
    assert [rate(found) for found in runs] == [1100.0, 1200.0, 1300.0]
    begin = len(LINES) + 1
    assert refusal.line == begin + LINES.index(step(40).rstrip("\n"))
    assert f"alexnet, 1 devices, NCHW, parameter_server (from line {begin})" in refusal.reason


def test_a_command_that_was_lost(read: Read) -> None:
    runs, (refusal,) = read(one(1000.0) + gpus() + run(1170.0, devices=2))
    assert len(runs) == 1
    assert "no command before it" in refusal.reason


def test_a_total_that_stands_there_twice(read: Read) -> None:
    twice = TEXT.replace("total images/sec: 1000.00\n", "total images/sec: 1000.00\n" * 2)
    ((found,), refusals) = read(twice)
    assert refusals == []
    assert (rate(found), found.notes["totals"]) == (1000.0, ["1000.00"] * 2)


TWO, THREE = labelled(2, "[{}]<stdout>:"), labelled(3, "[{}]<stdout>:")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TWO.replace("[1]<stdout>:total images/sec", "[1]<stdout>:x"), "rank 1: cut"),
        (TWO.replace("[1]<stdout>:30\t", "[1]<stdout>:x\t"), "damaged"),
        (THREE.replace("[2]<stdout>:", "[2]<std"), "2 of 3 ranks"),
        (THREE.replace("[2]", "[1]"), "2 of 3 ranks"),
        (labelled(2, "").replace("total images/sec: 200.10\n", ""), "1 totals of 2 ranks"),
        (labelled(2, "").replace("200.10", "300.10"), "not of one job"),
        (TWO.replace("horovod/", "/").replace("horovod", "replicated"), "beside each other"),
    ],
)
def test_horovod_jobs_that_are_not_whole(read: Read, text: str, reason: str) -> None:
    runs, refusals = read(text)
    assert runs == []
    assert any(reason in refusal.reason for refusal in refusals), refusals


def test_garbage(read: Read, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8).tobytes()
    runs, _ = read(noise, one(1000.0), b"\0" * 5000, "")
    assert len(runs) == 1
    runs, refusals = read(noise + TEXT.encode())
    assert len(runs) + len(refusals) >= 1


LONG = (
    one(1000.0) + one(1170.0, "--local_parameter_device cpu", devices=2)
    + one(3000.0, model="resnet20", parameters=[271164.0])
    + command("--model resnet50 --variable_update horovod") + labelled(2, "[{}]<stdout>:")
)  # fmt: skip


def signature(found: ImportedRun) -> Any:
    return sorted(map(str, found.point.items())), rate(found)


@given(st.integers(0, len(LONG)), st.booleans())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_cut_log_never_invents_a_run(read: Read, place: int, at_line: bool) -> None:
    whole, _ = read(LONG)
    cut = LONG[: LONG.rfind("\n", 0, place) + 1] if at_line else LONG[:place]
    try:
        runs, _ = read(cut)
    except UserError:
        return
    assert [signature(found) for found in runs] == [signature(r) for r in whole[: len(runs)]]


@given(st.integers(0, len(LONG)), st.binary(max_size=30), st.integers(0, 60))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises_anything_but_a_word_to_the_user(
    read: Read, place: int, noise: bytes, lost: int
) -> None:
    content = LONG.encode()
    try:
        runs, refusals = read(content[:place] + noise + content[place + lost :])
    except UserError:
        return
    for found in runs:
        assert rate(found) > 0 and np.isfinite(found.samples["images_per_second"]).all()
    assert all(isinstance(refusal.line, int) for refusal in refusals)


@given(st.lists(st.sampled_from(LONG.splitlines(keepends=True)), max_size=40))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_in_any_order(read: Read, lines: list[str]) -> None:
    try:
        read("".join(lines))
    except UserError:
        return


def test_sources(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file or folder"):
        read_source(tmp_path / "no")
    with pytest.raises(UserError, match="holds no log of"):
        read_source(tmp_path)
    (tmp_path / "README").write_text("nothing\n")
    with pytest.raises(UserError, match="holds no log of"):
        read_source(tmp_path / "README")
    for number in (10, 9):
        (tmp_path / f"run{number}.log").write_text(one(1000.0 + number))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "log").write_text(TEXT)
    os.mkfifo(tmp_path / "pipe")
    runs, refusals, others = read_source(tmp_path)
    assert [rate(found) for found in runs] == [1009.0, 1010.0]
    assert [(r.file.name, r.reason) for r in refusals] == [("pipe", "not a regular file")]
    assert [file.name for file in others] == ["README"]
    assert len(read_source(tmp_path / "run9.log")[0]) == 1


def test_repeats_in_order_and_copies(read: Read, tmp_path: Path) -> None:
    runs, _ = read(one(1000.0) + one(1010.0), one(1020.0), one(1010.0))
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert [entry.repeat for entry in written] == [0, 1, 2]
    assert [r.reason for r in refusals] == [
        f"the same run as in {tmp_path}/log0.txt:{len(LINES) + 1}"
    ]
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/record.json")}
    totals = {
        record["repeat"]: record["metrics"]["total_images_per_second"]["value"]
        for record in map(read_record, records)
    }
    assert totals == {0: 1000.0, 1: 1010.0, 2: 1020.0}
    again, _ = import_runs(runs, tmp_path / "runs" / "imported")
    assert len(again) == 3
    assert records == {path: path.stat().st_mtime_ns for path in records}
    runs, _ = read(one(1001.0))
    assert (
        "already holds another result"
        in import_runs(runs, tmp_path / "runs" / "imported")[1][0].reason
    )


def test_unlike_machines_are_no_repeats(read: Read, tmp_path: Path) -> None:
    other = one(2000.0).replace("Tesla M60", "Tesla P100-PCIE-16GB")
    runs, _ = read(one(1000.0), other, one(1100.0, "--xla=True"), one(1001.0).replace("Creat", "x"))
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert [entry.variant for entry in written] == [{"GPU": "Tesla M60"}, {}]
    assert "but GPU Tesla P100-PCIE-16GB instead of GPU Tesla M60; import it" in refusals[0].reason
    assert "--xla True instead of --xla not told" in refusals[1].reason


def test_values_that_no_parameter_takes(read: Read, tmp_path: Path) -> None:
    runs, _ = read(one(1000.0, model="mynet"), one(1000.0).replace("NCHW", "NCWH"))
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert written == []
    assert refusals[0].reason.startswith("model = 'mynet' is not one of trivial, ")
    assert refusals[1].reason == "data_format = 'NCWH' is not one of NHWC, NCHW"


def campaign(read: Read, tmp_path: Path, *texts: str) -> Any:
    runs, _ = read(*texts)
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert refusals == []
    content = campaign_of(written, RULES, "Imported.", "imported", str(tmp_path))
    write_campaign(content, tmp_path / "campaign.yaml", "import_logs")
    return load_campaign(tmp_path / "campaign.yaml")


def test_a_campaign_of_scaling_and_layouts(read: Read, tmp_path: Path) -> None:
    nccl: dict[str, Any] = {"devices": 2, "update": "replicated", "more": "Use NCCL:    True\n"}
    loaded = campaign(
        read, tmp_path,
        one(1000.0) + one(600.0, data_format="NHWC") + one(1100.0, devices=2)
        + one(1170.0, "--local_parameter_device cpu", devices=2) + one(1180.0, **nccl)
        + one(50.0, model="resnet110") + one(1010.0),
    )  # fmt: skip
    found = {experiment.name: experiment for experiment in loaded.experiments}
    assert list(found) == [
        "scaling_parameter_server_gpu",
        "scaling_parameter_server_cpu_over_parameter_server_gpu",
        "scaling_replicated_over_parameter_server_gpu",
        "data_layout",
        "update_methods",
        "other_points",
    ]
    assert {name: len(experiment.points) for name, experiment in found.items()} == {
        "scaling_parameter_server_gpu": 2,
        "scaling_parameter_server_cpu_over_parameter_server_gpu": 2,
        "scaling_replicated_over_parameter_server_gpu": 2,
        "data_layout": 2,
        "update_methods": 3,
        "other_points": 1,
    }
    scaling = found["scaling_parameter_server_gpu"]
    assert (scaling.scaling, scaling.axes[0]) == ("weak", "devices")
    assert len(scaling.runs) == 4
    assert {r.run_id for e in found.values() for r in e.runs if r.repeat == 0} == {
        path.parent.name for path in tmp_path.glob("runs/*/*/record.json")
        if read_record(path)["repeat"] == 0
    }  # fmt: skip


def test_machines_have_experiments_of_their_own(read: Read, tmp_path: Path) -> None:
    def faster(text: str) -> str:
        return text.replace("Tesla M60", "Tesla K80")

    loaded = campaign(
        read, tmp_path, one(1000.0) + one(1900.0, devices=2),
        faster(one(100.0, model="resnet20") + one(190.0, devices=2, model="resnet20")),
    )  # fmt: skip
    assert [experiment.name for experiment in loaded.experiments] == [
        "scaling_parameter_server_tesla_m60", "scaling_parameter_server_tesla_k80",
    ]  # fmt: skip


def test_keras_logs(read: Read, tmp_path: Path) -> None:
    one_gpu, two = fake.keras(), fake.keras([50.0, 52.5, 52.71], 2, "cpu", last=False)
    runs, refusals = read(one_gpu + two)
    assert refusals == []
    assert runs[1].point == {
        "model": "inception3", "devices_per_rank": 2, "parameter_device": "cpu",
        "method": "kuza55", "epochs": 3, "global_batch_size": 32,
    }  # fmt: skip
    assert [r.metrics["median_images_per_second"]["value"] for r in runs] == [31.71, 52.71]
    np.testing.assert_array_equal(runs[1].samples["median_images_per_second"], [50.0, 52.5, 52.71])
    assert runs[0].metrics["model_parameters"]["value"] == 23851784
    assert runs[0].variant == {"GPU": "Tesla M60"}
    loaded = campaign(read, tmp_path, one_gpu + two)
    assert [(e.name, e.scaling) for e in loaded.experiments] == [
        ("keras_scaling_kuza55_cpu_over_kuza55_gpu", "strong")
    ]


def test_keras_logs_that_are_not_whole(read: Read) -> None:
    text = fake.keras()
    for damaged, reason in (
        (text[: text.index("31.71")], "cut: Samples/sec of 2 epochs of 3"),
        (text.replace("batch_size: 32\n", ""), "the header lacks batch_size"),
        ("Samples/sec: 31.54\n", "the header lacks architecture"),
        (text + "Samples/sec: 31.71\n", "Samples/sec 5 times in 3 epochs"),
        (text.replace("Samples/sec: 31.67", "Samples/sec: 31.x7"), "a damaged line"),
        (text.replace("epochs: 3", "epochs: 2"), "3 epochs, the header says 2"),
        (text.replace("31.71", "0.00"), "Samples/sec of 0"),
    ):
        runs, refusals = read(damaged, fake.keras((40.0, 41.0, 42.0)))
        assert len(runs) == 1
        assert reason in refusals[0].reason, (reason, refusals)


def test_metrics_are_those_of_the_benchmarks(read: Read) -> None:
    runs, _ = read(one(1000.0), fake.keras())
    for found in runs:
        extract = load_benchmark(found.benchmark).extract
        assert extract is not None
        told = {metric.metric: metric.meaning for metric in extract.metrics}
        for name, metric in found.metrics.items():
            assert told[name] == {key: metric[key] for key in ("unit", "better", "scope")}
