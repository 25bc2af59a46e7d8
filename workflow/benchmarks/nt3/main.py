"""Train NT3's 1-D CNN on tables that every rank loads: ``nt3 --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 a broken table or a loss that is not finite, 66 no table, 69 a
package that is not installed or another memory mode.
"""

from typing import Any

from harness import program
from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError
from nt3 import loading


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    shared = {"epochs": "total_epochs", "samples": "train_samples"}.get(params["partition"])
    if shared:
        program.require_divides(params, "ranks", shared)
    number = "train_samples of a rank"
    per_rank = {number: loading.rows_of_rank(params), "batch_size": params["batch_size"]}
    program.require_divides(per_rank, "batch_size", number)
    length = params["features"]
    for kernel, pool in zip(params["kernels"], params["pools"], strict=True):
        length = (length - kernel + 1) // pool
    if length < 1:
        raise ProgramError(
            EXIT_PARAMETERS,
            f"kernels {params['kernels']} and pools {params['pools']} leave nothing of"
            f" {params['features']} features",
        )
    if params["target_accuracy"] is not None and not params["validate"]:
        raise ProgramError(
            EXIT_PARAMETERS, "target_accuracy is an accuracy of validation: validate must be true"
        )


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from nt3.benchmark import NT3

    return NT3


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("nt3", check_parameters, load, arguments)
