"""What a rank does: the same matrix product or convolution again and again."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tensorflow as tf

from harness.probe import Case, Chain, works_of
from harness.tf_probe import Probe, wait

CHAINED = 4
TRIALS, TRIAL_S = 10, 0.2  # of each way: at most so many calls, and none more after that long


class Program(Probe):
    """Floating-point operations per second by size."""

    rate_name, rate_unit, amount_unit = "flops", "FLOP/s", "FLOP"

    @property
    def by(self) -> str:
        """What sizes are of."""
        return "matrix size" if self.params["operation"] == "matmul" else "channels"

    def cases(self) -> Iterator[Case]:
        """Return a case for each size."""
        params = self.params
        return (
            Case(size, params["ranks"] * flop(params, size), partial(make_call, params, size))
            for size in sorted(set(params["sizes"]))
        )

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the least bytes that each size moves too."""
        moved = [self.params["ranks"] * least_bytes(self.params, int(n)) for n in self.sweep.values]
        return {"sweep": self.sweep.note() | {"moved": moved}}


def flop(params: dict[str, Any], size: int) -> int:
    """Return the FLOP of a call on one rank; a multiply-add counts as 2.

    A product of square matrices of `size` rows is 2 n^3. A convolution with same padding is 2 x
    images x outputs x kernel x channels in x channels out; positions where the kernel reaches over
    the edge count in full, as the formulas of layers have it.
    """
    if params["operation"] == "matmul":
        return 2 * size**3
    outputs = params["images"] * params["height"] * params["width"]
    return 2 * outputs * params["kernel"] ** 2 * size**2


def least_bytes(params: dict[str, Any], size: int) -> int:
    """Return the least bytes that a call moves: both operands and the result, each once."""
    value = tf.dtypes.as_dtype(params["dtype"]).size
    if params["operation"] == "matmul":
        return value * 3 * size**2
    pixels = params["images"] * params["height"] * params["width"]
    return value * (2 * pixels * size + params["kernel"] ** 2 * size**2)


def make_call(params: dict[str, Any], size: int) -> Callable[[], Any]:
    """Return a function that computes once: operands are random and stay where they are.

    It is the fastest of four: eagerly, which runs on the thread that calls; as a graph, which hands
    it to another; several in a graph, each on what the one before it gave; and compiled by XLA.
    """
    operation, operands = make_operation(params, size)
    chain = tf.function(lambda x, y: chained(operation, x, y))
    graph, compiled = tf.function(operation), tf.function(operation, jit_compile=True)
    calls = (
        lambda: wait(operation(*operands)),
        lambda: wait(graph(*operands)),
        Chain(lambda: wait(chain(*operands)), CHAINED),
        lambda: wait(compiled(*operands)),
    )
    return min(calls, key=trial_seconds)


def trial_seconds(call: Callable[[], Any]) -> float:
    """Return the shortest time of the work, after a call that compiles; a slow one is made once."""
    call()
    seconds: list[float] = []
    while len(seconds) < TRIALS and sum(seconds) < TRIAL_S:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds) / works_of(call)


def make_operation(
    params: dict[str, Any], size: int
) -> tuple[Callable[..., Any], tuple[tf.Tensor, tf.Tensor]]:
    """Return the operation and what it is done with."""
    dtype = tf.dtypes.as_dtype(params["dtype"])

    def random(*shape: int) -> tf.Tensor:
        # Of magnitude 1 and not 0, which some hardware multiplies with less power and faster; what
        # it is multiplied with keeps that in a chain.
        return tf.cast(tf.random.stateless_normal(shape, seed=[size, len(shape)]), dtype)

    if params["operation"] == "matmul":
        return tf.linalg.matmul, (random(size, size), random(size, size) / math.sqrt(size))
    kernel, layout = params["kernel"], params["data_format"]
    pixels = {"H": params["height"], "W": params["width"]}
    image = ({"N": params["images"], "C": size, **pixels}[axis] for axis in layout)
    weights = random(kernel, kernel, size, size) / (kernel * math.sqrt(size))
    convolve = partial(tf.nn.conv2d, strides=1, padding="SAME", data_format=layout)
    return convolve, (random(*image), weights)


def chained(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Return ``operation`` with ``y`` again and again, of what it gave before."""
    return tf.while_loop(
        lambda count, _: count < CHAINED, lambda count, x: (count + 1, operation(x, y)), (0, x)
    )[1]
