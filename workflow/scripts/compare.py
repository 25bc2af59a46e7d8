"""Compare two campaigns, sites or results folders: one HTML page, and tables of every number."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("compare")
