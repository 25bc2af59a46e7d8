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


SRUN = Launcher("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
# Of a name that two have, the first counts. The general names come first because who sets them
# does so for the program; Slurm's come last because what is started inside of a step, by mpirun or
# in a batch script, inherits them.
LAUNCHERS = (
    # torchrun and workflow/launchers/local_ranks.py.
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    # horovodrun and workflow/launchers/srun_gloo.py.
    Launcher("horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    *(
        Launcher("mpirun", *(f"{mpi}_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK")))
        for mpi in ("OMPI", "MV2")  # Open MPI, MVAPICH2
    ),
    # MPICH, Intel MPI and MVAPICH; srun --mpi=pmi2 sets the first two.
    Launcher("mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    Launcher("mpirun", "PMIX_RANK"),
    Launcher("PALS", "PALS_RANKID", "PALS_SIZE"),
    Launcher("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    SRUN,
)


def rank_of(environ: Mapping[str, str]) -> int | None:
    """Return the number of this rank; None where no launcher has set it.

    RANK counts with WORLD_SIZE only: others use that name too.
    """
    for launcher in LAUNCHERS:
        rank, size = environ.get(launcher.rank, ""), environ.get(launcher.size, "")
        if rank.isdecimal() and (size.isdecimal() or launcher.rank != "RANK"):
            return int(rank)
    return None
