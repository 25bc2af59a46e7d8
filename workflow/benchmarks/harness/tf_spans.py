"""Time stamps inside the graph of a step of TensorFlow (`spans` says of what).

A stamp is taken by the host once the tensors that it waits for are there. On a GPU they are there
when their kernels are enqueued, not finished: with GPUs no stamps are taken, and nothing is said of
computation and communication.

Stamps are operations with a side effect, which TensorFlow runs in the order in which they were
traced, with all others of that kind: a print or a call of Python between them holds a stamp back.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from harness.spans import COLUMNS, NONE

STAMPS = "time stamps in the step's graph"


def method() -> str:
    """Return how spans are measured here: ``STAMPS``, or ``NONE`` where a GPU is in use."""
    return NONE if tf.config.get_visible_devices("GPU") else STAMPS


def stamp(*after: Any) -> tf.Tensor:
    """Return the host's clock (s, float64) once all tensors in ``after`` are there; in a graph.

    Zero where none are taken (``method``), at no cost.
    """
    if method() == NONE:
        return tf.zeros([], tf.float64)
    with tf.control_dependencies(tf.nest.flatten(after)), tf.device("CPU:0"):
        return tf.timestamp()


def begin(*tensors: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Return a stamp, and the tensors as they are, which none can use before it."""
    begun = stamp()
    with tf.control_dependencies([begun]):
        return begun, [tf.identity(tensor) for tensor in tensors]


def after(batches: Sequence[Any], devices: Sequence[str]) -> tuple[tf.Tensor, list[Any]]:
    """Return a stamp of when all batches are there, and the batch of each device after it."""
    fed = stamp(batches)
    held = []
    for batch, device in zip(batches, devices, strict=True):
        with tf.device(device), tf.control_dependencies([fed]):
            held.append(tuple(tf.identity(part) for part in batch))
    return fed, held


def of_steps(
    waited: Sequence[float], between: Sequence[float], stamps: Sequence[np.ndarray]
) -> np.ndarray:
    """Return ``[step, 4]``, in the order of ``COLUMNS``; no row where no stamps were taken.

    ``waited`` are the seconds that each step waits for its batch, ``between`` those since the one
    before ended; its stamps are those of its begin, of the last local gradient, of the last reduced
    one, and of its end.
    """
    if method() == NONE:
        return np.empty((0, len(COLUMNS)))
    begun, ready, reduced, ended = np.asarray(stamps, np.float64).reshape(-1, 4).T
    compute = (ready - begun) + (ended - reduced)
    return np.stack([np.asarray(waited), compute, reduced - ready, np.asarray(between)], axis=1)


def in_graph(
    begun: tf.Tensor, fed: tf.Tensor, ready: tf.Tensor, updated: Sequence[tf.Tensor], end: tf.Tensor
) -> tf.Tensor:
    """Return one step's seconds in the order of ``COLUMNS``, but for those before it, from stamps;
    in a graph.

    ``begun``, ``fed`` (the input is there), ``ready`` (the last local gradient) and ``end`` are of
    one host; ``updated``, of one host too, are the stamps before and after the variables' update,
    which is computation: all else between ``ready`` and ``end`` is communication.
    """
    update = updated[1] - updated[0]
    return tf.stack([fed - begun, ready - fed + update, end - ready - update])
