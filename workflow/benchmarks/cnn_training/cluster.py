"""Where a rank trains: its devices, and the TensorFlow servers that some variable updates need."""

import contextlib
import json
import os
import socket
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from harness import ranks, tf_training
from harness.program import EXIT_UNSUPPORTED
from harness.rendezvous import own_address

# Horovod only gathers results then, and its default of 1 ms costs up to a third of a core.
IDLE_CYCLE_MS = 10
JOBS = ("worker", "ps", "chief")


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


def has_servers(params: dict[str, Any]) -> bool:
    """Tell whether every rank hosts servers, which rank 0 makes use of for all."""
    return params["ranks"] > 1 and params["variable_update"] == "parameter_server"


def is_collective(params: dict[str, Any]) -> bool:
    """Tell whether TensorFlow's collectives join the ranks, in addition to Horovod."""
    return params["variable_update"] == "collective_all_reduce"


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
    tf_training.set_knobs(params)
    if params["autotune"]:
        os.environ["HOROVOD_AUTOTUNE"] = "1"
    if params["variable_update"] != "horovod" or params["ranks"] == 1:
        os.environ.setdefault("HOROVOD_CYCLE_TIME", str(IDLE_CYCLE_MS))
    ranks.join(params["ranks"], *threads(params))
    count, servers = params["devices_per_rank"], has_servers(params)
    # A GPU belongs to the worker server where there is one, else to this process.
    gpus, problem = tf_training.take_gpus(count, here=not servers)
    kind = "GPU" if gpus else "CPU"
    if not gpus:
        logical = count * [tf.config.LogicalDeviceConfiguration()]
        (host,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(host, logical)
    mine = [problem or unsupported(params, kind), socket.gethostname(), own_address(), free_ports()]
    # No operation may run before servers or a strategy of collectives are made.
    everyone = ranks.gather_json(mine, early=servers or is_collective(params))
    ranks.raise_first([problem for problem, *_ in everyone])
    names = [f"/device:{kind}:{number}" for number in range(count)]
    place = Place(ranks.rank(), ranks.size(), kind, names, threads(params), tasks(everyone))
    if servers:
        start_servers(place, gpus)
        ranks.gather_json(None, early=True)  # a server that is not there yet could be missed
    elif is_collective(params) and place.ranks > 1:
        task = {"type": "worker", "index": place.rank}
        cluster = {"worker": place.tasks["worker"]}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    return place


def tasks(everyone: list[Any]) -> dict[str, list[str]]:
    """Return host:port by job and rank, from what each rank says about itself."""
    alone = len({host for _, host, *_ in everyone}) == 1
    hosts = [("127.0.0.1" if alone else address, ports) for *_, address, ports in everyone]
    jobs = {
        job: [f"{address}:{ports[number]}" for address, ports in hosts]
        for number, job in enumerate(JOBS)
    }
    return jobs | {"chief": jobs["chief"][:1]}


def unsupported(params: dict[str, Any], kind: str) -> tuple[int, str] | None:
    """Return exit code and message of what cannot be done on devices of this kind."""
    if kind == "GPU":
        return None
    if params["all_reduce"] == "nccl":
        return EXIT_UNSUPPORTED, "all_reduce nccl: NCCL connects GPUs"
    if params["parameter_device"] == "gpu":
        return EXIT_UNSUPPORTED, "parameter_device gpu: no GPU here"
    if is_collective(params) and params["ranks"] > 1 and params["devices_per_rank"] > 1:
        said = "across ranks TensorFlow's collectives join one CPU device of each; use more ranks"
        return EXIT_UNSUPPORTED, f"devices_per_rank: {said}"
    return None


def free_ports() -> list[int]:
    """Return a port for each of JOBS on which nothing listens now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("", 0))) for _ in JOBS]
        return [each.getsockname()[1] for each in sockets]


def start_servers(place: Place, gpus: list[Any]) -> None:
    """Start this rank's worker, with all of its devices, and its parameter server."""
    inter, intra = place.threads
    for job in ("worker", "ps"):
        config = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=inter, intra_op_parallelism_threads=intra
        )
        config.device_count["CPU"] = len(place.devices) if job == "worker" else 1
        if job == "ps" or not gpus:
            config.device_count["GPU"] = 0
        else:
            visible = ",".join(gpu.name.rpartition(":")[2] for gpu in gpus)
            config.gpu_options.visible_device_list = visible
            config.gpu_options.allow_growth = True
        place.servers.append(tf.distribute.Server(place.tasks, job, place.rank, config=config))
