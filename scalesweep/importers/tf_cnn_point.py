"""The point of a tf_cnn_benchmarks run: what its header says, and its flags where that is silent.

Names and defaults of flags: tensorflow/benchmarks, scripts/tf_cnn_benchmarks/benchmark_cnn.py.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.importers.command_echo import Echo
from scalesweep.importers.tf_cnn_log import PER_DEVICE

REQUIRED = ("Model", "Mode", "Devices", "Data format", "Optimizer", "Variables")
TRAINING = ("training", "BenchmarkMode.TRAIN")

# Flag -> parameter; flags of the same name as a parameter need no entry.
_FLAGS = {
    "num_gpus": "devices_per_rank",
    "num_batches": "batches",
    "num_warmup_batches": "warmup_batches",
    "num_inter_threads": "inter_threads",
    "num_intra_threads": "intra_threads",
    "local_parameter_device": "parameter_device",
    "data_name": "data_set",
}
_SAME = (
    "model", "batch_size", "device", "data_format", "variable_update", "all_reduce_spec",
    "optimizer", "display_every", "data_dir",
)  # fmt: skip
_NUMBERS = (
    "devices_per_rank", "batches", "warmup_batches", "inter_threads", "intra_threads",
    "batch_size", "display_every",
)  # fmt: skip
# What the program does where neither header nor flags tell.
_BATCHES, _DISPLAY_EVERY, _WARMUP_BATCHES = 100, 10, 10
# Flags that say where things are, or what is learned, not what is done in a step.
_NO_MATTER = re.compile(
    r"(train|eval|benchmark_log|partitioned_graph)_?\w*(dir|prefix)|result_storage|summary_verbosity"
    r"|save_\w+|trace_file|tfprof_file|graph_file|job_name|task_index|\w+_hosts?|server_protocol"
    r"|print_training_accuracy|\w*learning_rate\w*|num_epochs_per_decay|\w*weight_decay\w*"
    r"|momentum|rmsprop_\w+|adam_\w+|tf_random_seed|flush_stdout|num_epochs|use_nccl"
    r"|horovod_device|cross_replica_sync|staged_vars|use_numa_affinity|enable_layout_optimizer"
)
# Header lines with a meaning that no parameter has, and the values that go without saying.
_OTHER_HEADERS = {
    "NUMA bind": ("False", "None"),
    "Layout optimizer": ("False", "None"),
    "RewriterConfig": (),
    "Sync": ("True",),
    "Staged vars": ("False", "None"),
    "Horovod on": (),
}
_DEVICE = re.compile(r"'([^']{1,200})'")
_DEVICE_NAME = re.compile(r"(?:.*/)?(cpu|gpu):(\d{1,5})", re.IGNORECASE | re.ASCII)
_TASK = re.compile(r"job:worker\b.*?/task:?(\d{1,6})", re.ASCII)
_CIFAR10_ONLY = re.compile(r"resnet(20|32|44|56|110)(_v2)?|densenet\d+_k\d+")
# AlexNet has 1.76 million parameters on CIFAR-10 and over 60 million on ImageNet.
_SMALL_ALEXNET = 10_000_000
# --model -> what the header calls it, where that is another name (models/lenet_model.py,
# models/tf1_only/nasnet_model.py). The second is also what nasnet is called.
_ALWAYS_PRINTED = {"lenet": "lenet5"}
_PRINTED = {**_ALWAYS_PRINTED, "nasnetlarge": "nasnet"}


@dataclass
class TfCnnPoint:
    """Parameters of the benchmark tf_cnn_benchmarks, and how they were found."""

    values: dict[str, Any] = field(default_factory=dict)
    # Parameter -> what the command says instead of the header.
    differences: dict[str, str] = field(default_factory=dict)
    # Parameter -> why it has its value, where neither header nor command says it.
    assumed: dict[str, str] = field(default_factory=dict)
    variant: dict[str, str] = field(default_factory=dict)

    def assume(self, name: str, value: Any, reason: str) -> None:
        """Set what is still open."""
        if name not in self.values:
            self.values[name] = value
            self.assumed[name] = reason


def read_point(
    header: Mapping[str, str], echo: Echo | None, parameters: int | None, labels: int
) -> TfCnnPoint:
    """The point that a header and a command tell.

    ``parameters`` is the number of parameters of the model if it was printed, ``labels`` the
    number of ranks that labels tell. Raises UserError with what is missing or does not fit.
    """
    missing = [key for key in REQUIRED if key not in header]
    if not {"Batch size", PER_DEVICE} & header.keys():
        missing.append("Batch size")
    if missing:
        raise UserError(f"the header lacks {', '.join(missing)}")
    if header["Mode"] not in TRAINING:
        raise UserError(f"mode is {header['Mode']}, the benchmark measures training")
    point = TfCnnPoint()
    point.values |= {
        "model": _model(header["Model"], echo),
        "data_format": header["Data format"],
        "optimizer": header["Optimizer"],
        "variable_update": header["Variables"],
    }
    _devices(point, header, echo, labels)
    _optional(point, header)
    _flags(point, header, echo.flags if echo else {})
    _data_set(point, parameters)
    point.assume(
        "parameter_device", point.values["device"], "the program's default: the device that trains"
    )
    if echo and (per_node := echo.ranks_per_node):
        point.values["ranks_per_node"] = min(per_node, point.values["ranks"])
    for name, values in _OTHER_HEADERS.items():
        if name in header and header[name] not in values:
            point.variant[name] = header[name]
    return point


def _model(printed: str, echo: Echo | None) -> str:
    """The model as --model names it: of those with the printed name the one of the command."""
    flag = (echo.flags.get("model") if echo else None) or ""
    if _PRINTED.get(flag, flag) == printed:
        return flag
    return next((name for name, said in _ALWAYS_PRINTED.items() if said == printed), printed)


def _number(text: str, what: str) -> int:
    if not re.fullmatch(r"\d{1,9}(\.0)?", text, re.ASCII):
        raise UserError(f"{what} is {text[:40]!a}, not a whole number")
    return int(float(text))


def _devices(point: TfCnnPoint, header: Mapping[str, str], echo: Echo | None, labels: int) -> None:
    """Ranks, devices and the batch of each, which the header states together."""
    entries = _DEVICE.findall(header["Devices"])
    names = [_DEVICE_NAME.fullmatch(entry) for entry in entries]
    kinds = {name[1].lower() for name in names if name}
    if not entries or not all(names) or len(kinds) != 1:
        raise UserError(f"Devices are {header['Devices'][:60]!a}, not a list of devices")
    point.values["device"] = kinds.pop()
    tasks = [_TASK.search(entry) for entry in entries]
    batch = _number(header[PER_DEVICE], "the batch per device") if PER_DEVICE in header else None
    total = None
    if "Batch size" in header:
        total = _number(header["Batch size"].removesuffix(" global"), "the global batch")
    if entries[0].startswith("horovod/"):
        ranks, each = len(entries), 1
    elif header["Variables"] == "horovod":
        # Versions before the list of all ranks' devices count the batch of one rank, too.
        ranks, each = (echo.ranks if echo else None) or (labels if labels > 1 else 0), len(entries)
        if not ranks:
            raise UserError("neither header nor command states the number of Horovod's ranks")
        total = None if total is None or batch is None else batch * each * ranks
    elif all(tasks):
        ranks, each = _workers([task[1] for task in tasks if task], total, batch, header, echo)
    else:
        ranks, each = 1, len(entries)
    if batch is None:
        batch = (total or 0) // (ranks * each)
    if total is not None and total != batch * ranks * each:
        raise UserError(
            f"a global batch of {total} is not {batch} on each of {ranks * each} devices"
        )
    point.values |= {"ranks": ranks, "devices_per_rank": each, "batch_size": batch}


def _workers(
    tasks: list[str],
    total: int | None,
    batch: int | None,
    header: Mapping[str, str],
    echo: Echo | None,
) -> tuple[int, int]:
    """Ranks and devices of each, of TensorFlow's own distributed modes."""
    if len(set(tasks)) > 1:
        return len(set(tasks)), len(tasks) // len(set(tasks))
    if int(tasks[0]):
        raise UserError(f"of worker {tasks[0]}: worker 0's log has the job's total too")
    hosts = (echo.flags.get("worker_hosts") if echo else None) or ""
    listed = len(hosts.split(",")) if hosts else 0
    counted = (total or 0) // (len(tasks) * batch) if batch else 0
    if max(listed, counted) < 2 and not listed:
        raise UserError("neither header nor command states the number of the job's workers")
    return max(listed, counted), len(tasks)


