"""Batch jobs of a test cluster, and what MPI needs there."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, missing_packages, wait_until

REASON = missing_packages()
needs_slurm = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.skipif(bool(REASON), reason=str(REASON)),
]
PMIX = any(Path("/usr/lib").glob("*/pmix2/lib/libpmix.so"))
MPI = {
    "HOROVOD_CONTROLLER": "mpi",
    "HOROVOD_CPU_OPERATIONS": "mpi",
    # All nodes are this machine: no rank may spin on a core that another one needs, and no
    # network but its own is to be used.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_btl_tcp_disable_family": "6",
}


def why_no_mpi() -> str:
    """Why Horovod cannot run on MPI here; empty if it can. Importing it would take seconds."""
    folders = getattr(find_spec("horovod"), "submodule_search_locations", None) or []
    libraries = [path for folder in folders for path in Path(folder).glob("tensorflow/mpi_lib*.so")]
    if not any(b"MPI_Init_thread" in path.read_bytes() for path in libraries):
        return "Horovod was built without MPI: apt-get install libopenmpi-dev, make setup"
    return "" if PMIX else "srun --mpi=pmix opens libpmix.so: apt-get install libpmix-dev"


def submit(cluster: Cluster, script: str, *options: str) -> str:
    """Submit a batch script; its job's number."""
    out = f"--output={cluster.folder}/job-%j.out"
    return cluster.run("sbatch", "--parsable", out, *options, f"--wrap={script}").strip()


def run_out(cluster: Cluster, job: str) -> None:
    """Have the time of a running job be over: the least limit is a minute, which nobody waits for.
    slurmctld, which looks at its jobs every 30 s, ends it as it ends any job for its limit."""
    cluster.run("scontrol", "update", f"JobId={job}", "EndTime=now+1second")


def clear(cluster: Cluster) -> None:
    """Cancel every job, and wait until the queue is empty and all nodes are idle."""
    if jobs := cluster.run("squeue", "-ho%A").split():
        cluster.run("scancel", "--quiet", *jobs)
    for wanted, *words in (("", "squeue", "-h"), (r"(idle\s*)+", "sinfo", "-hNo%T")):
        assert wait_until(partial(cluster.says, wanted, *words), 60), cluster.run(*words)


def tasks(cluster: Cluster, argument: str) -> list[str]:
    """The nodes of the processes ``sleep argument`` that this cluster started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            # srun looks its command up: /usr/bin/sleep.
            if path.read_text().rpartition("/")[2].split("\0") == ["sleep", argument, ""]:
                variables = path.with_name("environ").read_bytes().decode().split("\0")
                if f"SLURM_CONF={cluster.config}" in variables:
                    found += [v[16:] for v in variables if v.startswith("SLURMD_NODENAME=")]
        except OSError:
            continue
    return sorted(found)
