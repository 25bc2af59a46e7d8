"""What a rank does: build the network, share the work with others, take steps.

All ranks meet before the first timed step and after the last one.
"""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from harness import ranks, torch_ranks
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work, metric
from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED, ProgramError
from torch_training import (
    dataset,
    flops,
    inputs,
    mesh,
    models,
    sharing,
    steps,
)

Problem = tuple[int, str]
# What torch.compile says where it has no compiler for the processor or the GPU.
NO_COMPILER = re.compile(r"InvalidCxxCompiler|TritonMissing|working triton installation")


def make_optimizer(
    params: dict[str, Any], parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """Return the optimiser of all parameters.

    The weight decay of adamw is apart from the gradients, that of the others is added to them.
    """
    rate, decay = params["learning_rate"], params["weight_decay"]
    match params["optimizer"]:
        case "sgd":
            return torch.optim.SGD(parameters, rate, weight_decay=decay)
        case "momentum":
            return torch.optim.SGD(parameters, rate, momentum=0.9, weight_decay=decay)
        case "adam":
            return torch.optim.Adam(parameters, rate, weight_decay=decay)
        case _:
            return torch.optim.AdamW(parameters, rate, weight_decay=decay)


def build(
    params: dict[str, Any], device: torch.device
) -> tuple[sharing.Sharing, torch.optim.Optimizer]:
    """Return the network with its first weights, shared among the ranks, and its optimiser."""
    network = models.build(params)
    models.initialise(network, params["seed"])
    if params["data_format"] == "NHWC":
        network = network.to(memory_format=torch.channels_last)
    shared = sharing.make(params, network, ranks.rank(), device)
    optimizer = make_optimizer(params, shared.parameters())
    shared.stamps.attach(optimizer)
    return shared, optimizer


def convolves(model: str) -> bool:
    """Return whether nearly all operations of a network are those of convolutions."""
    return model.startswith("resnet")


@contextmanager
def told_without_compiler() -> Iterator[None]:
    """Raise ProgramError (code 69) where torch.compile finds no compiler."""
    try:
        yield
    except RuntimeError as error:
        said = next(filter(NO_COMPILER.search, str(error).splitlines()), None)
        if said is None:
            raise
        raise ProgramError(EXIT_UNSUPPORTED, f"compile true: {said}") from None


class Program(Benchmark):
    """Steps of training, shared among ranks in one of several ways."""

    framework = "torch"

    def start(self) -> None:
        """Start the ranks, build the network and all that a step needs."""
        params = self.params
        ranks.start(params["ranks"], params["inter_threads"], params["intra_threads"])
        self.device = torch_ranks.device()
        shape = mesh.shape_of(params)
        place = inputs.Place(mesh.position_of(shape, ranks.rank()).data, shape.data_ranks)
        ranks.raise_together(inputs.check(params, self.run.data, place, self.device))
        self.sharing, self.optimizer = build(params, self.device)
        torch_ranks.keep(self.sharing)
        self.read = inputs.make(params, self.run.data, place, self.device)

    def warm_up(self) -> None:
        """Take the first steps, in which PyTorch compiles and allocates."""
        with self.phases("warmup"):
            self.warmup = self.take("warm-up", self.params["warmup_batches"])

    def measure(self) -> None:
        """Take the timed steps."""
        with self.phases("timed"):
            ranks.barrier()
            began = time.perf_counter()
            self.timed = self.take("timed", self.params["batches"])
            self.wall = time.perf_counter() - began

    def take(self, kind: str, number: int) -> steps.Taken:
        """Take steps; ProgramError on all ranks when the loss of one is not finite."""
        with told_without_compiler():
            taken = steps.take(self.sharing, self.optimizer, self.read, number)
        taken = taken._replace(losses=self.sharing.losses(taken.losses))
        ranks.raise_together(self.divergence(kind, taken.losses))
        return taken

    def divergence(self, kind: str, losses: np.ndarray) -> Problem | None:
        """Return exit code and message if a loss is not finite."""
        wrong = np.flatnonzero(~np.isfinite(losses))
        if not len(wrong):
            return None
        rate, precision = self.params["learning_rate"], self.params["precision"]
        return EXIT_BAD_DATA, (
            f"training diverged: the loss is {losses[wrong[0]]} in {kind} step {wrong[0] + 1}"
            f" (learning_rate {rate}, precision {precision})"
        )

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times and losses of steps; ProgramError on all ranks for bad weights."""
        finite = all(bool(torch.isfinite(p).all()) for p in self.sharing.local_parameters())
        message = "training diverged: not all weights are finite"
        ranks.raise_together(None if finite else (EXIT_BAD_DATA, message))
        self.peaks = ranks.gather_json(peaks(self.device))
        return {
            "warmup_step_times": ranks.gather(self.warmup.seconds["step_times"]),
            "loss": ranks.gather(self.timed.losses),
            **{name: ranks.gather(each) for name, each in self.timed.seconds.items()},
        }

    def convolves(self) -> bool:
        """Return whether the network is made of convolutions."""
        return convolves(self.params["model"])

    def about_rank(self) -> dict[str, Any]:
        """Return the device of this rank and its threads."""
        return {
            "device": torch_ranks.device_name(),
            "threads": [torch.get_num_interop_threads(), torch.get_num_threads()],
            "share": self.sharing.about(),
        }

    @property
    def samples_per_step(self) -> int:
        """Samples of all ranks in a step."""
        params, shape = self.params, self.sharing.shape
        return shape.data_ranks * params["batch_size"] * params["accumulation"]

    def work(self) -> Work:
        """Return the samples of all timed steps: an epoch here."""
        samples = self.samples_per_step * self.params["batches"]
        work: Work = {"samples_per_epoch": samples, "samples": samples, "phases": ["timed"]}
        if self.params["input"] == "staged":
            stand_in = dataset.StandIn.from_params(self.params)
            work["bytes_per_epoch"] = samples * stand_in.row * stand_in.dtype.itemsize
        return work

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the speeds, and the sizes of the network and of its step."""
        params, samples = self.params, self.samples_per_step
        times = arrays["step_times"]
        speed = samples * len(times) / self.wall
        operations = flops.per_sample(params)
        measured = {
            "samples_per_second": metric(speed, "samples/s", "higher"),
            "flop_per_second": metric(speed * operations, "FLOP/s", "higher"),
            "step_time_max": metric(times.max(), "s"),
            "final_loss": metric(arrays["loss"][-1].mean(), "1", scope="rank"),
            "model_parameters": metric(self.sharing.values, "parameters", scope="rank"),
            "flop_per_step": metric(samples * operations, "FLOP"),
        }
        if params["model"] == "transformer":
            tokens = speed * params["sequence"]
            measured["tokens_per_second"] = metric(tokens, "tokens/s", "higher")
        exchange = self.sharing.exchange()
        if exchange and exchange["by"] == self.sharing.wrapping.by:
            gradients = sum(exchange["tensor_bytes"])
            measured["gradient_bytes"] = metric(gradients, "bytes", scope="rank")
        return measured | peak_metrics(self.peaks)

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return how ranks share, on what, and the sizes of batches."""
        params, shape = self.params, self.sharing.shape
        own = params["batch_size"] * params["accumulation"]
        operations = {
            "flop": flops.of_ranks(params, shape),
            "recomputed_flop": flops.recomputed(params, shape),
        }
        return {
            "mode": {"strategy": self.sharing.by, "step_times": "of each rank"},
            "devices": [about["device"] for about in about_ranks],
            "threads": [about["threads"] for about in about_ranks],
            "spans": self.sharing.stamps.notes(params["batches"], params["pp"]),
            "batch": {"global": self.samples_per_step, "per_device": params["batch_size"]},
            "exchange": self.sharing.exchange(),
            "layout": self.sharing.layout([about["share"] for about in about_ranks])
            | {name: [each * own for each in of_ranks] for name, of_ranks in operations.items()},
            "peaks": {name: [rank.get(name) for rank in self.peaks] for name in self.peaks[0]},
        }


def peaks(device: torch.device) -> dict[str, int]:
    """Return this rank's peaks by the names of the metrics; what is not known is left out.

    `peak_rss`: resident on the host since the process started, PyTorch's code with it. On a GPU
    `peak_memory_allocated` by tensors, and `peak_memory_reserved` by PyTorch's allocator for them.
    """
    most = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    held = {"peak_rss": int(most[1]) << 10} if most else {}
    if device.type == "cuda":
        held["peak_memory_allocated"] = torch.cuda.max_memory_allocated(device)
        held["peak_memory_reserved"] = torch.cuda.max_memory_reserved(device)
    return held


def peak_metrics(ranks: list[dict[str, int]]) -> dict[str, Metric]:
    """Return the peaks of the rank that held the most, which is the one that runs out first."""
    return {
        name: metric(max(rank[name] for rank in ranks), "bytes", scope="rank")
        for name in ranks[0]
        if all(name in rank for rank in ranks)
    }
