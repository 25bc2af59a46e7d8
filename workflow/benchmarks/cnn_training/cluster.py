"""Where a rank trains: its devices, and the TensorFlow servers that some variable updates need."""

import contextlib
import json
import os
import socket
from dataclasses import dataclass, field
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from harness import ranks, tf_training
from harness.program import EXIT_UNSUPPORTED
from harness.rendezvous import own_address

Problem = tuple[int, str]

# Horovod only gathers results then, and its default of 1 ms costs up to a third of a core.
IDLE_CYCLE_MS = 10


@dataclass
class Place:
    """Where a rank trains."""

    rank: int
    ranks: int
    kind: str  # of devices: CPU or GPU
    devices: list[str]  # this rank's, in its own process
    threads: tuple[int, int]  # inter-op and intra-op; 0: TensorFlow's choice
    tasks: dict[str, list[str]] = field(default_factory=dict)  # host:port by job and task
    servers: list[tf.distribute.Server] = field(default_factory=list)
    gpus: list[Any] = field(default_factory=list)  # this rank's physical devices

    def names(self) -> list[str]:
        """Return this rank's devices for people to read, GPUs with what they are."""
        if self.kind == "CPU":
            return [device.removeprefix("/device:") for device in self.devices]
        return [
            f"GPU:{number} {tf.config.experimental.get_device_details(gpu).get('device_name', '')}"
            for number, gpu in enumerate(self.gpus)
        ]


def has_servers(params: dict[str, Any]) -> bool:
    """Tell whether every rank hosts servers, which rank 0 makes use of for all."""
    return params["ranks"] > 1 and params["variable_update"] == "parameter_server"


def is_collective(params: dict[str, Any]) -> bool:
    """Tell whether TensorFlow's collectives join the ranks, in addition to Horovod."""
    return params["variable_update"] == "collective_all_reduce"


def set_knobs(params: dict[str, Any]) -> None:
    """Set Horovod's variables, which it reads when it starts, as the parameters say."""
    tf_training.set_knobs(params)
    if params["autotune"]:
        os.environ["HOROVOD_AUTOTUNE"] = "1"
    if params["variable_update"] != "horovod" or params["ranks"] == 1:
        os.environ.setdefault("HOROVOD_CYCLE_TIME", str(IDLE_CYCLE_MS))


def threads(params: dict[str, Any]) -> tuple[int, int]:
    """Return the inter-op and intra-op threads to use.

    With parameter servers each step blocks an inter-op thread of its worker, which then waits for
    ever for work that has no thread left.
    """
    inter = params["inter_threads"]
    if has_servers(params) and not inter:
        inter = max(params["devices_per_rank"] + 1, len(os.sched_getaffinity(0)))
    return inter, params["intra_threads"]


def join(params: dict[str, Any]) -> Place:
    """Start Horovod, take this rank's devices, and set up the cluster where ranks form one.

    Raises ProgramError on all ranks when one of them cannot do what the parameters ask for.
    """
    set_knobs(params)
    ranks.join(params["ranks"], *threads(params))
    kind, gpus, problem = take_devices(params)
    mine = {"kind": kind, "host": socket.gethostname(), "address": own_address()}
    mine["ports"] = free_ports(3)
    # No operation may run before servers or a strategy of collectives are made.
    first = has_servers(params) or is_collective(params)
    everyone = ranks.gather_json([problem or unsupported(params, kind), mine], first)
    ranks.raise_first([problem for problem, _ in everyone])
    hosts = [about for _, about in everyone]
    if len({host["kind"] for host in hosts}) > 1:
        message = "devices_per_rank: some ranks have GPUs, others have none"
        ranks.raise_first([(EXIT_UNSUPPORTED, message)])
    place = Place(
        rank=hvd.rank(),
        ranks=hvd.size(),
        kind=kind,
        devices=[f"/device:{kind}:{number}" for number in range(params["devices_per_rank"])],
        threads=threads(params),
        gpus=gpus,
    )
    if has_servers(params):
        place.tasks = tasks(hosts, ("worker", "ps", "chief"))
        place.tasks["chief"] = place.tasks["chief"][:1]
        start_servers(place)
        ranks.gather_json(None, early=True)  # a server that is not there yet could be missed
    elif is_collective(params) and place.ranks > 1:
        place.tasks = tasks(hosts, ("worker",))
        task = {"type": "worker", "index": place.rank}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": place.tasks, "task": task})
    return place


def tasks(hosts: list[dict[str, Any]], jobs: tuple[str, ...]) -> dict[str, list[str]]:
    """Return host:port by job and rank, from what each rank says about itself."""
    alone = len({host["host"] for host in hosts}) == 1
    names = ["127.0.0.1" if alone else host["address"] for host in hosts]
    return {
        job: [f"{name}:{host['ports'][n]}" for name, host in zip(names, hosts, strict=True)]
        for n, job in enumerate(jobs)
    }


def take_devices(params: dict[str, Any]) -> tuple[str, list[Any], Problem | None]:
    """Configure this rank's devices: return their kind, its GPUs, or a problem.

    A GPU belongs to the worker server where there is one, else to this process.
    """
    count = params["devices_per_rank"]
    gpus, problem = tf_training.take_gpus(count, here=not has_servers(params))
    if gpus or problem:
        return "GPU", gpus, problem
    if count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        devices = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        tf.config.set_logical_device_configuration(cpu, devices)
    return "CPU", [], None


def unsupported(params: dict[str, Any], kind: str) -> Problem | None:
    """Return what cannot be done on devices of this kind."""
    on_gpu = kind == "GPU"
    several = params["ranks"] > 1 and params["devices_per_rank"] > 1
    cases = [
        (params["all_reduce"] == "nccl" and not on_gpu, "all_reduce nccl: NCCL connects GPUs"),
        (params["parameter_device"] == "gpu" and not on_gpu, "parameter_device gpu: no GPU here"),
        (
            is_collective(params) and several and not on_gpu,
            "devices_per_rank: across ranks TensorFlow's collectives join one CPU device of each;"
            " use more ranks",
        ),
    ]
    said = next((message for holds, message in cases if holds), None)
    return (EXIT_UNSUPPORTED, said) if said else None


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]


def start_servers(place: Place) -> None:
    """Start this rank's worker, with all of its devices, and its parameter server."""
    inter, intra = place.threads
    for job in ("worker", "ps"):
        config = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=inter, intra_op_parallelism_threads=intra
        )
        config.device_count["CPU"] = len(place.devices) if job == "worker" else 1
        if job == "ps" or not place.gpus:
            config.device_count["GPU"] = 0
        else:
            config.gpu_options.visible_device_list = ",".join(
                gpu.name.rpartition(":")[2] for gpu in place.gpus
            )
            config.gpu_options.allow_growth = True
        place.servers.append(tf.distribute.Server(place.tasks, job, place.rank, config=config))
