"""How the doctor words what a Python has: itself, what a framework was built with, what it lacks.

Standard library only.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.compute.doctor.checks import FAILED, Check

BUILDS = {"mpi": "MPI", "gloo": "Gloo", "nccl": "NCCL"}


def python_text(facts: Mapping[str, Any]) -> str:
    """A Python with its NumPy."""
    numpy = f", NumPy {facts['numpy']}" if facts["numpy"] else ", without NumPy"
    return f"{facts['python']} ({facts['executable']}){numpy}"


def built_with(built: Mapping[str, Any]) -> str:
    """What a framework exchanges data with, and what it cannot."""
    has = [name for key, name in BUILDS.items() if built[key]]
    lacks = [name for key, name in BUILDS.items() if not built[key]]
    if not has:
        return "built with none of MPI, Gloo and NCCL"
    return f"built with {', '.join(has)}" + (f", without {', '.join(lacks)}" if lacks else "")


def absent(name: str, why: str, site_file: str) -> Check:
    """A package that is not there, which the campaign needs."""
    gone = why.startswith(("ModuleNotFoundError", "ImportError: No module"))
    mend = f"install it for this Python, or name another in {site_file} (python, prologue)"
    return Check(name, FAILED, "not installed" if gone else why, mend)
