"""What a rank does: build the network, share the work with others, take steps.

All ranks meet before the first timed step and after the last one.
"""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from harness import ranks, torch_ranks, watch
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work, metric
from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED, ProgramError
from torch_training import dataset, flops, inputs, models, sharing, stamps

# What torch.compile says where it has no compiler for the processor or the GPU.
NO_COMPILER = re.compile(r"InvalidCxxCompiler|TritonMissing|working triton installation")


def make_optimizer(
    params: dict[str, Any], parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """Return the optimiser of all parameters.

    The weight decay of adamw is apart from the gradients, that of the others is added to them.
    """
    rate, decay = params["learning_rate"], params["weight_decay"]
    adaptive = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    if kind := adaptive.get(params["optimizer"]):
        return kind(parameters, rate, weight_decay=decay)
    momentum = 0.9 if params["optimizer"] == "momentum" else 0.0
    return torch.optim.SGD(parameters, rate, momentum=momentum, weight_decay=decay)


def build(
    params: dict[str, Any], device: torch.device
) -> tuple[sharing.Sharing, torch.optim.Optimizer]:
    """Return the network with its first weights, shared among the ranks, and its optimiser."""
    network = models.build(params)
    models.initialise(network, params["seed"])
    network = network.to(memory_format=inputs.layout(params))
    shared = sharing.make(params, network, ranks.rank(), device)
    return shared, make_optimizer(params, shared.module.parameters())


def take(
    shared: sharing.Sharing, optimizer: torch.optim.Optimizer, read: inputs.Read, steps: int
) -> Arrays:
    """Take steps: batch, gradients, update. Return the seconds (`Stamps.arrays`) and the loss of
    each, ``[step]``.

    A step ends when its loss is known to the program, which waits for a GPU, and for the update in
    it, which was enqueued before.
    """
    own, losses = shared.stamps, np.empty(steps)
    for number in range(steps):
        own.begin()
        batch = read()
        own.phase(stamps.REST)
        loss = shared.step(batch)
        own.phase(stamps.OPTIMIZER)
        optimizer.step()
        own.phase(stamps.REST)
        optimizer.zero_grad(set_to_none=True)
        losses[number] = loss.item()
        own.end()
        watch.advance()
    return own.arrays() | {"loss": shared.losses(losses)}


class Program(Benchmark):
    """Steps of training, shared among ranks in one of several ways."""

    framework = "torch"

    def start(self) -> None:
        """Start the ranks, build the network and all that a step needs."""
        params = self.params
        ranks.start(params["ranks"], params["inter_threads"], params["intra_threads"])
        self.device = torch_ranks.device()
        if params["input"] == "staged":
            ranks.raise_together(self.unreadable())
        self.sharing, self.optimizer = build(params, self.device)
        torch_ranks.keep(self.sharing)
        mesh = self.sharing.mesh
        share = mesh.data_rank(ranks.rank()), mesh.data_ranks
        self.read = inputs.make(params, self.run.data, share, self.device)

    def unreadable(self) -> tuple[int, str] | None:
        """Return exit code and message if staged data cannot be read; each rank looks at a share
        of the files."""
        params, stand_in = self.params, dataset.StandIn.from_params(self.params)
        if params["pin_memory"] and self.device.type == "cpu":
            return EXIT_UNSUPPORTED, "pin_memory true: there is no GPU here"
        count = params["data_samples"] // params["samples_per_file"]
        if problem := stand_in.missing(self.run.data, {"train": count}):
            return problem
        own = range(ranks.rank(), count, ranks.size())
        paths = (stand_in.path(self.run.data or "", "train", number) for number in own)
        damaged = next((path for path in paths if not stand_in.is_complete(path)), None)
        advice = "remove it, and the next `snakemake` makes it again"
        return (EXIT_BAD_DATA, f"{damaged} is damaged: {advice}") if damaged else None

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

    def take(self, kind: str, number: int) -> Arrays:
        """Take steps; ProgramError on all ranks when the loss of one is not finite, and where
        there is no compiler."""
        try:
            taken = take(self.sharing, self.optimizer, self.read, number)
        except RuntimeError as error:
            said = next(filter(NO_COMPILER.search, str(error).splitlines()), None)
            if said is None:
                raise
            raise ProgramError(EXIT_UNSUPPORTED, f"compile true: {said}") from None
        problem = None
        if len(wrong := np.flatnonzero(~np.isfinite(taken["loss"]))):
            loss, settings = taken["loss"][wrong[0]], ("learning_rate", "precision")
            said = ", ".join(f"{name} {self.params[name]}" for name in settings)
            step = f"{kind} step {wrong[0] + 1}"
            problem = EXIT_BAD_DATA, f"training diverged: the loss is {loss} in {step} ({said})"
        ranks.raise_together(problem)
        return taken

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times and losses of steps, and the peaks of memory."""
        self.peaks = ranks.gather_json(peaks(self.device))
        return {
            "warmup_step_times": ranks.gather(self.warmup["step_times"]),
            **{name: ranks.gather(each) for name, each in self.timed.items()},
        }

    def convolves(self) -> bool:
        """Return whether the network is made of convolutions."""
        return str(self.params["model"]).startswith("resnet")

    def about_rank(self) -> dict[str, Any]:
        """Return what this rank holds of the network, and what it sends."""
        return self.sharing.about()

    @property
    def samples_per_step(self) -> int:
        """Samples of all ranks in a step."""
        params = self.params
        return int(self.sharing.mesh.data_ranks * params["batch_size"] * params["accumulation"])

    def work(self) -> Work:
        """Return the samples of all timed steps: an epoch here."""
        samples = self.samples_per_step * self.params["batches"]
        work: Work = {"samples_per_epoch": samples, "samples": samples, "phases": ["timed"]}
        if self.params["input"] == "staged":
            work["bytes_per_epoch"] = samples * dataset.StandIn.from_params(self.params).row
        return work

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the speeds, and the sizes of the network and of its step."""
        params, samples = self.params, self.samples_per_step
        times = arrays["step_times"]
        speed = samples * len(times) / self.wall
        with torch.device("meta"):
            network = models.build(params)
        operations = flops.per_sample(network, params)
        measured = {
            "samples_per_second": metric(speed, "samples/s", "higher"),
            "flop_per_second": metric(speed * operations, "FLOP/s", "higher"),
            "step_time_max": metric(times.max(), "s"),
            "final_loss": metric(arrays["loss"][-1].mean(), "1", scope="rank"),
            "model_parameters": metric(models.count(network), "parameters", scope="rank"),
            "flop_per_step": metric(samples * operations, "FLOP"),
        }
        if params["model"] == "transformer":
            tokens = speed * params["sequence"]
            measured["tokens_per_second"] = metric(tokens, "tokens/s", "higher")
        if exchange := self.exchange():
            gradients = sum(exchange["tensor_bytes"])
            measured["gradient_bytes"] = metric(gradients, "bytes", scope="rank")
        for name in self.peaks[0]:  # of the rank that runs out first
            most = max(rank[name] for rank in self.peaks)
            measured[name] = metric(most, "bytes", scope="rank")
        return measured

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return how ranks share, on what, and the sizes of batches."""
        params, shared = self.params, self.sharing
        return {
            "spans": shared.stamps.notes(params["batches"], params["pp"]),
            "batch": {"global": self.samples_per_step, "per_device": params["batch_size"]},
            "exchange": self.exchange(),
            "layout": {
                "mesh": shared.mesh._asdict(),
                **{what: [rank[what] for rank in about_ranks] for what in ("parameters", "bytes")},
            },
            "peaks": {name: [rank[name] for rank in self.peaks] for name in self.peaks[0]},
        }

    def exchange(self) -> dict[str, Any] | None:
        """Return what rank 0 exchanges with other data-parallel ranks; None for nothing."""
        return self.sharing.wrapping.exchange(self.sharing.module)


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
