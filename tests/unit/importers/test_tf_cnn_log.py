"""Logs of tf_cnn_benchmarks and keras-multi-gpu: what they say, in many forms, and damaged."""

import numpy as np
import pytest

from tests.fakes.imported_runs import Read
from tests.fakes.logs import HOROVOD, KERAS, TEXT, labelled, one, run, total_rate

PROGRAM = "benchmarks/tf_cnn_benchmarks.py"
FLAGS = f"python {PROGRAM} --model=alexnet --data_name=cifar10 --num_gpus=1"
KNOWN = {
    "ranks": 1, "devices_per_rank": 1, "model": "alexnet", "data_set": "cifar10",
    "batch_size": 128, "device": "gpu", "data_format": "NCHW", "parameter_device": "gpu",
    "variable_update": "parameter_server", "optimizer": "sgd", "warmup_batches": 10,
    "batches": 100, "display_every": 10,
}  # fmt: skip


def test_a_log_with_commands(read: Read) -> None:
    flags = "--local_parameter_device cpu --data_dir /data/cifar --use_fp16=True --train_dir /tmp/x"
    twice = one(1170.0, flags, devices=2).replace("number", "number of parameters: 1.0\nnumber")
    ((first, second), _) = read(TEXT + twice.replace("1.0\n", "1756620.0\n"))
    assert first.point == KNOWN
    moved = {"devices_per_rank": 2, "parameter_device": "cpu", "data_dir": "/data/cifar"}
    assert second.point == KNOWN | moved
    spread = [first.metrics[f"images_per_second_{it}"]["value"] for it in ("uncertainty", "jitter")]
    assert spread == [10.0, 5.0]  # other numbers: tests/acceptance/imports
    assert total_rate(second) / (2 * total_rate(first)) == pytest.approx(0.585)
    assert first.samples["logged_images_per_second"].shape == (11, 1)
    assert first.variant == {"GPU": "Tesla M60"}
    assert second.variant == {**first.variant, "--use_fp16": "True"}  # no parameter
    assert first.started.isoformat() == "2017-10-02T16:50:17+00:00"
    assert first.command[:3] == (PROGRAM, "--model", "alexnet")


FORMS: dict[str, str] = {
    "plus": f"+ {FLAGS}\n{run()}",
    "prompt": f"(venv) [user@node01 dir]$ srun --ntasks=1 {FLAGS}\n{run()}",
    "pipe": f"$ {FLAGS} 2>&1 | tee log.txt\n{run()}",
    "none, but parameters": run(),
    "logger": TEXT.replace("Model: ", "INFO:tensorflow:Model: ").replace(
        "10\timages", "I1018 14:27:02.072400 139798001403648 cnn_util.py:42] 10\timages", 1
    ),
    "a line of TensorFlow behind a loss": TEXT.replace(
        "\t2.000\n", "\t2.0002017-10-02 16:59:17.1: I tensorflow/pool_allocator.cc:247] x\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_one_run_in_many_forms(read: Read, name: str) -> None:
    ((found,), refusals) = read(FORMS[name])
    assert refusals == [] and found.point == KNOWN and found.variant.keys() <= {"GPU"}
    assert (total_rate(found), found.metrics["final_loss"]["value"]) == (1000.0, 2.0)


def test_jobs_of_horovod(read: Read) -> None:
    """Totals are taken once. (Labels of other launchers: compute/test_log_metrics.)"""
    runs, _ = read(HOROVOD * 2)
    assert [(run.point["ranks"], total_rate(run)) for run in runs] == [(2, 200)] * 2
    logged = runs[0].samples["logged_images_per_second"]
    np.testing.assert_array_equal(logged[-1], [100.0, 101.0])
    first = "".join(line[14:] for line in HOROVOD.splitlines(True) if line.startswith("[1,0]"))
    of_four = first.replace("128 global", "256 global").replace(
        "'horovod/gpu:1'", "'horovod/gpu:1', 'horovod/gpu:2', 'horovod/gpu:3'"
    )
    ((found,), refusals) = read(of_four.replace("200.00", "400.00"))
    assert refusals == [] and (found.point["ranks"], total_rate(found)) == (4, 400.0)
    (_, (refusal,)) = read(labelled(""))
    assert "is printed twice, and no label says by which rank" in refusal.reason


def test_a_worker_of_a_distributed_job(read: Read) -> None:
    devices = "['/job:worker/replica:0/task:{}/gpu:0']"
    chief, other = (run(500.0).replace("['/gpu:0']", devices.format(n)) for n in (0, 3))
    runs, refusals = read(chief.replace("128 global", "512 global"))
    assert refusals == [] and runs[0].point["ranks"] == 4
    for text, told in ((other, "of worker 3"), (chief, "states the number of the job's workers")):
        assert told in read(text)[1][0].reason
    text = one(10.0, "--device=cpu", Data_format="NHWC").replace("/gpu:0']", "/cpu:0']")
    ((found,), _) = read(text)
    assert (found.point["device"], found.point["parameter_device"]) == ("cpu", "cpu")


TWO = labelled("[{}]<stdout>:")
# A damaged log, and what is said of it.
DAMAGE = {
    "no total": (TEXT[: TEXT.index("total im")], "cut: no total images per second behind step 100"),
    "cut in the total": (TEXT[: TEXT.index("1000.00") + 5], "cut: no total"),
    "no header": (TEXT[TEXT.index("1\timages") :], "the header lacks model, mode, device"),
    "a step damaged": (TEXT.replace("40\timages/sec: ", "40\timages/sec: x"), "a damaged line"),
    "another total": (TEXT.replace("1000.00", "100.00"), "over those of a device are 0.101"),
    "a rank without a total": (TWO.replace("[1]<stdout>:total", "[1]<stdout>:x"), "cut: no total"),
    "totals apart": (TWO.replace("200.10", "300.10"), "not of one job"),
    "keras, cut": (KERAS[: KERAS.index("31.71")], "cut: Samples/sec of 2 epochs of 3"),
    "keras, twice": (f"{KERAS}Samples/sec: 31.71\n", "Samples/sec 5 times in 3 epochs"),
    "processes": (TWO.replace("horovod/", "/").replace("horovod", "replicated"), "2 ranks print"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_with_its_reason(read: Read, name: str) -> None:
    damaged, reason = DAMAGE[name]
    runs, refusals = read(damaged, one(2000.0))
    assert [total_rate(found) for found in runs] == [2000.0]
    assert any(reason in refusal.reason and refusal.line for refusal in refusals), refusals


def test_keras_multi_gpu(read: Read) -> None:
    cpu = KERAS.replace("-g 1 -p gpu", "-g 2 -p cpu").replace("GPUs: 1", "GPUs: 2")
    cpu = cpu.replace("server: gpu", "server: cpu").replace("31.71", "52.50")
    ((first, second), _) = read(KERAS + cpu[: cpu.rindex("Samples")])
    assert first.metrics["median_images_per_second"]["value"] == 31.71
    assert second.metrics["median_images_per_second"]["value"] == 52.5
    assert second.point == {**first.point, "devices_per_rank": 2, "parameter_device": "cpu"}
