"""Logs in the format of tf_cnn_benchmarks and of keras-multi-gpu, with made-up numbers."""

from collections.abc import Callable, Sequence
from typing import Any

from scalesweep.importers.imported_run import ImportedRun, Refusal

PROGRAM = "benchmarks/tf_cnn_benchmarks.py"
RULE = "-" * 64


def command(flags: str, prefix: str = "++ ", program: str = f"python {PROGRAM}") -> str:
    """Echo of a command."""
    return f"{prefix}{program} {flags}\n"


def gpus(names: Sequence[str] = ("Tesla M60",), second: int = 17) -> str:
    """What TensorFlow 1.3 writes when it starts."""
    stamp = f"2017-10-02 16:50:{second:02d}.860786"
    where = "tensorflow/core/common_runtime/gpu/gpu_device.cc"
    text = f"{stamp}: W tensorflow/core/platform/cpu_feature_guard.cc:45] could speed up\n"
    for index, name in enumerate(names):
        text += (
            f"{stamp}: I {where}:955] Found device {index} with properties: \nname: {name}\n"
            f"major: 5 minor: 2 memoryClockRate (GHz) 1.{177 + index}5\n"
            f"pciBusID {index}fa3:00:00.0\nTotal memory: 7.93GiB\nFree memory: 7.86GiB\n"
        )
    if len(names) > 1:
        text += (
            f"{stamp}: I {where}:847] Peer access not supported between device ordinals 0 and 1\n"
        )
        text += f"{stamp}: I {where}:986] 0:   Y N \n"
    for index, name in enumerate(names):
        text += (
            f"{stamp}: I {where}:1045] Creating TensorFlow device (/gpu:{index}) -> "
            f"(device: {index}, name: {name}, pci bus id: {index}fa3:00:00.0)\n"
        )
    return text


def header(
    model: str = "alexnet",
    devices: int = 1,
    batch: int = 128,
    data_format: str = "NCHW",
    update: str = "parameter_server",
    more: str = "",
) -> str:
    """The header of TensorFlow 1.3's time; ``more`` are lines behind it."""
    names = [f"/gpu:{index}" for index in range(devices)]
    return (
        f"TensorFlow:  1.3\nModel:       {model}\nMode:        training\n"
        f"Batch size:  {batch * devices} global\n             {batch} per device\n"
        f"Devices:     {names}\nData format: {data_format}\nOptimizer:   sgd\n"
        f"Variables:   {update}\n{more}==========\nGenerating model\n"
    )


def new_header(ranks: int = 1, update: str = "horovod", more: str = "") -> str:
    """The header of later versions, of a job with ``ranks`` processes under Horovod."""
    names = [f"horovod/gpu:{index}" for index in range(ranks)]
    names = names if update == "horovod" else [f"/gpu:{index}" for index in range(ranks)]
    return (
        "TensorFlow:  1.14\nModel:       resnet50\nDataset:     imagenet (synthetic)\n"
        "Mode:        BenchmarkMode.TRAIN\nSingleSess:  False\n"
        f"Batch size:  {64 * ranks} global\n             64 per device\n"
        f"Num batches: 30\nNum epochs:  0.01\nDevices:     {names}\nNUMA bind:   False\n"
        f"Data format: NCHW\nOptimizer:   momentum\nVariables:   {update}\n{more}==========\n"
        "Generating training model\nInitializing graph\n"
    )


def steps(mean: float, count: int = 100, every: int = 10, loss: float = 2.0) -> list[str]:
    """Lines of progress; ``mean`` is the last one's rate."""
    wanted = sorted({1, *range(every, count + 1, every)})
    return [
        f"{step}\timages/sec: {mean - (count - step) * 0.1:.1f} +/- {step / 10:.1f} "
        f"(jitter = {step / 20:.1f})\t{loss + (count - step) * 0.001:.3f}\n"
        for step in wanted
    ]


def total(rate: float) -> str:
    """The last line and its rules."""
    return f"{RULE}\ntotal images/sec: {rate:.2f}\n{RULE}\n"


def run(rate: float = 1000.0, parameters: Sequence[float] = (1756620.0,), **names: Any) -> str:
    """All that one process prints."""
    printed = "".join(f"number of parameters: {number}\n" for number in parameters)
    return (
        f"{header(**names)}{printed}Running warm up\nDone warm up\nStep\tImg/sec\tloss\n"
        f"{''.join(steps(rate * 0.99))}{total(rate)}"
    )


def one(rate: float = 1000.0, flags: str = "", second: int = 17, **names: Any) -> str:
    """A run with its command and what TensorFlow says."""
    devices = names.get("devices", 1)
    told = f"--model {names.get('model', 'alexnet')} --data_name cifar10 --num_gpus {devices}"
    return (
        command(f"{told} {flags}".strip())
        + gpus(["Tesla M60"] * devices, second)
        + run(rate, **names)
    )


def new_run(mean: float, rate: float, ranks: int = 1, **names: Any) -> list[str]:
    """Lines of one process of a later version."""
    text = (
        f"{new_header(ranks, **names)}Running warm up\nDone warm up\nStep\tImg/sec\ttotal_loss\n"
        f"{''.join(steps(mean, 30))}{total(rate)}"
    )
    return text.splitlines(keepends=True)


def keras(
    rates: Sequence[float] = (31.54, 31.67, 31.71),
    gpu_count: int = 1,
    device: str = "gpu",
    method: str = "kuza55",
    last: bool = True,
) -> str:
    """A run of keras-multi-gpu; its progress bars overwrite themselves."""
    epochs = len(rates)
    text = (
        "++ python ../examples/benchmark_inception3_resnet50.py -a inception3 "
        f"-m {method} -g {gpu_count} -p {device} -e {epochs}\nUsing TensorFlow backend.\n"
        f"{gpus(['Tesla M60'] * gpu_count)}architecture: inception3\n"
        f"number of GPUs: {gpu_count}\nparameter server: {device}\n"
        f"parallelization method: {method}\nepochs: {epochs}\nbatch_size: 32\n"
        "Number of parameters: 23851784\n"
    )
    for epoch, rate in enumerate(rates, start=1):
        bars = "".join(
            "\b" * 80 + f"\r {seen}/1024 [>....] - ETA: 3s - loss: 7.0037" for seen in (32, 992)
        )
        text += f"Epoch {epoch}/{epochs}\n{bars}Samples/sec: {rate:.2f}\n"
        text += "\b" * 80 + "\r1024/1024 [=====] - 33s - loss: 6.6461 - acc: 0.0107    \n"
    return text + (f"Samples/sec: {rates[-1]:.2f}\n" if last else "")


POINT = {
    "ranks": 1, "devices_per_rank": 1, "model": "alexnet", "data_set": "cifar10", "data_dir": None,
    "batch_size": 128, "device": "gpu", "data_format": "NCHW", "parameter_device": "gpu",
    "variable_update": "parameter_server", "optimizer": "sgd", "warmup_batches": 10,
    "batches": 100, "display_every": 10,
}  # fmt: skip
Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]


def rate(run: ImportedRun) -> float:
    return float(run.metrics["total_images_per_second"]["value"])


def labelled(ranks: int, label: str) -> str:
    """A Horovod job whose ranks' lines are mixed, each behind its label."""
    logs = [new_run(100.0 + rank, 200.0 + rank / 10, ranks) for rank in range(ranks)]
    lines = []
    for together in zip(*logs, strict=True):
        lines += [label.format(rank) + line for rank, line in enumerate(together)]
    return "".join(lines)


TEXT = one(1000.0)
LINES = TEXT.splitlines()
