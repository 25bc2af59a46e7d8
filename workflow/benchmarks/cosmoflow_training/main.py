"""Train CosmoFlow's network to a target error: ``cosmoflow_training --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 broken data or a loss that is not finite, 66 missing data, 69
what this machine or TensorFlow cannot do.
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
    shape, layers = params["sample_shape"], params["conv_layers"]
    target, shuffle = params["target_mae"], params["shuffle"]
    edges, factors = params["decay_epochs"], params["decay_factors"]
    rules = [
        (
            min(shape[:3]) < 2**layers,
            f"{layers} conv_layers, each of which halves the edges, leave nothing of sample_shape"
            f" {shape}: use fewer, or larger samples",
        ),
        (
            params["cache"] == "memory" and shuffle != "off",
            f"cache memory reads files in the first epoch only: shuffle must be off, not {shuffle}",
        ),
        (
            target is not None and params["validation_samples_per_rank"] == 0,
            f"target_mae {target} is an error over validation samples:"
            " validation_samples_per_rank must not be 0",
        ),
        (
            target is not None and params["input"] == "dummy",
            f"target_mae {target}: the error of input dummy means nothing, use tfrecords",
        ),
        (
            edges != sorted(set(edges)) or len(edges) != len(factors),
            f"decay_epochs {edges} must ascend, with as many decay_factors as there are"
            f" epochs, not {factors}",
        ),
    ]
    for is_wrong, message in rules:
        if is_wrong:
            raise ProgramError(EXIT_PARAMETERS, message)


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from cosmoflow_training.benchmark import CosmoFlow

    return CosmoFlow


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("cosmoflow_training", check_parameters, load, arguments)
