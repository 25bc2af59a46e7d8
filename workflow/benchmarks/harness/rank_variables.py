"""The variables by which launchers say which rank a process is, in the order in which they count.

The one place that knows them: ranks of a benchmark meet by these (`rendezvous`), and the watch, the
profilers' wrapper and the doctor number ranks by them. No imports but of the standard library, not
even of this package: ``workflow/launchers`` and ``workflow/doctor`` load this file alone, under
whatever Python a site has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Launcher(NamedTuple):
    """A launcher, in words, and its variables; empty where it has none of a kind."""

    name: str
    rank: str
    size: str = ""
    local_rank: str = ""
    local_size: str = ""


def _of_mpi(mpi: str) -> Launcher:
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    return Launcher("mpirun", *(f"{mpi}_COMM_WORLD_{name}" for name in names))


HYDRA = Launcher("mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
SRUN = Launcher("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
# Of a name that two have, the first counts. The general names come first because who sets them
# does so for the program; Slurm's come last because what is started inside of a step, by mpirun or
# in a batch script, inherits them.
LAUNCHERS = (
    # torchrun and workflow/launchers/local_ranks.py.
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    # horovodrun and workflow/launchers/srun_gloo.py.
    Launcher(
        "horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"
    ),
    _of_mpi("OMPI"),  # Open MPI
    _of_mpi("MV2"),  # MVAPICH2
    HYDRA,  # of MPICH, Intel MPI and MVAPICH; srun --mpi=pmi2 sets the first two
    Launcher("mpirun", "PMIX_RANK"),
    Launcher("PALS", "PALS_RANKID", "PALS_SIZE"),
    Launcher("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    SRUN,
)


def rank_and_size(environ: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the number of this rank and that of ranks; None where no launcher has set them.

    RANK counts with WORLD_SIZE only: others use that name too.
    """
    for launcher in LAUNCHERS:
        rank, size = environ.get(launcher.rank, ""), environ.get(launcher.size, "")
        if rank.isdecimal() and (size.isdecimal() or launcher.rank != "RANK"):
            return int(rank), int(size) if size.isdecimal() else None
    return None, None
