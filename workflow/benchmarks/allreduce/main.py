"""Time a collective over message sizes: ``allreduce --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 what this machine cannot do in time.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when sizes are none of float32 in order."""
    if (sizes := params["sizes"]) is None:
        return
    if not sizes or sizes != sorted(set(sizes)):
        raise ProgramError(EXIT_PARAMETERS, f"sizes must be in increasing order, not {sizes}")
    if odd := [size for size in sizes if size % 4]:
        raise ProgramError(EXIT_PARAMETERS, f"sizes: {odd[0]} is not a multiple of 4 bytes")


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from allreduce.benchmark import Collective

    return Collective


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("allreduce", check_parameters, load, arguments)
