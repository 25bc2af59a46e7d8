"""The doctor's probe where runs are: in a Slurm job, or on this machine.

    python -I -S probe_job.py PROBE

Starts it as the program of a run is, and leaves what it prints and ``outcome.json`` in its folder.
Standard library only.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.compute.job_spec import PowerOrder, Start
from scalesweep.compute.power.counters import host_name, nothing_here
from scalesweep.compute.program import run_apart
from scalesweep.core.files import write_atomic

LOG, OUTCOME = "probe.log", "outcome.json"
PROBE_S = 45.0  # of one probe; it imports a framework


class Probe(Start):
    """A program to start in ``folder``."""

    folder: str
    argv: list[str]
    power: PowerOrder | None


def carry_out(probe: Probe) -> None:
    """Start a probe, and leave why it failed and why no power can be sampled here: empty if neither
    is so, and None of power that is switched off."""
    work, asked = Path(probe["folder"]), probe["power"]
    work.mkdir(parents=True, exist_ok=True)
    wrong = run_apart(probe, probe["argv"], work, LOG, PROBE_S)
    power = asked and (nothing_here(asked["sysfs"], asked["sources"], host_name()) or "")
    write_atomic(work / OUTCOME, json.dumps({"wrong": wrong, "power": power}))


if __name__ == "__main__":
    carry_out(json.loads(Path(sys.argv[1]).read_bytes()))
