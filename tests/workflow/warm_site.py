"""A site whose Python starts the benchmarks' programs with TensorFlow at hand.

Campaigns of real training start a process per rank and run, and importing TensorFlow takes most of
it. Where what is tested is not that start, they use this site; test_readme.py and tests/slurm use
the real one.
"""

import re
import sys
from pathlib import Path

from tests.benchmarks.programs import warm_socket
from tests.benchmarks.warm import __file__ as warm_file
from tests.conftest import Project
from tests.fakes.torch_python import TORCH

# ``benchmarks`` is the folder that declarations call {benchmarks}; what else is asked of the site's
# Python (launchers, staging) is done by the real one.
SCRIPT = """#!/bin/bash
if [[ "$1" == */workflow/benchmarks && "$3" == --run ]]; then
    shift
    exec "{python}" -IS "{warm}" "{socket}" "$@"
fi
exec "{python}" "$@"
"""


def start_warm(project: Project) -> Project:
    """Let the site ``local`` of this copy of the project start its programs so; returns it."""
    path = project.path / "warm_python"
    path.write_text(SCRIPT.format(python=sys.executable, warm=warm_file, socket=warm_socket()))
    path.chmod(0o755)
    site = Path(project.path, "config", "sites", "local.yaml")
    text, pythons = re.subn(
        r"(  tensorflow: )null.*\n  torch: \S+", rf"\g<1>{path}\n  torch: {TORCH}", site.read_text()
    )
    assert pythons == 1
    site.write_text(text)
    return project
