"""Ranks of TensorFlow that exchange through Horovod: what `harness.ranks` needs of them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import facts
from harness.horovod_settings import effective_settings
from harness.rendezvous import Place


def connect(
    _ranks: int, inter_threads: int, intra_threads: int, _folder: Path | None = None
) -> Place:
    """Initialise Horovod, which knows the others; threads are those of tf.config.threading."""
    tf.config.threading.set_inter_op_parallelism_threads(inter_threads)
    tf.config.threading.set_intra_op_parallelism_threads(intra_threads)
    hvd.init()
    return Place(hvd.rank(), hvd.size(), hvd.local_rank())


def all_true(ok: bool) -> bool:
    """Wait for every rank, by an allgather of one int; return whether every rank said `ok`."""
    flags = hvd.allgather(tf.constant([int(ok)], tf.int32), name="barrier")
    return bool(flags.numpy().all())


def gather_part(part: np.ndarray) -> np.ndarray:
    """Collect ``[rank, n]``, on every rank: Horovod gathers to all."""
    return hvd.allgather(tf.constant(part[None]), name="gather").numpy()


def gather_bytes(text: np.ndarray, early: bool) -> list[bytes]:
    """Collect uint8 values of any length from every rank, on every rank.

    With `early` that leaves TensorFlow's eager context as it is, not initialised: a strategy that
    has to be made before any operation can still be made.
    """

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
    ends, letters = np.cumsum(lengths), joined.tobytes()
    return [letters[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def exchange() -> dict[str, Any]:
    """Return what Horovod runs on, and its effective settings."""
    # Enabled for control, data or both, but with one on Gloo Horovod 0.28 crashes.
    controller = "mpi" if hvd.mpi_enabled() else "gloo"
    on_gpus = bool(hvd.nccl_built() and tf.config.get_visible_devices("GPU"))
    return {
        "by": "horovod",
        "backend": "nccl" if on_gpus else controller,
        "controller": controller,
        **effective_settings(os.environ, facts.installed("horovod")),
    }


def versions() -> Mapping[str, str | None]:
    """Return the versions of TensorFlow, Horovod and, where it is in use, of MPI."""
    return {
        "tensorflow": facts.installed("tensorflow", "tensorflow-cpu"),
        "horovod": facts.installed("horovod"),
        "mpi": facts.mpi_version() if hvd.mpi_enabled() else None,
    }


def allow_tf32(allowed: bool) -> None:
    """Allow or forbid TensorFloat-32, for matrix products and convolutions of float32."""
    tf.config.experimental.enable_tensor_float_32_execution(allowed)


def tf32_state(convolutions: bool) -> tuple[bool, list[tuple[int, int] | None]]:
    """Return whether it is allowed, as TensorFlow does by default for both, and what the GPUs can
    do."""
    gpus = tf.config.get_visible_devices("GPU") or tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    allowed = bool(tf.config.experimental.tensor_float_32_execution_enabled())
    return allowed, [each.get("compute_capability") for each in details]


def start_profiler(folder: Path, rank: int) -> None:
    """Start TensorFlow's profiler, which writes a folder of each rank."""
    tf.profiler.experimental.start(str(folder / f"rank{rank}"))


def stop_profiler() -> None:
    """Stop it and write what it has seen."""
    tf.profiler.experimental.stop()


def disconnect() -> None:
    """Leave Horovod."""
    hvd.shutdown()
