"""Calls of Snakemake whose processes are forked from one that has imported what they need.

Snakemake and the scripts of the rules that come after the runs import Snakemake, pandas, SciPy and
Matplotlib, which takes most of a small campaign. See tests/benchmarks/warm.py.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

# What else is asked of Snakemake's Python is done by the real one: launches, their programs.
PYTHON = """#!/bin/bash
steps="inventory|accounting|summarise|tables|figures|page|session"
if [[ "$1 $2" =~ ^-m.(snakemake|scalesweep)$|/workflow/scripts/step.py.($steps)$ ]]; then
    WARM_EXECUTABLE="$0" exec "{python}" -IS "{warm}" "{socket}" "$@"
fi
exec "{python}" "$@"
"""


@cache
def _python() -> "tempfile.TemporaryDirectory[str]":
    """Folder of the interpreter for Snakemake and what it starts; it ends with this process."""
    from tests.benchmarks import programs, warm  # not for tests that call no Snakemake

    folder = tempfile.TemporaryDirectory(prefix="python-")
    path = Path(folder.name, "python")
    socket = programs.warm_socket("scripts")
    path.write_text(PYTHON.format(python=sys.executable, warm=warm.__file__, socket=socket))
    path.chmod(0o755)
    return folder


def python() -> str:
    """The interpreter for ``-m snakemake``."""
    return f"{_python().name}/python"


def call(
    module: str, words: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: int
) -> "CompletedProcess[str]":
    """Do what `python -m MODULE WORDS` does, of snakemake or scalesweep: exit code and output;
    killed after so long."""
    return subprocess.run(
        [python(), "-m", module, *words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
