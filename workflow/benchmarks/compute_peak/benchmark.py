"""What a rank does: the same matrix product or convolution again and again."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tensorflow as tf

from compute_peak.work import flop, least_bytes
from harness.probe import Case, Chain, works_of
from harness.tf_probe import Probe, wait

EAGER, GRAPH, CHAIN, XLA = "eager", "graph", "chain", "XLA"
# By the parameter xla.
WAYS = {None: (EAGER, GRAPH, CHAIN, XLA), False: (EAGER, GRAPH, CHAIN), True: (XLA,)}
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
            Case(
                size,
                params["ranks"] * flop(params, size),
                partial(make_call, params, size),
            )
            for size in sorted(set(params["sizes"]))
        )

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the least bytes that each size moves too."""
        moved = [self.params["ranks"] * least_bytes(self.params, int(n)) for n in self.sweep.values]
        return {"sweep": self.sweep.note() | {"moved": moved}}

    def asked(self) -> str:
        """Return what a machine may lack."""
        params = self.params
        words = f"{params['operation']} in dtype {params['dtype']}"
        return words + ("" if params["operation"] == "matmul" else f", {params['data_format']}")


def make_call(params: dict[str, Any], size: int) -> Callable[[], Any]:
    """Return a function that computes once: operands are random and stay where they are.

    It is the fastest of the ways that the parameter `xla` leaves open: without XLA eagerly, which
    runs on the thread that calls, as a graph, which hands it to another, or several in a graph,
    each on what the one before it gave.
    """
    ways = WAYS[params["xla"]]
    calls = [make_one(params, size, way) for way in ways]
    return calls[0] if len(calls) == 1 else min(calls, key=trial_seconds)


def trial_seconds(call: Callable[[], Any]) -> float:
    """Return the shortest time of the work, after a call that compiles; a slow one is made once."""
    call()
    seconds: list[float] = []
    while len(seconds) < TRIALS and sum(seconds) < TRIAL_S:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds) / works_of(call)


def make_one(params: dict[str, Any], size: int, way: str) -> Callable[[], Any]:
    """Return the function of one way."""
    dtype = tf.dtypes.as_dtype(params["dtype"])

    def random(*shape: int) -> tf.Tensor:
        # Of magnitude 1 and not 0, which some hardware multiplies with less power and faster; what
        # it is multiplied with keeps that in a chain.
        return tf.cast(tf.random.stateless_normal(shape, seed=[size, len(shape)]), dtype)

    if params["operation"] == "matmul":
        operands = (random(size, size), random(size, size) / math.sqrt(size))
        operation = tf.linalg.matmul
    else:
        kernel, rows, columns = params["kernel"], params["height"], params["width"]
        image = (params["images"], rows, columns, size)
        if params["data_format"] == "NCHW":
            image = (params["images"], size, rows, columns)
        weights = random(kernel, kernel, size, size) / (kernel * math.sqrt(size))
        operands = (random(*image), weights)
        operation = partial(
            tf.nn.conv2d, strides=1, padding="SAME", data_format=params["data_format"]
        )
    if way == EAGER:
        return lambda: wait(operation(*operands))
    if way == CHAIN:
        chain = tf.function(lambda x, y: chained(operation, x, y))
        return Chain(lambda: wait(chain(*operands)), CHAINED)
    compiled = tf.function(operation, jit_compile=way == XLA or None)
    return lambda: wait(compiled(*operands))


def chained(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Return ``operation`` with ``y`` again and again, of what it gave before."""
    return tf.while_loop(
        lambda count, _: count < CHAINED, lambda count, x: (count + 1, operation(x, y)), (0, x)
    )[1]
