"""OSU Micro-Benchmarks' other latencies: messages between two ranks, one-sided ones, barriers, and
the collectives to which no network is fitted.

Each table becomes a run of a benchmark that an import makes, ``osu_latency``: what is timed follows
from its test alone, and between tests nothing compares. Messages of no bytes are left out of the
times by size, as they are of every table.
"""

import re
from collections.abc import Sequence
from typing import Any

from scalesweep.importers.made_benchmark import Made, parameter_entry

BENCHMARK = "osu_latency"
MADE = Made(
    "Latencies by OSU Micro-Benchmarks: messages, barriers, and collectives of other kinds.",
    {
        "test": parameter_entry("string", "The test, as the program prints it.", None, True),
        "launch_options": parameter_entry("string", "Options of the command.", None, False),
    },
    {
        "latency": {
            "definition": "time of the smallest message of one byte or more; of a barrier",
            "kind": "latency",
        },
        "largest_time": {"definition": "time of the largest message", "kind": "latency"},
    },
)
# Of whatever else a line of a table's heading states (buffers on a GPU, windows) runs are no
# repeats; these say nothing of the kind.
PLAIN = re.compile(r"^#(?: Datatype: MPI_CHAR\.)?\s*$")
COLUMNS = re.compile(r"^# (?:Size\s+)?(?:Avg )?Lat(?:ency)? ?\(us\)(?:\s|$)")
BARRIER = re.compile(r"\bBarrier\b")
# These run on two ranks, and on no other number (c/mpi/pt2pt, c/mpi/one-sided).
_OF_TWO = re.compile(
    r"^MPI(?:-\w+)? Latency$|^MPI_(?:Put|Get|Accumulate|Get_accumulate|Fetch_and_op"
    r"|Compare_and_swap)(?:-\w+)? latency$",
    re.IGNORECASE,
)


def is_latency(test: str) -> bool:
    """Whether a test times calls (and not bandwidth, message rate, or overlap with computation)."""
    return test.lower().endswith(" latency") and "non-blocking" not in test.lower()


def ranks_of(test: str) -> int | None:
    """The number of ranks that a test always has; None where it may have any."""
    return 2 if _OF_TWO.match(test) else None


def metrics_of(seconds: Sequence[float], sizes: Sequence[int]) -> dict[str, dict[str, Any]]:
    """The metrics of a table's times by size, or of the one time of a barrier."""
    metrics = {"latency": seconds[0]} | ({"largest_time": seconds[-1]} if sizes else {})
    return {
        name: {"value": value, "unit": "s", "better": "lower", "scope": "total"}
        for name, value in metrics.items()
    }
