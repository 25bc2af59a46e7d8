"""Facts about a rank and the software it runs on."""

import ctypes
import os
import re
import socket
import sys
from importlib import metadata
from typing import Any

from harness.hardware import host_hardware

# Variables of every framework; each has more of its own (`ranks.FRAMEWORKS`). As for external
# programs (scalesweep/compute/external_program.py).
_KEPT = (
    r"(NCCL|OMP|KMP|MKL|SLURM|OMPI_MCA|MPICH|I_MPI|UCX|FI)_"
    r"|CUDA_(DEVICE_ORDER|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)$"
)
# Terraform shares the prefix TF_.
_LEFT_OUT = re.compile(r"SECRET|TOKEN|JWT|PASSW|KEY|CREDENTIAL|^TF_(VAR|CLI)_", re.IGNORECASE)


def number_ranges(numbers: set[int]) -> str:
    """Write a set of integers as sorted ranges: {0, 1, 2, 7} is ``0-2,7``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else f"{low}" for low, high in ranges)


def rank_facts(inter_threads: int, intra_threads: int, first_on_host: bool) -> dict[str, Any]:
    """Return host, node, CPU affinity mask and thread settings of this rank.

    `slurm_node` is the node's name as Slurm knows it, which on a test cluster differs from the
    host. Thread counts of 0 are the framework's choice. The host's hardware is reported by one rank
    of it, since asking takes most of a second where there are GPUs.
    """
    return {
        "hardware": host_hardware() if first_on_host else None,
        "visible_gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "host": socket.gethostname(),
        "slurm_node": os.environ.get("SLURMD_NODENAME"),
        "affinity": number_ranges(os.sched_getaffinity(0)),  # CPUs: 0-11,24
        "pid": os.getpid(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "inter_threads": inter_threads,
        "intra_threads": intra_threads,
    }


def mpi_version() -> str | None:
    """Return name and version of the MPI library as it says itself; None when none is in use.

    A Horovod built with MPI also loads the library when it runs on Gloo, uninitialised.
    """
    loaded = ctypes.CDLL(None)
    initialised, length = ctypes.c_int(0), ctypes.c_int(0)
    text = ctypes.create_string_buffer(8192)  # the longest of any MPI (MPICH's)
    try:
        loaded.MPI_Initialized(ctypes.byref(initialised))
        if not initialised.value:
            return None
        loaded.MPI_Get_library_version(text, ctypes.byref(length))
    except AttributeError:  # no MPI is loaded
        return None
    # Open MPI v4.1.4, package: ..., or lines beginning with MPICH Version: 4.0.2.
    return " ".join(re.split(r"[,\n]", text.value.decode(errors="replace"))[0].split())


def installed(*names: str) -> str | None:
    """Return the version of the first of these distributions that is loaded or installed."""
    for name in names:
        module = sys.modules.get(name)
        if version := getattr(module, "__version__", None):
            return str(version)
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def variables(of_framework: str) -> dict[str, str]:
    """Return the environment variables that steer a run; none that may hold a secret.

    `of_framework` matches the beginning of those that only its framework reads
    (`ranks.Framework.variables`).
    """
    pattern = re.compile(f"{_KEPT}|{of_framework}")
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if pattern.match(name) and not _LEFT_OUT.search(name)
    }
