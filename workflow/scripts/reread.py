"""Re-read the logs of external programs where the patterns of their benchmark have changed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("reread")
