"""Where the time of a rank's step goes: time stamps inside the step's graph, and their sums.

Of each step: waiting for input; local computation (forward, backward, update); exposed
communication, from the last local gradient to the last reduced one; and the time since this rank's
step before ended. What is left of the step (dispatch, bookkeeping) is nobody's. Seconds everywhere.

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

from harness import no_exchange

STAMPS, NONE = "time stamps in the step's graph", "none"
COLUMNS = ("span_input", "span_compute", "span_communication", "span_between")
# Operations (beginnings of their types) that are no part of training and may hold stamps back.
_HOLDING = ("Print", "PyFunc", "EagerPyFunc", "Write", "FlushSummary", "LogEvent", "SaveV2")
_CLOCK_S = 1e-3  # by which clocks err


def method() -> str:
    """Return how spans are measured here: ``STAMPS``, or ``NONE`` where a GPU is in use."""
    return NONE if tf.config.get_visible_devices("GPU") else STAMPS


def about(steps: int, held_by: Sequence[str] = (), out_of_order: int = 0) -> dict[str, Any]:
    """Return what a record notes of spans: the method, and how many steps an epoch has; of a run
    without it, that the exchange was left out; and, where there are any, `side_effects` and steps
    whose stamps are out of order."""
    notes: dict[str, Any] = {"method": method(), "steps_per_epoch": steps}
    notes |= {"exchange": no_exchange.LEFT_OUT} if no_exchange.left_out() else {}
    notes |= {"side_effects": list(held_by)} if held_by else {}
    return notes | ({"out_of_order": out_of_order} if out_of_order else {})


def side_effects(graph: Any) -> list[str]:
    """Return the types of operations that may hold stamps back, of a step's traced function."""
    definition = graph.graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return sorted({node.op for node in nodes if node.op.startswith(_HOLDING)})


def disordered(steps: np.ndarray) -> int:
    """Return how many of the steps ``[step, column, rank]`` have a span that is negative."""
    return int((steps < -_CLOCK_S).any(axis=(1, 2)).sum())


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


def of_epoch(steps: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums over an epoch's ``[step, 4, rank]``.

    ``span_*`` ``[rank]``; ``span_busiest``, the sum over steps of the most that a rank spends on
    input and computation; ``span_transfer``, the sum over steps of the least that a rank spends on
    communication: the last to come waits for nobody, so what it takes is the exchange itself.
    """
    times = dict(zip(COLUMNS, steps.sum(axis=0), strict=True))
    busiest = steps[:, :2].sum(axis=1).max(axis=1).sum()
    transfer = steps[:, 2].min(axis=1).sum()
    return times | {"span_busiest": busiest, "span_transfer": transfer}
