"""Time copies: ``copy_bandwidth --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 GPUs or memory that are not to be had here.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    sizes = params["sizes"]
    if not sizes or sizes != sorted(set(sizes)):
        raise ProgramError(EXIT_PARAMETERS, f"sizes must be in increasing order, not {sizes}")
    between = params["direction"] in ("host_to_device", "device_to_host")
    if params["host_memory"] == "pinned" and not between:
        raise ProgramError(EXIT_PARAMETERS, "host_memory is of copies between host and GPU")
    if params["direction"] == "device_to_device" and params["ranks"] > 1:
        raise ProgramError(EXIT_PARAMETERS, "device_to_device is between GPUs of one process")


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from copy_bandwidth.benchmark import CopyBandwidth

    return CopyBandwidth


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("copy_bandwidth", check_parameters, load, arguments)
