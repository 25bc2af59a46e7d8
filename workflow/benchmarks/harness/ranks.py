"""Horovod: start, barrier, and gathering from all ranks on rank 0."""

import json
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness.program import EXIT_PARAMETERS, ProgramError

GATHER_BYTES = 8 << 20


def start(ranks: int, inter_threads: int = 0, intra_threads: int = 0) -> None:
    """Initialise Horovod and TensorFlow's thread pools, and wait until every rank has done so.

    Threads are those of tf.config.threading, 0 for TensorFlow's choice. Raises ProgramError (code
    2) on every rank when the program was not started with `ranks` ranks.
    """
    tf.config.threading.set_inter_op_parallelism_threads(inter_threads)
    tf.config.threading.set_intra_op_parallelism_threads(intra_threads)
    hvd.init()
    if hvd.size() != ranks:
        message = f"started with {hvd.size()} ranks, the run file says {ranks}"
        raise ProgramError(EXIT_PARAMETERS, message if hvd.rank() == 0 else "")
    barrier()


def rank() -> int:
    """Return the number of this rank, 0 up to the number of ranks."""
    return hvd.rank()


def first_on_host() -> bool:
    """Return whether this is the first rank of its host."""
    return hvd.local_rank() == 0


def barrier(ok: bool = True) -> bool:
    """Wait for every rank, by an allgather of one int; return whether every rank said `ok`."""
    flags = hvd.allgather(tf.constant([int(ok)], tf.int32), name="barrier")
    return bool(flags.numpy().all())


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
        if whole is not None:
            whole[first : first + piece] = everyone.T
    return None if whole is None else whole.reshape((*np.shape(values), hvd.size()))


def gather_json(value: Any) -> list[Any]:
    """Collect a JSON value (some hundred bytes) from every rank: a list by rank, on every rank."""
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    lengths = hvd.allgather(tf.constant([text.size], tf.int64), name="json_length").numpy()
    joined = hvd.allgather(tf.constant(text), name="json_text").numpy().tobytes()
    ends = np.cumsum(lengths)
    return [
        json.loads(joined[end - length : end]) for end, length in zip(ends, lengths, strict=True)
    ]


def raise_together(problem: tuple[int, str] | None) -> None:
    """End every rank when one has a problem (exit code, message); rank 0 says the first one.

    Call it on all ranks at the same place. Raises ProgramError everywhere, so that no rank is left
    waiting for one that has gone.
    """
    if barrier(problem is None):
        return
    problems = [found for found in gather_json(problem) if found is not None]
    code, message = problems[0]
    more = f" (and {len(problems) - 1} more ranks)" if len(problems) > 1 else ""
    raise ProgramError(code, message + more if hvd.rank() == 0 else "")


def facts_about_horovod() -> dict[str, Any]:
    """Return what Horovod runs on and how ranks lie on hosts."""
    return {
        "local_ranks": hvd.local_size(),
        # Enabled for control, data or both, but with one of them on Gloo Horovod 0.28 crashes.
        "controller": "mpi" if hvd.mpi_enabled() else "gloo",
        "nccl": bool(hvd.nccl_built()),
    }


def stop() -> None:
    """Leave Horovod after every rank has come this far."""
    barrier()
    hvd.shutdown()
