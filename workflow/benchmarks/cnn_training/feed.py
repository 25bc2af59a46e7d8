"""Batches for the devices that train."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from cnn_training import images

Batch = tuple[tf.Tensor, tf.Tensor]  # images, labels
Batches = Callable[[], list[Batch]]  # the next batch of each device; part of a step's graph


def feed(params: dict[str, Any], data: Path | None, rank: int, devices: list[str]) -> Batches:
    """Return the function that gives the batches of a rank's devices, which may be on a server.

    Of input synthetic they lie on the devices and are the same in every step. Raises ProgramError
    when data are missing or damaged.
    """
    if params["input"] == "synthetic":
        resident = []
        for device, batch in zip(devices, images.fixed_batches(params, rank), strict=True):
            with tf.device(device):
                resident.append(tuple(tf.identity(tf.constant(part)) for part in batch))
        return lambda: resident
    with tf.device(host_of(devices[0])):
        iterator = iter(images.rank_dataset(params, rank, data))

    def read() -> list[Batch]:
        return list(zip(*next(iterator), strict=True))

    return read


def host_of(device: str) -> str:
    """Return the CPU of the process that a device belongs to."""
    return device.rpartition("/device:")[0] + "/device:CPU:0"
