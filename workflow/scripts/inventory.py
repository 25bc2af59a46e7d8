"""Plan a campaign: print it, or write plan.csv and plan.json."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("inventory")
