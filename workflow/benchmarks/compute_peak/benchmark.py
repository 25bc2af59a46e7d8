"""What a rank does: the same matrix product or convolution again and again."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tensorflow as tf

from compute_peak.work import BATCH, IMAGE, KERNEL, flop
from harness.probe import Probe, wait
from harness.sweep import Case, Sweep

EAGER, GRAPH, XLA = "eager", "graph", "XLA"
WAYS = {None: (EAGER, GRAPH, XLA), False: (EAGER, GRAPH), True: (XLA,)}  # by the parameter xla
TRIALS, TRIAL_S = 10, 0.2  # of each way: at most so many calls, and none more after that long


class ComputePeak(Probe):
    """Floating-point operations per second by size."""

    rate_name, rate_unit = "flops", "FLOP/s"

    def make_sweep(self) -> Sweep:
        """Return the sweep over sizes."""
        by = "matrix size" if self.params["operation"] == "matmul" else "channels"
        return Sweep(by, None, "FLOP")

    def cases(self) -> Iterator[Case]:
        """Return a case for each size."""
        params = self.params
        return (
            Case(
                size,
                params["ranks"] * flop(params["operation"], size),
                partial(make_call, params, size),
            )
            for size in params["sizes"]
        )

    def asked(self) -> str:
        """Return what a machine may lack."""
        params = self.params
        words = f"{params['operation']} in dtype {params['dtype']}"
        return words + ("" if params["operation"] == "matmul" else f", {params['data_format']}")


def make_call(params: dict[str, Any], size: int) -> Callable[[], Any]:
    """Return a function that computes once: operands are random and stay where they are.

    It is the fastest of the ways that the parameter `xla` leaves open: without XLA eagerly, which
    runs on the thread that calls, or as a graph, which hands it to another.
    """
    calls = [make_one(params, size, way) for way in WAYS[params["xla"]]]
    return calls[0] if len(calls) == 1 else min(calls, key=trial_seconds)


def trial_seconds(call: Callable[[], Any]) -> float:
    """Return the shortest of some calls, after one that compiles; of a slow one there is one."""
    call()
    seconds: list[float] = []
    while len(seconds) < TRIALS and sum(seconds) < TRIAL_S:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def make_one(params: dict[str, Any], size: int, way: str) -> Callable[[], Any]:
    """Return the function of one way."""
    dtype = tf.dtypes.as_dtype(params["dtype"])

    def random(*shape: int) -> tf.Tensor:
        # Of magnitude 1 and not 0, which some hardware multiplies with less power and faster.
        return tf.cast(tf.random.stateless_normal(shape, seed=[size, len(shape)]), dtype)

    if params["operation"] == "matmul":
        operands = (random(size, size), random(size, size))
        operation = tf.linalg.matmul
    else:
        image = (BATCH, IMAGE, IMAGE, size)
        if params["data_format"] == "NCHW":
            image = (BATCH, size, IMAGE, IMAGE)
        operands = (random(*image), random(KERNEL, KERNEL, size, size))
        operation = partial(
            tf.nn.conv2d, strides=1, padding="SAME", data_format=params["data_format"]
        )
    if way == EAGER:
        return lambda: wait(operation(*operands))
    compiled = tf.function(operation, jit_compile=way == XLA or None)
    return lambda: wait(compiled(*operands))
