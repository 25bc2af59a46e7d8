"""Wait for the jobs of earlier Snakemake calls that are at work on runs of a campaign."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("adopt")
