"""Time each layer of a model apart: ``step_layers --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 69 something that TensorFlow cannot do here.
"""

from typing import Any

from harness.frame import Benchmark, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError

OTHERS = ("cosmoflow", "nt3", "lstm", "gru")


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) where the program would do another thing than it is asked to."""
    if params["model"] in OTHERS and params["data_format"] != "NHWC":
        raise ProgramError(
            EXIT_PARAMETERS,
            f"data_format {params['data_format']}: model {params['model']} is there in NHWC only",
        )
    for name in ("rounds", "batch_size"):
        if params[name] < 1:
            raise ProgramError(EXIT_PARAMETERS, f"{name} {params[name]}: must be 1 or more")


def load() -> type[Benchmark]:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from step_layers.benchmark import StepLayers

    return StepLayers


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("step_layers", check_parameters, load, arguments)