def _optional(point: TfCnnPoint, header: Mapping[str, str]) -> None:
    """Header lines that not every version prints."""
    if "Num batches" in header:
        point.values["batches"] = _number(header["Num batches"], "Num batches")
    for key in ("AllReduce", "Use NCCL"):
        if key in header:
            if not re.fullmatch(r"[\w:#,.-]+", header[key], re.ASCII):
                raise UserError(f"{key} is {header[key][:40]!a}")
            spec = {"None": None, "False": None, "True": "nccl"}.get(header[key], header[key])
            if key == "Use NCCL" and spec not in (None, "nccl"):
                raise UserError(f"{key} is {header[key][:40]!a}, not True or False")
            point.values["all_reduce_spec"] = spec
    if "Dataset" in header:
        name = header["Dataset"].removesuffix(" (synthetic)")
        if name != "synthetic":
            point.values["data_set"] = name
        if "synthetic" in header["Dataset"]:
            point.values["data_dir"] = None


def _flags(point: TfCnnPoint, header: Mapping[str, str], flags: Mapping[str, str | None]) -> None:
    """What the command says: it fills in, but where the header speaks that counts."""
    for flag, text in flags.items():
        name = _FLAGS.get(flag) or (flag if flag in _SAME else None)
        if name is None:
            if not _NO_MATTER.fullmatch(flag):
                point.variant[f"--{flag}"] = "" if text is None else text
            continue
        if text is None or (name == "batch_size" and text == "0"):
            continue
        value: Any = _number(text, f"--{flag}") if name in _NUMBERS else text
        if name in ("device", "parameter_device"):
            value = text.lower()
        if name == "all_reduce_spec" and text in ("", "None"):
            value = None
        if point.values.setdefault(name, value) != value:
            point.differences[name] = f"--{flag} {text}, the header says {point.values[name]}"
    if "Dataset" in header:
        # The header says that real images were read, but not where they were.
        point.assume("data_dir", "unnamed", "the header tells of real images without their place")


