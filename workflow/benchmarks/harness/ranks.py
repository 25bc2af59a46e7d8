"""Horovod: start, barrier, and gathering from all ranks on rank 0."""

import json
import os
from collections.abc import Sequence
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import facts, profiling, watch
from harness.horovod_settings import effective_settings
from harness.program import EXIT_PARAMETERS, ProgramError

GATHER_BYTES = 8 << 20


def start(ranks: int, inter_threads: int = 0, intra_threads: int = 0) -> None:
    """Initialise Horovod and TensorFlow's thread pools, and wait until every rank has done so.

    Threads are those of tf.config.threading, 0 for TensorFlow's choice. Raises ProgramError (code
    2) on every rank when the program was not started with `ranks` ranks.
    """
    join(ranks, inter_threads, intra_threads)
    barrier()


def join(ranks: int, inter_threads: int = 0, intra_threads: int = 0) -> None:
    """Do as `start` does, but run no operation yet: devices can still be configured."""
    tf.config.threading.set_inter_op_parallelism_threads(inter_threads)
    tf.config.threading.set_intra_op_parallelism_threads(intra_threads)
    hvd.init()
    watch.know_rank(hvd.rank())
    watch.advance()
    if hvd.size() != ranks:
        message = f"started with {hvd.size()} ranks, the run file says {ranks}"
        raise ProgramError(EXIT_PARAMETERS, message if hvd.rank() == 0 else "")
    profiling.start_tensorflow(hvd.rank())


def rank() -> int:
    """Return the number of this rank, 0 up to the number of ranks."""
    return hvd.rank()


def first_on_host() -> bool:
    """Return whether this is the first rank of its host."""
    return hvd.local_rank() == 0


def barrier(ok: bool = True) -> bool:
    """Wait for every rank, by an allgather of one int; return whether every rank said `ok`."""
    flags = hvd.allgather(tf.constant([int(ok)], tf.int32), name="barrier")
    passed = bool(flags.numpy().all())
    watch.advance()
    return passed


def gather(values: np.ndarray) -> np.ndarray | None:
    """Collect a float array of one shape from every rank: ``[..., rank]`` on rank 0, else None.

    Goes in pieces of at most GATHER_BYTES over all ranks, since Horovod gathers to every rank: only
    rank 0 ever holds more than one piece.
    """
    flat = np.ascontiguousarray(values, np.float64).ravel()
    piece = max(1, GATHER_BYTES // (8 * hvd.size()))
    whole = np.empty((flat.size, hvd.size())) if hvd.rank() == 0 else None
    for first in range(0, flat.size, piece):
        part = flat[first : first + piece]
        everyone = hvd.allgather(tf.constant(part[None]), name="gather").numpy()
        watch.advance()
        if whole is not None:
            whole[first : first + piece] = everyone.T
    return None if whole is None else whole.reshape((*np.shape(values), hvd.size()))


def gather_json(value: Any, early: bool = False) -> list[Any]:
    """Collect a JSON value (some hundred bytes) from every rank: a list by rank, on every rank.

    With `early` that leaves TensorFlow's eager context as it is, not initialised: a strategy that
    has to be made before any operation can still be made.
    """
    written = json.dumps(value)
    if hvd.size() == 1:
        return [json.loads(written)]
    text = np.frombuffer(written.encode(), np.uint8)

    def gathered() -> list[tf.Tensor]:
        return [
            hvd.allgather(tf.constant([text.size], tf.int64), name="json_length"),
            hvd.allgather(tf.constant(text), name="json_text"),
        ]

    if early:
        config = tf.compat.v1.ConfigProto(  # its thread pools are the process's from here on
            inter_op_parallelism_threads=tf.config.threading.get_inter_op_parallelism_threads(),
            intra_op_parallelism_threads=tf.config.threading.get_intra_op_parallelism_threads(),
            device_count={"GPU": 0},
        )
        with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
            lengths, joined = session.run(gathered())
    else:
        lengths, joined = (tensor.numpy() for tensor in gathered())
    watch.advance()
    ends, letters = np.cumsum(lengths), joined.tobytes()
    return [
        json.loads(letters[end - length : end]) for end, length in zip(ends, lengths, strict=True)
    ]


def raise_together(problem: tuple[int, str] | None) -> None:
    """End every rank when one has a problem (exit code, message); rank 0 says the first one.

    Call it on all ranks at the same place. Raises ProgramError everywhere, so that no rank is left
    waiting for one that has gone.
    """
    if not barrier(problem is None):
        raise_first(gather_json(problem))


def raise_first(problems: Sequence[Sequence[Any] | None]) -> None:
    """Raise ProgramError when one of the ranks' problems is not None; rank 0 says the first one."""
    raised = [problem for problem in problems if problem is not None]
    if raised:
        code, message = raised[0]
        more = f" (and {len(raised) - 1} more ranks)" if len(raised) > 1 else ""
        raise ProgramError(code, message + more if hvd.rank() == 0 else "")


def facts_about_horovod() -> dict[str, Any]:
    """Return what Horovod runs on, how ranks lie on hosts, and its effective settings."""
    return {
        "local_ranks": hvd.local_size(),
        # Enabled for control, data or both, but with one of them on Gloo Horovod 0.28 crashes.
        "controller": "mpi" if hvd.mpi_enabled() else "gloo",
        "nccl": bool(hvd.nccl_built()),
        **effective_settings(os.environ, facts.versions()["horovod"]),
    }


def stop() -> None:
    """Leave Horovod after every rank has come this far."""
    profiling.stop_tensorflow()
    barrier()
    hvd.shutdown()
