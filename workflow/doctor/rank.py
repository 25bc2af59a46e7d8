"""One of several ranks that a site's launcher starts: ``python rank.py [horovod]``.

Prints one line of JSON: what the launcher's environment says of this rank, its host and its CPUs;
with ``horovod`` also what Horovod says, after the ranks have exchanged a number. Standard library
and, if asked for, Horovod with TensorFlow only.
"""

import json
import os
import socket
import sys

# Launchers tell a rank its number and the number of ranks in variables of their own.
VARIABLES = (
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("RANK", "WORLD_SIZE"),
)


def place():
    """The number of this rank and the number of ranks, None where no variable says so."""
    for rank, size in VARIABLES:
        if os.environ.get(rank, "").isdigit():
            ranks = os.environ.get(size, "")
            return int(os.environ[rank]), int(ranks) if ranks.isdigit() else None
    return None, None


def main():
    """Print what this rank is."""
    rank, size = place()
    facts = {
        "rank": rank,
        "size": size,
        "host": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "cpus": sorted(os.sched_getaffinity(0)),
    }
    if "horovod" in sys.argv[1:]:
        try:
            import horovod.tensorflow as hvd
            import tensorflow as tf

            hvd.init()
            total = hvd.allreduce(tf.constant(1.0), op=hvd.Sum, name="doctor")
            facts["horovod"] = {
                "rank": hvd.rank(),
                "size": hvd.size(),
                "sum": float(total.numpy()),
                "on": "MPI" if hvd.mpi_enabled() else "Gloo",
            }
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            facts["horovod_error"] = said[:400]
    print("@doctor " + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
