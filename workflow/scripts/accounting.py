"""Ask Slurm's accounting for the jobs of a campaign: one row each, as CSV."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("accounting")
