"""Training with masters or parameters on servers, all of it run by rank 0."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training.cluster import Place
from cnn_training.compute import Gradients, apply, make_gradients, make_model, make_optimizer
from cnn_training.feed import Batches, feed
from cnn_training.trainer import DRIVEN, OBSERVED, OWN, Step, Taken, Trainer, repeat, take, traced
from harness import tf_spans


def masters(params: dict[str, Any], place: Place, data: Path | None, holder: str) -> Trainer:
    """Train a copy on every device; averaged gradients update masters, which all copy back.

    The masters lie on `holder`, or in turn on that of each rank's server. Across ranks rank 0 runs
    one graph of it all, in which what goes from rank to rank goes once for all of its devices.
    """
    devices, holders = [place.devices], [holder]
    if place.ranks > 1:
        if place.rank > 0:
            return Trainer(None, drives_all=True)
        devices = place.worker_devices()
        job = "ps" if holder.endswith("CPU:0") else "worker"
        holders = [f"/job:{job}/replica:0/task:{rank}{holder}" for rank in range(place.ranks)]
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(place.tasks), "chief")
    workers = [
        Worker(names, [copy_on(name, params) for name in names], feed(params, data, rank, names))
        for rank, names in enumerate(devices)
    ]
    model = workers[0].copies[0][0]
    variables = []
    for number, variable in enumerate(model.trainable_variables):
        with tf.device(holders[number % len(holders)]):
            variables.append(tf.Variable(variable.numpy(), name=f"master_{number}"))
    optimizer = make_optimizer(params)
    count = sum(len(names) for names in devices)

    def step() -> Step:
        results = [worker.gradients() for worker in workers]
        losses, sums, stamps = zip(*results, strict=True)
        means = []
        for master, parts in zip(variables, zip(*sums, strict=True), strict=True):
            with tf.device(master.device):
                means.append(tf.add_n(parts) / count)
        reduced = tf_spans.stamp(means)
        update = reduced, tf_spans.stamp(apply(optimizer, means, variables))
        seconds = [
            tf_spans.in_graph(*stamp, update, worker.copy_from(variables))
            for worker, stamp in zip(workers, stamps, strict=True)
        ]
        if place.ranks == 1:
            return losses[0], seconds[0]
        return tf.stack(losses), tf.stack(seconds, axis=1)

    return Trainer(
        repeat(traced(step)),
        model,
        [variables, *(copy.trainable_variables for each in workers for copy, _ in each.copies)],
        strategy="copies and masters",
        all_reduce="sums on the masters' devices",
        communication="gRPC" if place.ranks > 1 else "in memory",
        drives_all=place.ranks > 1,
        step_times=DRIVEN if place.ranks > 1 else OWN,
    )


def copy_on(device: str, params: dict[str, Any]) -> tuple[tf.keras.Model, Gradients]:
    """Build a model on a device, and the function that gives its gradients."""
    with tf.device(device):
        model = make_model(params)
        return model, make_gradients(model, params)


@dataclass
class Worker:
    """The devices of a rank, each with a copy of the model; what it does is part of a graph."""

    devices: list[str]
    copies: list[tuple[tf.keras.Model, Gradients]]
    batches: Batches

    def gradients(self) -> tuple[tf.Tensor, list[tf.Tensor], tuple[tf.Tensor, ...]]:
        """Return the mean loss of the devices, the sums of their gradients, and three stamps: of
        the begin, of when the batches and of when the gradients are there."""
        losses, computed = [], []
        with tf.device(self.devices[0]):
            begun = tf_spans.stamp()
            with tf.control_dependencies([begun]):
                fed, shares = tf_spans.after(self.batches(), self.devices)
        for device, (_, gradients), batch in zip(self.devices, self.copies, shares, strict=True):
            with tf.device(device):
                loss, own = gradients(*batch)
            losses.append(loss)
            computed.append(own)
        with tf.device(self.devices[0]):
            sums = [tf.add_n(parts) for parts in zip(*computed, strict=True)]
            return tf.add_n(losses) / len(losses), sums, (begun, fed, tf_spans.stamp(sums))

    def copy_from(self, masters: Sequence[tf.Variable]) -> tf.Tensor:
        """Set the trainable variables of all copies to those of the masters; return a stamp."""
        with tf.device(self.devices[0]):
            values = [tf.identity(master) for master in masters]
        copied = []
        for device, (model, _) in zip(self.devices, self.copies, strict=True):
            with tf.device(device):
                for variable, value in zip(model.trainable_variables, values, strict=True):
                    copied.append(variable.assign(value, read_value=False))
        with tf.device(self.devices[0]):
            return tf_spans.stamp(copied)


def parameter_servers(params: dict[str, Any], place: Place, data: Path | None) -> Trainer:
    """Train on every device of all ranks for itself, on variables that lie on all ranks' servers.

    A thread of rank 0 for each device starts its steps, so that all take the same number of them;
    TensorFlow's ClusterCoordinator hands the next step to whoever is free, so that the fast ones
    take more.
    """
    if place.rank > 0:
        return Trainer(None, drives_all=True, synchronous=False)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(place.tasks), task_type="chief", task_id=0, rpc_layer="grpc"
    )
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
    with strategy.scope():
        model = make_model(params)
        optimizer = make_optimizer(params)
    gradients = make_gradients(model, params)

    def step(images: tf.Tensor, labels: tf.Tensor) -> Step:
        begun, (images,) = tf_spans.begin(images)
        loss, own = gradients(images, labels)
        ready = tf_spans.stamp(loss, own)
        # The variables lie on the servers: bringing a gradient there and applying it is one.
        end = tf_spans.stamp(apply(optimizer, own, model.trainable_variables))
        return loss, tf_spans.in_graph(begun, begun, ready, (end, end), end)

    devices = [device for names in place.worker_devices() for device in names]
    single = params | {"ranks": len(devices), "devices_per_rank": 1}
    batches = [feed(single, data, number, [device]) for number, device in enumerate(devices)]
    images, labels = batches[0]()[0]
    graph = traced(step, *(tf.TensorSpec(each.shape, each.dtype) for each in (images, labels)))

    def work(number: int, steps: int) -> Taken:
        with tf.device(devices[number]):
            return take(steps, graph(), lambda: batches[number]()[0])

    def run(steps: int) -> Taken:
        graph()
        with ThreadPoolExecutor(len(devices)) as pool:
            everything = list(pool.map(work, range(len(devices)), [steps] * len(devices)))
        times, losses, seconds = (
            np.stack(each, axis=-1).reshape(*each[0].shape, place.ranks, -1).mean(axis=-1)
            for each in zip(*everything, strict=True)
        )
        return times, losses, seconds

    return Trainer(
        run,
        model,
        [model.trainable_variables],
        strategy="ParameterServerStrategy",
        communication="gRPC",
        synchronous=False,
        drives_all=True,
        step_times=OBSERVED,
    )