def _data_set(point: TfCnnPoint, parameters: int | None) -> None:
    model = str(point.values["model"])
    if _CIFAR10_ONLY.fullmatch(model):
        point.assume("data_set", "cifar10", "the model is for CIFAR-10 alone")
    elif model == "alexnet" and parameters is not None and parameters < _SMALL_ALEXNET:
        point.assume("data_set", "cifar10", "so few parameters AlexNet has on CIFAR-10 alone")
    else:
        point.assume("data_set", "imagenet", "the program's default")


def complete(point: TfCnnPoint, steps: list[int], command_known: bool) -> None:
    """Settle what the lines of progress tell, ``steps`` being their steps.

    ``command_known``: what it leaves out is then the program's default. Raises
    UserError if a line is missing among them. What comes behind the last one is in the total, so
    that a run whose last line is of another step than expected is whole.
    """
    interval = _interval(steps)
    values = point.values
    if interval is not None and values.get("display_every") not in (None, interval):
        raise UserError(
            f"lines come every {interval} steps instead of every {values['display_every']}"
        )
    if interval is not None and interval != _DISPLAY_EVERY:
        point.assume("display_every", interval, "the lines of progress")
    point.assume("display_every", _DISPLAY_EVERY, "the program's default")
    every = values["display_every"]
    if not command_known and _last(_BATCHES, every) != steps[-1]:
        point.assume("batches", steps[-1], "the last line of progress")
    point.assume("batches", _BATCHES, "the program's default")
    point.assume("warmup_batches", _WARMUP_BATCHES, "the program's default")
    point.assume("data_dir", None, "the program's default: synthetic images")
    last = _last(values["batches"], every)
    # Workers that do not wait for each other share the steps among them.
    if steps[-1] != last and point.variant.get("Sync") != "False":
        point.differences["batches"] = (
            f"{values['batches']}, the last line of progress is of step {steps[-1]}, not {last}"
        )


def _last(batches: int, every: int) -> int:
    """The last step that is printed."""
    return batches // every * every or 1


def _interval(steps: list[int]) -> int | None:
    """Steps from line to line; None if there is too little to tell."""
    if steps[0] != 1:
        raise UserError(f"the first line of progress is of step {steps[0]}, not 1")
    if len(steps) == 1:
        return None
    # Step 1 is printed whatever the interval.
    every = math.gcd(*steps[1:])
    expected = sorted({1, *range(every, steps[-1] + 1, every)})
    if lost := next((step for step in expected if step not in set(steps)), None):
        raise UserError(f"step {lost} is missing between lines that come every {every} steps")
    return every
