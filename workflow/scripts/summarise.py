"""Summarise the finished runs of a plan: one row each, as Parquet."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("summarise")
