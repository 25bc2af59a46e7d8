"""The ways to share what devices learn: `make` returns a trainer for one ``variable_update``."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from cnn_training.cluster import Place, has_servers
from cnn_training.images import feed
from cnn_training.trainer import (
    Batch,
    Step,
    Taken,
    Trainer,
    make_gradients,
    make_model,
    make_optimizer,
    repeat,
    stamped_sums,
    take,
    traced,
)
from harness import tf_spans

REDUCTIONS = {  # without any, replicated takes collectives: NCCL on GPUs, rings on CPUs
    "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
    "reduction_to_one": tf.distribute.ReductionToOneDevice,
    "nccl": tf.distribute.NcclAllReduce,
}


def make(params: dict[str, Any], place: Place, data: Path | None) -> Trainer:
    """Return the trainer of a point, its models built.

    `data` is the folder of the stand-in that input tfrecords reads. Raises ProgramError when data
    are missing or damaged, on the ranks that find that out.
    """
    update, devices = params["variable_update"], place.devices
    if has_servers(params):
        return parameter_servers(params, place, data)
    central = update in ("parameter_server", "distributed_replicated")
    holder = f"/device:{params['parameter_device'].upper()}:0" if central else devices[0]
    alone = place.ranks * len(devices) == 1 and holder == devices[0]  # all ways are the same
    if alone or update in ("independent", "horovod"):
        return towers(params, place, data, exchanges=update == "horovod" and not alone)
    if update == "distributed_replicated":
        return masters(params, place, data, holder)
    return replicas(params, place, data, make_strategy(params, place, holder))


class Copies:
    """A model on each of a rank's devices, which computes gradients by itself."""

    def __init__(self, params: dict[str, Any], devices: Sequence[str]) -> None:
        """Build the models."""
        self.devices, self.models, self.gradients = devices, [], []
        for device in devices:
            with tf.device(device):
                self.models.append(make_model(params))
                self.gradients.append(make_gradients(self.models[-1], params))
        self.variables = [model.trainable_variables for model in self.models]

    def compute(self, shares: Sequence[Batch]) -> tuple[list[tf.Tensor], list[list[tf.Tensor]]]:
        """Return the loss and the gradients of each device, from its batch."""
        computed = []
        for device, gradients, batch in zip(self.devices, self.gradients, shares, strict=True):
            with tf.device(device):
                computed.append(gradients(*batch))
        return [loss for loss, _ in computed], [own for _, own in computed]


def towers(params: dict[str, Any], place: Place, data: Path | None, exchanges: bool) -> Trainer:
    """Train a model on every device of this rank by itself; with `exchanges` Horovod averages the
    gradients over all ranks, each as soon as it is there, and weights start from rank 0.
    """
    compression = getattr(hvd.Compression, params["compression"])
    copies = Copies(params, place.devices)
    optimizers = [make_optimizer(params) for _ in place.devices]
    if exchanges:
        hvd.broadcast_variables(copies.models[0].variables, root_rank=0)

    def mean(number: int, gradient: tf.Tensor) -> tf.Tensor:
        name = f"gradient_{number}"
        return hvd.allreduce(gradient, op=hvd.Average, compression=compression, name=name)

    def learn(shares: Sequence[Batch]) -> tuple[Any, ...]:
        losses, own = copies.compute(shares)
        shared, updates = own, []
        if exchanges:  # a device for each rank
            with tf.device(place.devices[0]):
                shared = [[mean(number, each) for number, each in enumerate(own[0])]]
        for device, optimizer, gradients, variables in zip(
            place.devices, optimizers, shared, copies.variables, strict=True
        ):
            with tf.device(device):
                pairs = zip(gradients, variables, strict=True)
                updates.append(optimizer.apply_gradients(pairs))
        ready = tf_spans.stamp(own, losses)
        reduced = tf_spans.stamp(shared) if exchanges else ready
        end = tf_spans.stamp(updates)
        return losses, ready, (reduced, end), end

    batches = feed(params, data, place.rank, place.devices)
    strategy = "horovod" if exchanges else "none"
    return repeat(learn, batches, place.devices, copies.variables, copies.models[0], strategy)


