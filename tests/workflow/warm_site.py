"""A site whose Pythons start the benchmarks' programs with TensorFlow or PyTorch at hand.

Campaigns of real training start a process per rank and run, and importing the framework takes most
of it. Where what is tested is not that start, they use this site; test_readme.py and tests/slurm
use the real one.
"""

import sys
from pathlib import Path

import yaml

from tests.benchmarks.programs import PYTORCH, TENSORFLOW, warm_socket
from tests.benchmarks.warm import __file__ as warm_file
from tests.conftest import Project
from tests.fakes.torch_python import TORCH

# ``benchmarks`` is the folder that declarations call {benchmarks}: runs, and making
# TFRecords. What else is asked of the site's Python (launchers, tables) is done by the real one,
# but for a script of a test.
SCRIPT = r"""#!/bin/bash
if [[ "$1 $2 $3" =~ /workflow/benchmarks.(.*--run|c.*\.dataset.--out)$ ]]; then
    {first}
elif [[ "$1" != "{script}" ]]; then
    exec "{python}" "$@"
fi
exec "{python}" -IS "{warm}" "{socket}" "$@"
"""


def start_warm(project: Project, torch: bool) -> Project:
    """Let the site ``local`` of this copy of the project start its programs so, those of PyTorch
    if any are; returns it. Two runs at a time wait less; one worker stages data without a server
    of its own that imports TensorFlow."""
    tensorflow = write_python(project.path / "warm_python", sys.executable, TENSORFLOW)
    warm_torch = torch and write_python(project.path / "warm_torch", TORCH, PYTORCH)
    site = Path(project.path, "config", "sites", "local.yaml")
    declared = yaml.safe_load(site.read_text())
    declared["python"] = {"tensorflow": str(tensorflow), "torch": str(warm_torch or TORCH)}
    site.write_text(yaml.safe_dump(declared | {"concurrent_runs": 2, "stage_workers": 1}))
    return project


def write_python(path: Path, python: Path | str, kind: str, script: Path = Path("none.py")) -> Path:
    """Write what stands for an interpreter of the site; return its path. It starts ``script`` in
    that way too, and, if it is there, programs of the benchmarks by it."""
    first = f'set -- "{script}" "$@"' if script.exists() else "shift"
    words = {"python": python, "warm": warm_file, "socket": warm_socket(kind)}
    path.write_text(SCRIPT.format(first=first, script=script, **words))
    path.chmod(0o755)
    return path
