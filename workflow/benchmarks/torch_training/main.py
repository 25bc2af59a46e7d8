"""Time the training steps of a network in PyTorch: ``torch_training --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 a loss that is not finite or broken data, 66 missing data, 69
something that this machine or PyTorch cannot do.
"""

from typing import Any

from harness.frame import Make, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError, require_divides


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) where the program would do another thing than it is asked to."""
    by_others = params["tp"] * params["pp"]
    if params["ranks"] % by_others:
        raise ProgramError(
            EXIT_PARAMETERS, f"tp x pp = {by_others} does not divide ranks {params['ranks']}"
        )
    if params["model"] == "transformer":
        require_divides(params, "heads", "width")
    if params["data_parallel"] == "fsdp2":
        raise ProgramError(EXIT_PARAMETERS, "data_parallel fsdp2 is not built yet: use ddp or none")
    for name in ("tp", "pp"):
        if params[name] > 1:
            raise ProgramError(EXIT_PARAMETERS, f"{name} {params[name]} is not built yet: use 1")


def load() -> Make:
    """Import the benchmark, and PyTorch with it."""
    from torch_training.benchmark import TorchTraining

    return TorchTraining


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("torch_training", check_parameters, load, arguments, framework="torch")
