"""Time matrix products in PyTorch: ``torch_peak --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 what PyTorch cannot do here or not in time.
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


def load() -> type[Benchmark]:
    """Import the benchmark, and PyTorch with it."""
    from torch_peak.benchmark import TorchPeak

    return TorchPeak


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("torch_peak", check_parameters, load, arguments, framework="torch")
