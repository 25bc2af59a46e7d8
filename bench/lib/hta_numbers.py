"""What HolisticTraceAnalysis says of folders of traces, as JSON; runs in its own environment.

PYTHON bench/lib/hta_numbers.py RESULT FOLDER...
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def numbers(folder: str) -> dict[str, Any]:
    """Rows of its tables, times in microseconds; a text where it cannot make one."""
    # All steps: without this it leaves the last one out.
    analysis = import_module("hta.trace_analysis").TraceAnalysis(
        trace_dir=folder, include_last_profiler_step=True
    )
    tables: dict[str, Callable[[], Any]] = {
        "temporal": lambda: analysis.get_temporal_breakdown(visualize=False),
        "overlap": lambda: analysis.get_comm_comp_overlap(visualize=False),
        "idle": lambda: analysis.get_idle_time_breakdown(
            ranks=list(analysis.t.traces), visualize=False
        )[0],
    }
    said: dict[str, Any] = {}
    for name, make in tables.items():
        try:
            said[name] = json.loads(make().to_json(orient="records"))
        except Exception as error:  # whatever another program raises
            said[name] = f"{type(error).__name__}: {error}"[:200]
    return said


def main() -> int:
    """Write the numbers of each folder."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    said: dict[str, Any] = {}
    for folder in sys.argv[2:]:
        try:
            said[folder] = numbers(folder)
        except Exception as error:
            said[folder] = f"{type(error).__name__}: {error}"[:200]
    Path(sys.argv[1]).write_text(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
