"""Look at points that are measured until they are precise, and plan their next repeats."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("look")
