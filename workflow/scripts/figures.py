"""Draw the figures of every experiment: SVG, PDF and PNG, and an index of them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("figures")
