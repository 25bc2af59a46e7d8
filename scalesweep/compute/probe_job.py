"""The doctor's probe where runs are: in a Slurm job, or on this machine.

    python -I -S probe_job.py PROBE

Starts it as the program of a run is, and leaves in its folder what it prints, and why it failed.
Standard library only.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.compute.job_spec import Start
from scalesweep.compute.program import run_apart
from scalesweep.core.files import write_atomic

LOG, OUTCOME = "probe.log", "outcome"
PROBE_S = 45.0  # of one probe; it imports a framework


class Probe(Start):
    """A program to start in ``folder``."""

    folder: str
    argv: list[str]


def carry_out(probe: Probe) -> None:
    """Start a probe, and leave why it failed, or an empty file."""
    work = Path(probe["folder"])
    work.mkdir(parents=True, exist_ok=True)
    write_atomic(work / OUTCOME, run_apart(probe, probe["argv"], work, LOG, PROBE_S))


if __name__ == "__main__":
    carry_out(json.loads(Path(sys.argv[1]).read_bytes()))
