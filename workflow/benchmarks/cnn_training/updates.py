"""The ways to share what devices learn: `make` returns a trainer for one ``variable_update``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from cnn_training.cluster import Place, has_servers
from cnn_training.compute import (
    apply,
    make_gradients,
    make_model,
    make_optimizer,
    stamped_sums,
)
from cnn_training.feed import feed
from cnn_training.servers import masters, parameter_servers
from cnn_training.trainer import Step, Trainer, repeat, traced
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
        "horovod": lambda: towers(params, place, data, average_by_horovod(params)),
        "parameter_server": lambda: replicas(params, place, data, central(devices, holder)),
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
    exchange: Callable[[list[tf.Tensor]], list[tf.Tensor]] | None = None,
) -> Trainer:
    """Train a model on every device of this rank by itself, but for what `exchange` does.

    `exchange` turns a device's gradients into those that all apply; weights then start from rank 0.
    """
    built = []
    for device in place.devices:
        with tf.device(device):
            model = make_model(params)
            built.append((device, model, make_gradients(model, params), make_optimizer(params)))
            if exchange:
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
                own = exchange(own) if exchange else own
                shared.append(own)
                updates.append(apply(optimizer, own, model.trainable_variables))
        ready = tf_spans.stamp(locals_, losses)
        reduced = tf_spans.stamp(shared) if exchange else ready
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
        strategy="horovod" if exchange else "none",
        all_reduce="horovod" if exchange else "none",
        communication="horovod" if exchange else "none",
    )


def average_by_horovod(params: dict[str, Any]) -> Callable[[list[tf.Tensor]], list[tf.Tensor]]:
    """Return a function that averages gradients over all ranks, each as soon as it is there."""
    compression = getattr(hvd.Compression, params["compression"])

    def exchange(gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        return [
            hvd.allreduce(each, op=hvd.Average, compression=compression, name=f"gradient_{number}")
            for number, each in enumerate(gradients)
        ]

    return exchange


def central(devices: Sequence[str], holder: str) -> tf.distribute.Strategy:
    """Return the strategy that keeps all variables on one device, which all devices read."""
    return tf.distribute.experimental.CentralStorageStrategy(devices, holder)


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
    implementation = {"auto": "AUTO", "ring": "RING", "nccl": "NCCL"}[params["all_reduce"]]
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation(implementation)
    )
    with every_cpu_device(place.devices) if place.kind == "CPU" else nullcontext():
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


@contextmanager
def every_cpu_device(devices: Sequence[str]) -> Iterator[None]:
    """Have the strategy of collectives take these, as of CPU devices it only knows the first."""
    from tensorflow.python.distribute import collective_all_reduce_strategy

    extended = collective_all_reduce_strategy.CollectiveAllReduceExtended
    original = extended._initialize_local_devices

    def chosen(_strategy: Any, _resolver: Any, worker_device: str) -> tuple[tuple[str, ...], str]:
        return tuple(worker_device + device for device in devices), "CPU"

    extended._initialize_local_devices = chosen
    try:
        yield
    finally:
        extended._initialize_local_devices = original


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
