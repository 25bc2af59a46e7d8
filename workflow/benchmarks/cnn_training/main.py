"""Time the training steps of a CNN: ``main.py --run FILE``, once per rank.

Each step ends when its loss is known to the program, and is timed on every rank. All ranks meet
before the first timed step and after the last one. Exit codes: 2 wrong parameters, 65 a loss that
is not finite or broken data, 66 missing data, 69 something that this machine or TensorFlow cannot
do.
"""

import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import facts, import_without, program, result
from harness.phases import Phases, since_start
from harness.program import (
    EXIT_BAD_DATA,
    EXIT_MISSING_DATA,
    EXIT_PARAMETERS,
    EXIT_UNSUPPORTED,
    ProgramError,
)

LACKING = re.compile("support|not implemented|no registered", re.IGNORECASE)
ALL_REDUCES = {
    "replicated": ("auto", "hierarchical_copy", "reduction_to_one", "nccl"),
    "collective_all_reduce": ("auto", "ring", "nccl"),
}
Taken = tuple[np.ndarray, np.ndarray]  # seconds and losses of steps


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


def take_steps(trainer: Any, kind: str, steps: int, params: dict[str, Any]) -> tuple[Taken, Any]:
    """Take steps; return what they gave and, with its exit code, what went wrong, else None.

    `kind` of steps is for messages. Raises ProgramError at once when this rank's data are bad, and
    as it is whatever is not known to be a lack of support or a loss that is not finite.
    """
    import tensorflow as tf

    if trainer.run is None or not steps:
        nothing = np.empty((0, params["ranks"]) if trainer.drives_all else 0)
        return (nothing, nothing), None
    try:
        times, losses = trainer.run(steps)
    except tf.errors.OpError as error:
        if params["input"] != "synthetic" and (problem := bad_data(error)):
            raise ProgramError(*problem) from None
        if (problem := lack_of_support(params, error)) is None:
            raise
        return (np.empty(0), np.empty(0)), problem
    wrong = np.argwhere(~np.isfinite(losses))
    if not len(wrong):
        return (times, losses), None
    first = wrong[0][0]
    return (times, losses), (
        EXIT_BAD_DATA,
        f"training diverged: the loss is {losses[first].min()} in {kind} step {first + 1}"
        f" (learning_rate {params['learning_rate']}, precision {params['precision']})",
    )


def lines(error: Exception) -> list[str]:
    """Return what TensorFlow's error says, less the lines that say where in the code."""
    every = [line.strip() for line in error.message.splitlines()]
    return [line for line in every if line and not line.startswith(('File "', "[[{{"))]


def bad_data(error: Exception) -> tuple[int, str] | None:
    """Return exit code and message if reading images failed because of them, else None."""
    import tensorflow as tf

    message = f"input: {lines(error)[-1]}"
    if isinstance(error, tf.errors.DataLossError):
        return EXIT_BAD_DATA, message
    if "IteratorGetNext" in error.message:
        if isinstance(error, tf.errors.NotFoundError):
            return EXIT_MISSING_DATA, message
        if isinstance(error, tf.errors.InvalidArgumentError):
            return EXIT_BAD_DATA, message
    return None


def lack_of_support(params: dict[str, Any], error: Exception) -> tuple[int, str] | None:
    """Return exit code and message if TensorFlow has no code for what was asked, else None.

    Told by one line of TensorFlow's message that speaks of support, and of what is not supported.
    """
    import tensorflow as tf

    kinds = (
        tf.errors.UnimplementedError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    )
    if not isinstance(error, kinds):
        return None
    signs = {
        "data_format": ("nchw", "nhwc") if params["data_format"] == "NCHW" else (),
        "precision": {"mixed_float16": ("half", "float16"), "mixed_bfloat16": ("bfloat16",)}.get(
            params["precision"], ()
        ),
        "xla": ("xla",) if params["xla"] else (),
    }
    for line in filter(LACKING.search, lines(error)):
        for name, words in signs.items():
            if any(word in line.lower() for word in words):
                return EXIT_UNSUPPORTED, f"{name} {params[name]}: {line}"
    return None


