"""Train CosmoFlow's network to a target error: ``main.py --run FILE``, once per rank.

Per epoch, on every rank: barrier, training on the rank's own samples, barrier, validation, barrier
(`harness.training`). Pipelines are opened and destroyed inside these times. Exit codes: 2 wrong
parameters, 65 broken data or a loss that is not finite, 66 missing data, 69 what this machine or
TensorFlow cannot do.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from data_loading import files
from harness import facts, import_without, program, result
from harness.mllog import MLLog
from harness.phases import Phases, since_start
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


def configure(params: dict[str, Any], seed: int) -> None:
    """Start Horovod and TensorFlow; set seeds, precision and determinism."""
    import tensorflow as tf
    from harness import ranks, training

    training.start(params)
    training.set_seeds(seed, ranks.rank())
    tf.keras.mixed_precision.set_global_policy(params["precision"])
    if params["deterministic"] and tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


def own_bytes(run: program.Run, seed: int) -> dict[str, float]:
    """Return the bytes of this rank's files by split; ProgramError on all when sizes are wrong.

    Asked for only after training: before, it would warm a parallel file system's caches.
    """
    import inputs
    from harness import ranks

    names = inputs.names_of_rank(run.params, run.data, ranks.rank(), 0, seed)
    sizes = {split: sum(Path(n).stat().st_size for n in each) for split, each in names.items()}
    every = [name for each in names.values() for name in each]
    ranks.raise_together(files.wrong_size(run.params, every, sum(sizes.values())))
    return sizes


def finish(run: program.Run, trainer: Any, history: Any, phases: Phases, seed: int) -> None:
    """Gather from all ranks (phase teardown) and write the result on rank 0."""
    import tensorflow as tf
    from harness import ranks, training

    params = run.params
    dummy = params["input"] == "dummy"
    with phases("teardown"):
        size = None if dummy else ranks.gather(np.array(float(own_bytes(run, seed)["train"])))
        if dummy:  # its errors mean nothing
            history.values.clear()
        arrays = history.arrays()
        devices = tf.config.get_visible_devices("GPU") or tf.config.get_visible_devices("CPU")
        threads = (params["inter_threads"], params["intra_threads"])
        known = ranks.gather_json(
            [facts.rank_facts(*threads, ranks.first_on_host()), devices[0].device_type]
        )
    if ranks.rank() != 0:
        return
    samples = params["ranks"] * params["samples_per_rank"]
    work = {
        "samples_per_epoch": samples,
        "samples": samples * len(history.total),
        "phases": ["training"],
    }
    result.write_result(
        run.out,
        phases=phases,
        work=work if size is None else work | {"bytes_per_epoch": int(size.sum())},
        ranks=[each for each, _ in known],
        versions=facts.versions(),
        variables=facts.variables(),
        samples=arrays,
        metrics=training.training_metrics(arrays, samples, history.target_at, trainer.model),
        notes={
            "horovod": ranks.facts_about_horovod(),
            "devices": [device for _, device in known],
            "batch": {"global": params["ranks"] * params["batch_size"]},
            "learning_rate": {"base": trainer.schedule.base, "peak": trainer.schedule.peak},
            "run_seed": seed,
        },
    )


def main(run: program.Run) -> None:
    """Run the benchmark on this rank. Raises ProgramError, with its exit code, on known trouble."""
    import_without("pandas", "scipy", "PIL")
    import inputs
    import mlperf
    from harness import ranks, training
    from trainer import Trainer

    params = run.params
    phases = Phases()
    phases.add("import", since_start())
    seed = run.seed
    with phases("init"):
        configure(params, seed)
    log = MLLog(run.out / "mlperf.log" if ranks.rank() == 0 else None)
    mlperf.begin(log, params, seed)
    success = False
    try:
        with phases("data_staging"):
            reads = params["input"] != "dummy"
            problem = files.find_missing(run) if reads and ranks.rank() == 0 else None
            ranks.raise_together(problem)
        with phases("build"):
            trainer = Trainer(params, inputs.make(params, run.data, ranks.rank(), seed))
        mlperf.optimizer(log, params, trainer.schedule)
        with phases("broadcast"):
            training.broadcast(trainer.model, trainer.optimizer)
        validates = reads and params["validation_samples_per_rank"] > 0
        history = trainer.run(phases, mlperf.listener(log, validates))
        success = history.target_at is not None
    finally:
        log.end("run_stop", status="success" if success else "aborted")
        log.close()
    finish(run, trainer, history, phases, seed)
    ranks.stop()


if __name__ == "__main__":
    sys.exit(program.run_program("cosmoflow_training", main, check_parameters))
