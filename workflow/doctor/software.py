"""Say what software this Python has, one line of JSON on standard output.

    python software.py [PACKAGE...]

Of numpy, tensorflow, horovod and torch; the first three without names. Each is imported, which
takes seconds.

Standard library only, and whatever version of Python a site has. A package that is not there or
breaks when it is imported is told by its error.
"""

import importlib
import json
import sys


def version_of(name, facts):
    """Import a package; its version, or None with the error in `facts`."""
    try:
        return str(getattr(importlib.import_module(name), "__version__", "of unknown version"))
    except Exception as error:
        facts[name] = " ".join(f"{type(error).__name__}: {error}".split())
        return None


def torch_build():
    """What PyTorch exchanges data with, and the GPUs that it can use here."""
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    there = dist.is_available()
    return {
        "distributed": there,
        "gloo": there and dist.is_gloo_available(),
        "nccl": there and dist.is_nccl_available(),
        "mpi": there and dist.is_mpi_available(),
        "cuda": torch.version.cuda or getattr(torch.version, "hip", None),
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    }


def main():
    """Print the versions, and what Horovod or PyTorch were built with."""
    wrong = {}
    asked = sys.argv[1:] or ["numpy", "tensorflow", "horovod"]
    facts = {
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "wrong": wrong,
    }
    for name in ("numpy", "tensorflow", "horovod", "torch"):
        facts[name] = version_of(name, wrong) if name in asked else None
    if facts["tensorflow"] and facts["horovod"]:
        try:
            hvd = importlib.import_module("horovod.tensorflow")
            facts["built"] = {
                "mpi": bool(hvd.mpi_built()),
                "gloo": bool(hvd.gloo_built()),
                "nccl": bool(hvd.nccl_built()),
            }
        except Exception as error:
            wrong["horovod.tensorflow"] = " ".join(f"{type(error).__name__}: {error}".split())
    if facts["torch"]:
        try:
            facts["torch_build"] = torch_build()
        except Exception as error:
            wrong["torch"] = " ".join(f"{type(error).__name__}: {error}".split())
    print("@doctor " + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
