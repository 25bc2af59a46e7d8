"""What a rank does: the same matrix product again and again, on its GPU where it has one."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from harness import torch_ranks
from harness.probe import Case, Chain
from harness.torch_probe import Probe, wait

CHAINED = 4  # products that the device is given in a row, each of what the one before gave


class Program(Probe):
    """Floating-point operations per second by size."""

    framework, by = "torch", "matrix size"
    rate_name, rate_unit, amount_unit = "flops", "FLOP/s", "FLOP"

    def cases(self) -> Iterator[Case]:
        """Return a case for each size."""
        ranks, dtype = self.params["ranks"], self.params["dtype"]
        return (
            # A multiply-add counts as 2.
            Case(size, ranks * 2 * size**3, partial(make_call, size, dtype, torch_ranks.device()))
            for size in sorted(set(self.params["sizes"]))
        )

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the least bytes that each size moves, and the device of each rank too."""
        value = self.params["ranks"] * 3 * getattr(torch, self.params["dtype"]).itemsize
        moved = [value * int(size) ** 2 for size in self.sweep.values]
        return {"sweep": self.sweep.note() | {"moved": moved}, "devices": about_ranks}

    def about_rank(self) -> str:
        """Return the name of this rank's device."""
        return torch_ranks.device_name()

    def asked(self) -> str:
        """Return what a machine may lack."""
        return f"matrix products in dtype {self.params['dtype']}"


def make_call(size: int, dtype: str, device: torch.device) -> Callable[[], Any]:
    """Return a function that multiplies several times and waits for the last product.

    Operands are random, of magnitude 1 and not 0, which some hardware multiplies with less power
    and faster; what they are multiplied with keeps that. Nothing is allocated in a call.
    """
    generator = torch.Generator(device).manual_seed(size)
    kind = getattr(torch, dtype)

    def random() -> torch.Tensor:
        return torch.randn(size, size, generator=generator, device=device)

    first, by = random().to(kind), (random() / math.sqrt(size)).to(kind)
    results = [torch.empty_like(first), torch.empty_like(first)]

    def chain() -> None:
        source = first
        for number in range(CHAINED):
            source = torch.matmul(source, by, out=results[number % 2])
        wait()

    return Chain(chain, CHAINED)
