"""What a rank finds on a site: host, CPUs, versions, GPUs, the results folder, the other ranks.

    python site_probe.py FOLDER [horovod | torch]

The doctor starts it as the program of a run: under the site's Python, through its launcher. Prints
``@doctor`` and a JSON object in one line. With a framework, all ranks add up their numbers through
it. Standard library and, if asked for, NumPy and the framework only, for any version of Python.
"""

import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
MEET_S = 20.0  # how long ranks of PyTorch wait for each other
TOKEN = "here"  # a file in the folder
PACKAGES = {"horovod": ["numpy", "tensorflow", "horovod.tensorflow"], "torch": ["numpy", "torch"]}


def words(error):
    """An error in one line."""
    kind = "" if type(error).__name__ == "ProgramError" else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())[:400]


def gpus():
    """Names of the GPUs that nvidia-smi shows, or its error."""
    if shutil.which("nvidia-smi") is None:
        return []
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return words(error)
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return f"nvidia-smi: {[*said, done.returncode][0]}" if done.returncode else said


def horovod_facts():
    """What Horovod exchanges through, GPUs of TensorFlow, and the sum of the ranks' numbers."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    total = hvd.allreduce(tf.constant(hvd.rank() + 1.0), op=hvd.Sum, name="doctor")
    return {
        "nccl": bool(hvd.nccl_built()),
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "size": hvd.size(),
        "sum": float(total.numpy()),
        "on": "MPI" if hvd.mpi_enabled() else "Gloo",
    }


def torch_facts(folder):
    """What PyTorch exchanges through, its GPUs, and the sum of the ranks' numbers (from 1)."""
    sys.path.insert(0, str(BENCHMARKS))
    import torch
    import torch.distributed as dist

    from harness import torch_ranks
    from harness.rendezvous import place_of

    place = torch_ranks.connect(place_of().size, 0, 0, folder, MEET_S)
    total = torch.tensor([place.rank + 1.0], device=torch_ranks.device())
    dist.all_reduce(total)
    return {
        "nccl": dist.is_nccl_available(),
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "size": dist.get_world_size(),
        "sum": total.item(),
        "on": torch_ranks.exchange()["backend"],
    }


def main():
    """Print what this rank finds."""
    # The file alone: importing the package would set variables.
    sys.path.insert(0, str(BENCHMARKS / "harness"))
    from rank_variables import rank_of

    sys.path.pop(0)
    folder, kind = Path(sys.argv[1]), (sys.argv[2:] or [""])[0]
    facts = {
        "rank": rank_of(os.environ),
        "host": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "python": f"{sys.version.split()[0]} ({sys.executable})",
        "gpus": gpus(),
        "versions": {},
        "wrong": {},
    }
    try:
        facts["token"] = (folder / TOKEN).read_text()
    except OSError as error:
        facts["folder_error"] = f"{folder}: {error.strerror}"
    for name in PACKAGES.get(kind, ["numpy"]):
        try:
            importlib.import_module(name)
            package = sys.modules[name.partition(".")[0]]
            facts["versions"][name] = str(getattr(package, "__version__", "of unknown version"))
        except Exception as error:
            facts["wrong"][name] = words(error)
    if kind and not facts["wrong"]:
        try:
            facts["exchange"] = horovod_facts() if kind == "horovod" else torch_facts(folder)
        except Exception as error:
            facts["exchange_error"] = words(error)
    print("@doctor " + json.dumps(facts), flush=True)
    if kind == "torch":
        sys.stderr.flush()
        os._exit(0)  # taking Gloo down may hang (harness.torch_ranks.end)


if __name__ == "__main__":
    main()
