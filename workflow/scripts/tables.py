"""Make the tables of every experiment from the summary: CSV and Parquet, LaTeX for papers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("tables")
