"""Time the training steps of a network in PyTorch: ``torch_training --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 a loss that is not finite or broken data, 66 missing data, 69
something that this machine or PyTorch cannot do.
"""

from typing import Any

from harness.frame import Make, run_benchmark
from harness.program import EXIT_PARAMETERS, ProgramError, require_divides
from torch_training import mesh

CUT = ("transformer", "mlp")  # models whose blocks are all the same


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) where the program would do another thing than it is asked to."""
    shape = mesh.shape_of(params)
    if shape.ranks != params["ranks"]:
        sizes = " x ".join(f"{name} {size}" for name, size in shape.sizes.items())
        raise ProgramError(
            EXIT_PARAMETERS, f"{sizes} is {shape.ranks}, but ranks are {params['ranks']}"
        )
    if params["model"] == "transformer":
        require_divides(params, "heads", "width")
        require_divides(params, "tp", "heads")
    if shape.pp * shape.tp > 1 and params["model"] not in CUT:
        raise ProgramError(
            EXIT_PARAMETERS, f"tp and pp cut {' and '.join(CUT)} only, not {params['model']}"
        )
    stages = shape.pp * params["virtual_stages"]
    if params["layers"] % stages:
        raise ProgramError(
            EXIT_PARAMETERS,
            f"pp x virtual_stages = {stages} does not divide layers {params['layers']}",
        )


def load() -> Make:
    """Import the benchmark, and PyTorch with it."""
    from torch_training.benchmark import TorchTraining

    return TorchTraining


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("torch_training", check_parameters, load, arguments, framework="torch")
