"""A step of the workflow, as its rules call it: ``step.py VERB --option VALUE ...``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call(sys.argv[1], sys.argv[2:])
