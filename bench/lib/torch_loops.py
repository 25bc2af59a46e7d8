"""Loops of training steps in PyTorch, for bench/torch_loop.py and bench/torch_stamps.py; run by the
Python that has PyTorch.

A line ``LOOP STEPS`` on standard input has that loop take so many steps; the answer is an empty
line when they are done. ``own``: the benchmark's; ``bare``: that, without stamps; ``plain``:
written straight from PyTorch's tutorial (Optimizing model parameters), with the same network and
optimiser; ``padded``: that with resnet20 as PyTorch's users write it, padded on all sides.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow" / "benchmarks"))

import torch
from torch import distributed, nn

from harness import ranks
from torch_training import benchmark, inputs, models


class Block(nn.Module):
    """A residual block of CIFAR-10's networks, shortcuts without weights."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Halve the image where the channels grow."""
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.edge = (outputs - inputs) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Append the block."""
        past = x
        if self.edge:
            past = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.edge, self.edge))
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(past + self.bn2(self.conv2(x)))


def resnet20() -> nn.Module:
    """CIFAR-10's residual network of 20 layers."""
    blocks, channels = [], 16
    for outputs in (16, 32, 64):
        for _ in range(3):
            blocks.append(Block(channels, outputs))
            channels = outputs
    stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*stem, *blocks, *head)


def plain_loop(params: dict[str, Any], network: nn.Module) -> Callable[[int], None]:
    """The tutorial's loop on one batch."""
    loss_fn = nn.CrossEntropyLoss()
    decay = params["weight_decay"]
    optimizer = torch.optim.SGD(network.parameters(), params["learning_rate"], weight_decay=decay)
    x, y = inputs.synthetic(params, 0, params["batch_size"])
    x = x.contiguous()

    def loop(count: int) -> None:
        network.train()
        for _ in range(count):
            pred = network(x)
            loss = loss_fn(pred.flatten(0, -2), y.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return loop


def own_loops(params: dict[str, Any]) -> dict[str, Callable[[int], Any]]:
    """The benchmark's loop, with its stamps; and on the same network a loop that takes none."""
    device = torch.device("cpu")
    shared, optimizer = benchmark.build(params, device)
    read = inputs.make(params, None, (0, 1), device)
    without = benchmark.make_optimizer(params, shared.module.parameters())  # no hooks

    def bare(count: int) -> None:
        for _ in range(count):
            loss = shared.step(read())
            without.step()
            without.zero_grad(set_to_none=True)
            loss.item()

    return {"own": lambda count: benchmark.take(shared, optimizer, read, count), "bare": bare}


def main() -> None:
    """Answer lines until standard input ends."""
    params = json.loads(sys.argv[1])
    # As the launcher of a single rank does it; the host's own name need not have an address.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    ranks.use("torch")
    networks = {"plain": models.build(params)}
    if params["model"] == "resnet20":
        networks["padded"] = resnet20()
    loops = own_loops(params)
    for name, network in networks.items():
        # The first weights of the benchmark: work may depend on values.
        models.initialise(network, params["seed"])
        loops[name] = plain_loop(params, network)
    print(flush=True)
    for line in sys.stdin:
        name, count = line.split()
        loops[name](int(count))
        print(flush=True)


if __name__ == "__main__":
    main()
