"""The ways to share what devices learn: `make` returns a trainer for one ``variable_update``."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from cnn_training.cluster import Place, has_servers
from cnn_training.compute import (
    apply,
    make_gradients,
    make_model,
    make_optimizer,
    stamped_sums,
)
from cnn_training.images import feed
from cnn_training.trainer import OBSERVED, Step, Taken, Trainer, repeat, take, traced
from harness import tf_spans

STRATEGIES = {
    "parameter_server": "CentralStorageStrategy",
    "replicated": "MirroredStrategy",
    "collective_all_reduce": "MultiWorkerMirroredStrategy",
}


def make(params: dict[str, Any], place: Place, data: Path | None) -> Trainer:
    """Return the trainer of a point, its models built.

    `data` is the folder of the stand-in that input tfrecords reads. Raises ProgramError when data
    are missing or damaged, on the ranks that find that out.
    """
    update = params["variable_update"]
    devices = place.devices
    holder = devices[0]
    if update in ("parameter_server", "distributed_replicated"):
        holder = "/device:CPU:0" if params["parameter_device"] == "cpu" else "/device:GPU:0"
    if place.ranks * len(devices) == 1 and holder == devices[0]:
        update = "independent"  # all ways are the same
    ways: dict[str, Callable[[], Trainer]] = {
        "independent": lambda: towers(params, place, data),
        "horovod": lambda: towers(params, place, data, exchanges=True),
        "parameter_server": lambda: replicas(
            params, place, data, tf.distribute.experimental.CentralStorageStrategy(devices, holder)
        ),
        "replicated": lambda: replicas(params, place, data, mirrored(params, devices)),
        "collective_all_reduce": lambda: replicas(params, place, data, collective(params, place)),
        "distributed_replicated": lambda: masters(params, place, data, holder),
    }
    if update == "parameter_server" and has_servers(params):
        return parameter_servers(params, place, data)
    return ways[update]()


def towers(
    params: dict[str, Any],
    place: Place,
    data: Path | None,
    exchanges: bool = False,
) -> Trainer:
    """Train a model on every device of this rank by itself; with `exchanges` Horovod averages the
    gradients over all ranks, each as soon as it is there, and weights start from rank 0.
    """
    compression = getattr(hvd.Compression, params["compression"])
    built = []
    for device in place.devices:
        with tf.device(device):
            model = make_model(params)
            built.append((device, model, make_gradients(model, params), make_optimizer(params)))
            if exchanges:
                hvd.broadcast_variables(model.variables, root_rank=0)

    batches = feed(params, data, place.rank, place.devices)

    def step() -> Step:
        begun = tf_spans.stamp()
        with tf.control_dependencies([begun]):
            fed, shares = tf_spans.after(batches(), place.devices)
        losses, locals_, shared, updates = [], [], [], []
        for (device, model, gradients, optimizer), batch in zip(built, shares, strict=True):
            with tf.device(device):
                loss, own = gradients(*batch)
                losses.append(loss)
                locals_.append(own)
                if exchanges:
                    own = [
                        hvd.allreduce(
                            each, op=hvd.Average, compression=compression, name=f"gradient_{n}"
                        )
                        for n, each in enumerate(own)
                    ]
                shared.append(own)
                updates.append(apply(optimizer, own, model.trainable_variables))
        ready = tf_spans.stamp(locals_, losses)
        reduced = tf_spans.stamp(shared) if exchanges else ready
        end = tf_spans.stamp(updates)
        return tf.add_n(losses) / len(losses), tf_spans.in_graph(
            begun, fed, ready, (reduced, end), end
        )

    models = [model for _, model, _, _ in built]
    graph = traced(step)
    return Trainer(
        repeat(graph),
        models[0],
        [model.trainable_variables for model in models],
        graph=graph,
        strategy="horovod" if exchanges else "none",
        all_reduce="horovod" if exchanges else "none",
        communication="horovod" if exchanges else "none",
    )


def mirrored(params: dict[str, Any], devices: Sequence[str]) -> tf.distribute.Strategy:
    """Return the strategy that keeps a copy of the variables on every device of this rank."""
    reductions = {
        "auto": lambda: None,  # collectives: NCCL on GPUs, rings on CPUs
        "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
        "reduction_to_one": tf.distribute.ReductionToOneDevice,
        "nccl": tf.distribute.NcclAllReduce,
    }
    return tf.distribute.MirroredStrategy(devices, reductions[params["all_reduce"]]())


def collective(params: dict[str, Any], place: Place) -> tf.distribute.Strategy:
    """Return the strategy that joins the devices of all ranks by TensorFlow's collectives."""
    if place.kind == "CPU" and place.ranks == 1:  # of whose devices it knows the first alone
        return tf.distribute.MirroredStrategy(place.devices)
    implementation = {"auto": "AUTO", "ring": "RING", "nccl": "NCCL"}[params["all_reduce"]]
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation(implementation)
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def replicas(
    params: dict[str, Any],
    place: Place,
    data: Path | None,
    strategy: tf.distribute.Strategy,
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
        updated = apply(optimizer, own, model.trainable_variables)
        return loss, ready, summed(), tf_spans.stamp(updated)

    def step() -> Step:
        begun = tf_spans.stamp()
        with tf.control_dependencies([begun]):
            fed, own = tf_spans.after(batches(), place.devices)
        shares = [
            strategy.experimental_distribute_values_from_function(
                lambda context, part=part: part[context.replica_id_in_sync_group % len(part)]
            )
            for part in zip(*own, strict=True)
        ]
        results = map(strategy.experimental_local_results, strategy.run(replica, shares))
        losses, *stamps = results
        ready, reduced, end = (tf.reduce_max(tf.stack(each)) for each in stamps)
        return tf.add_n(losses) / len(losses), tf_spans.in_graph(
            begun, fed, ready, (reduced, end), end
        )

    copies = [strategy.experimental_local_results(each) for each in model.trainable_variables]
    return Trainer(
        repeat(traced(step)),
        model,
        [list(copy) for copy in zip(*copies, strict=True)],
        strategy=STRATEGIES[params["variable_update"]],
        all_reduce=params["all_reduce"],
        communication="in memory" if place.ranks == 1 else "gRPC",
    )


def masters(params: dict[str, Any], place: Place, data: Path | None, holder: str) -> Trainer:
    """Train a copy on every device; averaged gradients update masters, which all copy back."""
    copies = []
    for device in place.devices:
        with tf.device(device):
            model = make_model(params)
            copies.append((device, model, make_gradients(model, params)))
    model = copies[0][1]
    with tf.device(holder):
        variables = [tf.Variable(each.numpy()) for each in model.trainable_variables]
    optimizer = make_optimizer(params)
    batches = feed(params, data, place.rank, place.devices)

    def step() -> Step:
        begun = tf_spans.stamp()
        with tf.control_dependencies([begun]):
            fed, shares = tf_spans.after(batches(), place.devices)
        losses, computed, copied = [], [], []
        for (device, _, gradients), batch in zip(copies, shares, strict=True):
            with tf.device(device):
                loss, own = gradients(*batch)
            losses.append(loss)
            computed.append(own)
        ready = tf_spans.stamp(computed, losses)
        with tf.device(holder):
            means = [tf.add_n(parts) / len(copies) for parts in zip(*computed, strict=True)]
        reduced = tf_spans.stamp(means)
        updated = tf_spans.stamp(apply(optimizer, means, variables))
        with tf.control_dependencies([updated]):
            values = [tf.identity(each) for each in variables]
        for device, copy, _ in copies:
            with tf.device(device):
                for variable, value in zip(copy.trainable_variables, values, strict=True):
                    copied.append(variable.assign(value, read_value=False))
        end = tf_spans.stamp(copied)
        return tf.add_n(losses) / len(losses), tf_spans.in_graph(
            begun, fed, ready, (reduced, updated), end
        )

    return Trainer(
        repeat(traced(step)),
        model,
        [variables, *(copy.trainable_variables for _, copy, _ in copies)],
        strategy="copies and masters",
        all_reduce="sums on the masters' device",
        communication="in memory",
    )


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
