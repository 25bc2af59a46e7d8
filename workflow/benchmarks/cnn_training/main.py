"""Time the training steps of a CNN: ``cnn_training --run FILE``, once per rank.

Exit codes: 2 wrong parameters, 65 a loss that is not finite or broken data, 66 missing data, 69
something that this machine or TensorFlow cannot do.
"""

from typing import Any

from harness.frame import Benchmark, Make, run_benchmark
from harness.phases import Phases
from harness.program import EXIT_PARAMETERS, ProgramError, Run

ALL_REDUCES = {
    "replicated": ("auto", "hierarchical_copy", "reduction_to_one", "nccl"),
    "collective_all_reduce": ("auto", "ring", "nccl"),
}


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) where the program would do another thing than it is asked to."""
    update = params["variable_update"]
    if update == "horovod" and params["devices_per_rank"] > 1:
        raise ProgramError(
            EXIT_PARAMETERS,
            f"variable_update horovod has one device per rank, not {params['devices_per_rank']}",
        )
    if update == "replicated" and params["ranks"] > 1:
        raise ProgramError(
            EXIT_PARAMETERS, f"variable_update replicated is for one rank, not {params['ranks']}"
        )
    allowed = ALL_REDUCES.get(update, ("auto",))
    if params["all_reduce"] not in allowed:
        raise ProgramError(
            EXIT_PARAMETERS,
            f"all_reduce {params['all_reduce']}: variable_update {update} has"
            f" {', '.join(allowed)} only",
        )


def load() -> Make:
    """Import the benchmark, and TensorFlow and Horovod with it."""
    from cnn_training.benchmark import CNNTraining
    from cnn_training.epochs import EpochTraining

    def make(run: Run, phases: Phases) -> Benchmark:
        return (CNNTraining if run.params["epochs"] is None else EpochTraining)(run, phases)

    return make


def main(arguments: list[str]) -> int:
    """Run the program with its command-line arguments and return the exit code."""
    return run_benchmark("cnn_training", check_parameters, load, arguments)
