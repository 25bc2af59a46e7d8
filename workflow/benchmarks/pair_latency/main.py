"""Time messages between every two ranks: ``pair_latency --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 ranks that cannot reach each other.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark


def check_parameters(params: dict[str, Any]) -> None:
    """Take all parameters: none depends on another."""


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from pair_latency.benchmark import PairLatency

    return PairLatency


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("pair_latency", check_parameters, load, arguments)
