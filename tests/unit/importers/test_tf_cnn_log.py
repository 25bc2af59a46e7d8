"""Importing logs: which formats are read, and what becomes of what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import logs as fake
from tests.fakes.imported_runs import import_runs
from tests.fakes.logs import POINT, Read, command, labelled, one, rate, run


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


@pytest.mark.parametrize(
    ("printed", "flag", "model"),
    [
        ("lenet5", "lenet", "lenet"), ("lenet5", None, "lenet"), ("nasnet", "nasnetlarge",
         "nasnetlarge"), ("nasnet", "nasnet", "nasnet"), ("nasnet", None, "nasnet"),
    ],
)  # fmt: skip
def test_models_that_print_another_name_than_their_flag(
    read: Read, printed: str, flag: str | None, model: str
) -> None:
    text = run(1000.0, model=printed)
    ((found,), refusals) = read(command(f"--model {flag}") + text if flag else text)
    assert (found.point["model"], refusals) == (model, [])
    ((written,), refused) = import_runs([found], Path(found.file).parent / "runs" / "imported")
    assert (written.point["model"], refused) == (model, [])


@pytest.mark.parametrize(("batches", "last"), [(110, 100), (100, 110), (95, 100)])
def test_the_last_line_of_progress_may_be_of_another_step(
    read: Read, batches: int, last: int
) -> None:
    lines = "".join(fake.steps(3610.0, last))
    text = command(f"--model alexnet --num_batches {batches}") + run(3618.85)
    text = text.replace("".join(fake.steps(3618.85 * 0.99)), lines)
    ((found,), refusals) = read(text)
    assert refusals == [] and rate(found) == 3618.85
    assert found.point["batches"] == batches
    assert f"is of step {last}, not" in found.notes["command_differs"]["batches"]


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
    for text, told in ((other, "of worker 3"), (chief, "states the number of the job's workers")):
        assert told in read(text)[1][0].reason


def test_processors(read: Read) -> None:
    text = one(10.0, "--device=cpu", data_format="NHWC").replace("/gpu:0']", "/cpu:0']")
    ((found,), _) = read(text)
    assert (found.point["device"], found.point["parameter_device"]) == ("cpu", "cpu")


def test_a_loss_that_is_no_number(read: Read) -> None:
    ((found,), _) = read(one(1000.0).replace("\t2.000\n", "\tnan\n"))
    assert "final_loss" not in found.metrics
    assert found.notes["final_loss"] == "not a finite number"
