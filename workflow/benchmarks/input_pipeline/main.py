"""Time one of nine input pipelines: ``input_pipeline --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 broken data, 66 missing.
"""

from typing import Any

from harness import program
from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    for divisor in ("batch_size", "samples_per_file"):
        program.require_divides(params, divisor, "samples_per_rank")
    if params["pipeline"] == "cached" and params["shard"] != "before_shuffle":
        raise ProgramError(
            EXIT_PARAMETERS,
            "pipeline cached keeps the samples of the first epoch: shard must be before_shuffle,"
            f" not {params['shard']}",
        )
    if params["pipeline"] == "processes" and params["shard"] == "after_reading":
        raise ProgramError(
            EXIT_PARAMETERS,
            "pipeline processes makes each sample in the order that it draws: shard must be"
            " before_shuffle or after_shuffle, not after_reading",
        )


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from input_pipeline.benchmark import InputPipeline

    return InputPipeline


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("input_pipeline", check_parameters, load, arguments)
