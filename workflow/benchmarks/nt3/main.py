"""Train NT3's 1-D CNN on tables that every rank loads: ``main.py --run FILE``, once per rank.

What the original times is timed apart: loading the tables, preprocessing, training with validation
after each epoch, evaluation. Exit codes: 2 wrong parameters, 65 a broken table or a loss that is
not finite, 66 no table, 69 a package that is not installed or another memory mode.
"""

import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import loading
import memory
from harness import facts, import_without, program, result
from harness.hardware import cpu_model
from harness.phases import Phases, since_start
from harness.program import EXIT_PARAMETERS, EXIT_UNSUPPORTED, ProgramError


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


def look_at_memory(asked: str) -> dict[str, Any]:
    """Return the memory of every host by its name; ProgramError on all if one is in another mode.

    A host is asked by its first rank.
    """
    from harness import ranks

    host = socket.gethostname()
    found = memory.facts(cpu_model()) if ranks.first_on_host() else None
    problem = memory.mismatch(asked, found, host) if found else None
    ranks.raise_together((EXIT_UNSUPPORTED, problem) if problem else None)
    return dict(each for each in ranks.gather_json([host, found]) if each[1])


def finish(
    run: program.Run, data: Any, trainer: Any, history: Any, phases: Phases, notes: dict[str, Any]
) -> None:
    """Evaluate (phase evaluation), gather (teardown) and write the result on rank 0."""
    from harness import ranks, training

    params = run.params
    with phases("evaluation"):
        tested = trainer.tested()
    with phases("teardown"):
        arrays = history.arrays()
        arrays["data_loading_times"] = ranks.gather(np.array([data.local_s]))
        threads = (params["inter_threads"], params["intra_threads"])
        known = ranks.gather_json(facts.rank_facts(*threads, ranks.first_on_host()))
    if ranks.rank() != 0:
        return
    samples = params["ranks"] * loading.rows_of_rank(params)

    def metric(value: float, unit: str, better: str) -> dict[str, Any]:
        return {"value": float(value), "unit": unit, "better": better, "scope": "total"}

    result.write_result(
        run.out,
        phases=phases,
        work={
            "samples_per_epoch": samples,
            "samples": samples * len(history.total),
            "phases": ["training"],
        },
        ranks=known,
        versions=facts.versions(),
        variables=facts.variables(),
        samples=arrays,
        metrics={
            **training.training_metrics(arrays, samples, history.target_at, trainer.model),
            "test_accuracy": metric(tested["accuracy"], "1", "higher"),
            "data_loading_time": metric(data.total_s, "s", "lower"),
            "data_loading_rate": metric(data.bytes / data.total_s, "bytes/s", "higher"),
        },
        notes=notes
        | {
            "loading": {"reader": data.reader, "package": data.package, "file_bytes": data.bytes},
            "batch": {"global": params["ranks"] * params["batch_size"]},
            "learning_rate": {"base": trainer.schedule.base, "peak": trainer.schedule.peak},
            "horovod": ranks.facts_about_horovod(),
        },
    )


def main(run: program.Run) -> None:
    """Run the benchmark on this rank. Raises ProgramError, with its exit code, on known trouble."""
    import_without("pandas", "scipy", "PIL")
    import tables
    from harness import ranks, training
    from trainer import Trainer

    params = run.params
    phases = Phases()
    phases.add("import", since_start())
    seed = run.seed
    with phases("init"):
        training.start(params)
        training.set_seeds(seed, ranks.rank())
        notes = {"run_seed": seed, "memory": look_at_memory(params["memory_mode"])}
    data = tables.Data(run, phases)
    with phases("preprocessing"):
        samples = data.preprocess()
        ranks.barrier()
    with phases("build"):
        trainer = Trainer(params, samples, seed)
    with phases("broadcast"):
        training.broadcast(trainer.model, trainer.optimizer)
        ranks.barrier()
    history = trainer.run(phases)
    finish(run, data, trainer, history, phases, notes)
    ranks.stop()


if __name__ == "__main__":
    sys.exit(program.run_program("nt3", main, check_parameters))
