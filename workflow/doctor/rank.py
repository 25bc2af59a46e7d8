"""One of several ranks that a site's launcher starts.

    python rank.py [horovod | torch SECONDS FOLDER]

Prints one line of JSON: what the launcher's environment says of this rank, its host and its CPUs;
with ``horovod`` or ``torch`` also what that says, after the ranks have exchanged a number. Ranks of
PyTorch start and meet as those of a benchmark do (``harness.torch_ranks``), if need be through the
folder, which all of them see; they give up after so many seconds. Standard library and, if asked
for, Horovod with TensorFlow or PyTorch only.
"""

import json
import os
import socket
import sys
import threading
from pathlib import Path

# The file alone: importing the package would set variables.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks" / "harness"))

from rank_variables import rank_and_size

BENCHMARKS = str(Path(sys.path.pop()).parent)


def say(facts):
    """Print what this rank is."""
    print("@doctor " + json.dumps(facts), flush=True)


def horovod_exchange():
    """What Horovod says of this rank, and the sum of 1 over all ranks."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    total = hvd.allreduce(tf.constant(1.0), op=hvd.Sum, name="doctor")
    return {
        "rank": hvd.rank(),
        "size": hvd.size(),
        "sum": float(total.numpy()),
        "on": "MPI" if hvd.mpi_enabled() else "Gloo",
    }


def torch_exchange(facts, seconds, folder):
    """What torch.distributed says of this rank; the sum of 1, 2... over the ranks, and their order.

    Ranks wait half of the seconds for each other; what does not end in all of them ends with a word
    on how far it came.
    """
    sys.path.insert(0, BENCHMARKS)
    import torch
    import torch.distributed as dist

    from harness import torch_ranks
    from harness.rendezvous import rendezvous

    def give_up():
        backend = "NCCL" if torch_ranks.device().type == "cuda" else "Gloo"
        facts["torch_error"] = (
            f"rank {torch_ranks.rank()} on {facts['host']} had no answer over {backend} within "
            f"{seconds:g} s"
        )
        say(facts)
        os._exit(1)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    size = rendezvous(by_file=True).size
    torch_ranks.connect(size, 0, 0, folder, seconds / 2)
    number = torch_ranks.rank()
    total = torch.tensor([number + 1.0], device=torch_ranks.device())
    dist.all_reduce(total)
    own = torch.tensor([float(number)])
    everyone = [torch.zeros(1) for _ in range(size)]
    dist.all_gather(everyone, own)
    timer.cancel()
    exchange = torch_ranks.exchange()
    return {
        "rank": number,
        "size": size,
        "sum": total.item(),
        "order": [part.item() for part in everyone],
        "on": exchange["backend"],
    }


def main():
    """Print what this rank is."""
    rank, size = rank_and_size(os.environ)
    asked = sys.argv[1:]
    facts = {
        "rank": rank,
        "size": size,
        "host": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "cpus": sorted(os.sched_getaffinity(0)),
    }
    if asked:
        try:
            if asked[0] == "horovod":
                facts["horovod"] = horovod_exchange()
            else:
                facts["torch"] = torch_exchange(facts, float(asked[1]), Path(asked[2]))
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())
            if type(error).__name__ == "ProgramError":  # a sentence of the harness
                words = str(error)
            facts[f"{asked[0]}_error"] = words[:400]
    say(facts)
    if asked[:1] == ["torch"]:
        sys.stderr.flush()
        os._exit(0)  # taking Gloo down may hang (harness.torch_ranks.end)


if __name__ == "__main__":
    main()
