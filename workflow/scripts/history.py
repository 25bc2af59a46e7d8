"""Write the page of a history: what became slower or faster, and what changed with it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("history")