def masters(params: dict[str, Any], place: Place, data: Path | None, holder: str) -> Trainer:
    """Train a copy on every device; averaged gradients update masters, which all copy back."""
    copies = Copies(params, place.devices)
    with tf.device(holder):
        variables = [tf.Variable(each.numpy()) for each in copies.variables[0]]
    optimizer = make_optimizer(params)

    def learn(shares: Sequence[Batch]) -> tuple[Any, ...]:
        losses, computed = copies.compute(shares)
        ready = tf_spans.stamp(computed, losses)
        with tf.device(holder):
            means = [tf.add_n(parts) / len(parts) for parts in zip(*computed, strict=True)]
        reduced = tf_spans.stamp(means)
        pairs = zip(means, variables, strict=True)
        updated = tf_spans.stamp(optimizer.apply_gradients(pairs))
        values = [each.read_value() for each in variables]
        copied = [
            variable.assign(value, read_value=False)
            for copy in copies.variables
            for variable, value in zip(copy, values, strict=True)
        ]
        return losses, ready, (reduced, updated), tf_spans.stamp(copied)

    batches, known = feed(params, data, place.rank, place.devices), [variables, *copies.variables]
    return repeat(learn, batches, place.devices, known, copies.models[0], "copies and masters")


def make_strategy(params: dict[str, Any], place: Place, holder: str) -> tf.distribute.Strategy:
    """Return TensorFlow's strategy for a point: variables on one device (`holder`), a copy on
    every device of this rank, or on those of all ranks, joined by TensorFlow's collectives."""
    all_reduce, experimental = params["all_reduce"], tf.distribute.experimental
    if params["variable_update"] == "parameter_server":
        return experimental.CentralStorageStrategy(place.devices, holder)
    if params["variable_update"] == "replicated" and all_reduce in REDUCTIONS:
        return tf.distribute.MirroredStrategy(place.devices, REDUCTIONS[all_reduce]())
    # On CPUs the collectives of one process know its first device alone.
    if params["variable_update"] == "replicated" or (place.kind == "CPU" and place.ranks == 1):
        return tf.distribute.MirroredStrategy(place.devices)
    implementation = experimental.CommunicationImplementation(all_reduce.upper())
    options = experimental.CommunicationOptions(implementation=implementation)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def replicas(
    params: dict[str, Any], place: Place, data: Path | None, strategy: tf.distribute.Strategy
) -> Trainer:
    """Train the replicas of a strategy of TensorFlow's, one on each of this rank's devices."""
    with strategy.scope():
        model = make_model(params)
        optimizer = make_optimizer(params)
    gradients = make_gradients(model, params, 1 / strategy.num_replicas_in_sync)
    batches = feed(params, data, place.rank, place.devices)
    summed = stamped_sums(optimizer)

    def replica(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, ...]:
        loss, own = gradients(images, labels)
        ready = tf_spans.stamp(loss, own)
        pairs = zip(own, model.trainable_variables, strict=True)
        updated = optimizer.apply_gradients(pairs)  # sums of all replicas
        return loss, ready, summed(), tf_spans.stamp(updated)

    def learn(shares: Sequence[Batch]) -> tuple[Any, ...]:
        parts = [
            strategy.experimental_distribute_values_from_function(
                lambda context, part=part: part[context.replica_id_in_sync_group % len(part)]
            )
            for part in zip(*shares, strict=True)
        ]
        losses, *stamps = map(strategy.experimental_local_results, strategy.run(replica, parts))
        ready, reduced, end = (tf.reduce_max(tf.stack(each)) for each in stamps)
        return losses, ready, (reduced, end), end

    variables = map(strategy.experimental_local_results, model.trainable_variables)
    copies = [list(copy) for copy in zip(*variables, strict=True)]
    return repeat(learn, batches, place.devices, copies, model, type(strategy).__name__)


def parameter_servers(params: dict[str, Any], place: Place, data: Path | None) -> Trainer:
    """Train on every device of all ranks for itself, on variables that lie on all ranks' servers.

    A thread of rank 0 for each device starts its steps, so that all take the same number of them;
    TensorFlow's ClusterCoordinator hands the next step to whoever is free, so that the fast ones
    take more. Times are of each rank's devices, as rank 0 sees them.
    """
    if place.rank > 0:
        return Trainer(lambda _: 3 * (np.empty(0),), drives_all=True, synchronous=False)
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
        pairs = zip(own, model.trainable_variables, strict=True)
        end = tf_spans.stamp(optimizer.apply_gradients(pairs))
        return loss, tf_spans.in_graph(begun, begun, ready, (end, end), end)

    workers = [f"/job:worker/replica:0/task:{rank}" for rank in range(place.ranks)]
    devices = [worker + device for worker in workers for device in place.devices]
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
        by_rank = (place.ranks, len(place.devices))
        return tuple(
            np.stack(each, axis=-1).reshape(*each[0].shape, *by_rank).mean(axis=-1)
            for each in zip(*everything, strict=True)
        )

    copies, name = [model.trainable_variables], type(strategy).__name__
    return Trainer(run, model, copies, name, synchronous=False, drives_all=True)
