"""Time STREAM's kernels: ``memory_bandwidth --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 arrays that do not fit into memory.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError

LIBRARIES = ("tensorflow", "numpy")


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line for a library that is not known."""
    asked = params["libraries"]
    if not asked or set(asked) - set(LIBRARIES) or len(set(asked)) < len(asked):
        raise ProgramError(
            EXIT_PARAMETERS,
            f"libraries must be some of {', '.join(LIBRARIES)}, each once, not {asked}",
        )


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from memory_bandwidth.benchmark import MemoryBandwidth

    return MemoryBandwidth


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("memory_bandwidth", check_parameters, load, arguments)
