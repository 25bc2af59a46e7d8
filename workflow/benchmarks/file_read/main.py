"""Read files block by block: ``file_read --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 a file that is shorter than it must be, 66 missing.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    readers = params["readers"]
    if not readers or readers != sorted(set(readers)):
        raise ProgramError(EXIT_PARAMETERS, f"readers must be in increasing order, not {readers}")
    if params["block_kib"] > params["file_mib"] * 1024:
        raise ProgramError(
            EXIT_PARAMETERS,
            f"block_kib {params['block_kib']} is more than file_mib {params['file_mib']} holds",
        )


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from file_read.benchmark import FileRead

    return FileRead


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("file_read", check_parameters, load, arguments)
