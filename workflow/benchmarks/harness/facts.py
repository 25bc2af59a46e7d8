"""Facts about a rank and the software it runs on."""

import ctypes
import os
import re
import socket
import sys
from importlib import metadata
from typing import Any

from harness.hardware import field, host_hardware

# Variables of every framework; each has more of its own (`ranks.FRAMEWORKS`). As for external
# programs (scalesweep/compute/external_program.py).
_KEPT = (
    r"(NCCL|OMP|KMP|MKL|SLURM|OMPI_MCA|MPICH|I_MPI|UCX|FI)_"
    r"|CUDA_(DEVICE_ORDER|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)$"
)
# Terraform shares the prefix TF_.
_LEFT_OUT = re.compile(r"SECRET|TOKEN|JWT|PASSW|KEY|CREDENTIAL|^TF_(VAR|CLI)_", re.IGNORECASE)


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
        "affinity": field("/proc/self/status", "Cpus_allowed_list"),  # CPUs: 0-11,24
        "pid": os.getpid(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "inter_threads": inter_threads,
        "intra_threads": intra_threads,
    }


def mpi_version() -> str | None:
    """Return name and version of the MPI library as it says itself; None when none is loaded."""
    text = ctypes.create_string_buffer(8192)  # the longest of any MPI (MPICH's)
    try:
        ctypes.CDLL(None).MPI_Get_library_version(text, ctypes.byref(ctypes.c_int(0)))
    except AttributeError:
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
    (`ranks.FRAMEWORKS`).
    """
    pattern = re.compile(f"{_KEPT}|{of_framework}")
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if pattern.match(name) and not _LEFT_OUT.search(name)
    }