def bad_weights(trainer: Any) -> tuple[int, str] | None:
    """Return exit code and message if a weight is not finite: a loss can be finite all the same."""
    import tensorflow as tf

    for variable in (variable for copy in trainer.copies for variable in copy):
        with tf.device(variable.device):
            if not tf.reduce_all(tf.math.is_finite(variable)):
                return EXIT_BAD_DATA, "training diverged: not all weights are finite"
    return None


def everyone(trainer: Any, values: np.ndarray) -> np.ndarray | None:
    """Return ``[step, rank]`` on rank 0, from what it or every rank has measured; else None."""
    from harness import ranks

    if trainer.drives_all:
        return values if ranks.rank() == 0 else None
    return ranks.gather(values)


def notes(params: dict[str, Any], trainer: Any, devices: list[list[str]]) -> dict[str, Any]:
    """Return what a reader of the numbers should know about how they came about."""
    from harness import ranks

    workers = params["ranks"] * params["devices_per_rank"]
    return {
        "mode": {
            "synchronous": trainer.synchronous,
            "strategy": trainer.strategy,
            "all_reduce": trainer.all_reduce,
            "communication": trainer.communication,
            "step_times": trainer.step_times,
        },
        "devices": devices,
        "batch": {
            "global": workers * params["batch_size"],
            "per_device": params["batch_size"],
        },
        "weights": {
            "trainable": count(trainer.model.trainable_variables),
            "all": count(trainer.model.variables),
        },
        "horovod": ranks.facts_about_horovod(),
    }


def count(variables: list[Any]) -> int:
    """Return the number of values in variables."""
    return sum(int(np.prod(variable.shape)) for variable in variables)


def main(run: program.Run) -> None:
    """Run the benchmark on this rank. Raises ProgramError, with its exit code, on known trouble."""
    import_without("pandas", "scipy", "PIL")
    import cluster
    import metrics
    import updates
    from harness import ranks

    params = run.params
    phases = Phases()
    phases.add("import", since_start())
    with phases("init"):
        place = cluster.join(params)
        trainer = updates.make(params, place, run.data)
    with phases("warmup"):
        warmup, problem = take_steps(trainer, "warm-up", params["warmup_batches"], params)
        ranks.raise_together(problem)
    with phases("timed"):
        ranks.barrier()
        began = time.perf_counter()
        timed, problem = take_steps(trainer, "timed", params["batches"], params)
        ranks.raise_together(problem)
        wall = time.perf_counter() - began
    with phases("teardown"):
        ranks.raise_together(bad_weights(trainer))
        arrays = {
            "warmup_step_times": everyone(trainer, warmup[0]),
            "step_times": everyone(trainer, timed[0]),
            "loss": everyone(trainer, timed[1]),
        }
        about = [facts.rank_facts(*place.threads, place.first_on_host), place.names()]
        known = ranks.gather_json(about)
    if ranks.rank() == 0:
        images = params["devices_per_rank"] * params["batch_size"]
        names = ("step_times", "warmup_step_times", "loss")
        found = metrics.metrics(*(arrays[name] for name in names), wall, images)
        found["model_parameters"] = {
            "value": float(count(trainer.model.trainable_variables)),
            "unit": "parameters",
            "better": "lower",
            "scope": "rank",
        }
        result.write_result(
            run.out,
            phases=phases,
            work={"samples_per_epoch": params["ranks"] * images * params["batches"]},
            ranks=[each for each, _ in known],
            versions=facts.versions(),
            variables=facts.variables(),
            samples=arrays,
            metrics=found,
            notes=notes(params, trainer, [devices for _, devices in known]),
        )
    ranks.stop()


if __name__ == "__main__":
    sys.exit(program.run_program("cnn_training", main, check_parameters))
