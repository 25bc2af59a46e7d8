"""Time matrix products and convolutions: ``compute_peak --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 what TensorFlow cannot do here or not in time.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    if params["sizes"] != sorted(set(params["sizes"])) or not params["sizes"]:
        raise ProgramError(
            EXIT_PARAMETERS, f"sizes must be in increasing order, not {params['sizes']}"
        )
    if params["operation"] == "matmul" and params["data_format"] != "NHWC":
        raise ProgramError(EXIT_PARAMETERS, "data_format is for operation convolution only")


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from compute_peak.benchmark import ComputePeak

    return ComputePeak


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("compute_peak", check_parameters, load, arguments)
