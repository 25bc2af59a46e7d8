"""Import a published table, with a map of what its columns mean, and report on it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("import_table")
