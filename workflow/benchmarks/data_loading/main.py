"""Time how fast every rank reads its share of a data set: ``data_loading --run FILE``, per rank.

Exit codes: 2 wrong parameters, 65 broken data, 66 missing.
"""

from typing import Any

from harness import program
from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    for divisor in ("batch_size", "samples_per_file"):
        for number in ("samples_per_rank", "validation_samples_per_rank"):
            program.require_divides(params, divisor, number)
    if params["cache"] == "memory" and params["shuffle"] != "off":
        raise ProgramError(
            EXIT_PARAMETERS,
            "cache memory reads files in the first epoch only: shuffle must be off,"
            f" not {params['shuffle']}",
        )
    if params["stage_to_node_local"] and params["shard"] and params["shuffle"] == "before_shard":
        raise ProgramError(
            EXIT_PARAMETERS,
            "stage_to_node_local copies one rank's files, but with shard and shuffle before_shard a"
            " rank reads other files each epoch: use shuffle off or after_shard",
        )


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from data_loading.benchmark import DataLoading

    return DataLoading


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("data_loading", check_parameters, load, arguments)
