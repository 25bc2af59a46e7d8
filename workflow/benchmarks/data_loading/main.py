"""Time how fast every rank reads its share of a data set: ``main.py --run FILE``.

Per epoch, on every rank: barrier; start the clock; drain the training and then the validation
batches, touching every sample; `local_time`; barrier; `global_time`. Each epoch's pipelines are
made and destroyed inside the timing. Exit codes: 2 wrong parameters, 65 broken data, 66 missing.
"""

import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import facts, import_without, page_cache, program, result, watch
from harness.epochs import EpochTimes, time_epochs
from harness.phases import Phases, since_start
from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, EXIT_PARAMETERS, ProgramError

from data_loading import dataset
from data_loading.files import files_of_rank, find_missing, paths, wrong_size


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ProgramError (code 2) with one line when parameters do not go together."""
    for divisor in ("batch_size", "samples_per_file"):
        for number in ("samples_per_rank", "validation_samples_per_rank"):
            program.require_divides(params, divisor, number)
    if params["cache"] == "memory" and params["shuffle"] != "off":
        raise ProgramError(
            EXIT_PARAMETERS,
            "cache memory reads files in the first epoch only: shuffle must be off,"
            f" not {params['shuffle']}",
        )
    if params["stage_to_node_local"] and params["shard"] and params["shuffle"] == "before_shard":
        raise ProgramError(
            EXIT_PARAMETERS,
            "stage_to_node_local copies one rank's files, but with shard and shuffle before_shard a"
            " rank reads other files each epoch: use shuffle off or after_shard",
        )


def copy_files(source: Path, target: Path, chosen: dict[str, np.ndarray]) -> tuple[int, str] | None:
    """Copy a rank's files to node-local storage; return exit code and message when that failed."""
    try:
        for split, indices in chosen.items():
            (target / split).mkdir(parents=True, exist_ok=True)
            for index in indices:
                shutil.copyfile(
                    dataset.file_path(source, split, index),
                    dataset.file_path(target, split, index),
                )
                watch.advance()
    except FileNotFoundError as error:
        return EXIT_MISSING_DATA, f"missing {error.filename}"
    except OSError as error:
        free = shutil.disk_usage(target if target.exists() else "/").free
        return 1, f"staging to {target}: {error.strerror}, {free / 1e9:.2f} GB free there"
    return None


@dataclass
class Epochs:
    """What the timed epochs gave on this rank."""

    times: EpochTimes
    sums_x: list[float]
    sums_y: list[float]
    problem: tuple[int, str] | None = None


def read_epochs(params: dict[str, Any], rank: int, folder: Path, phases: Phases) -> Epochs:
    """Trace the pipelines (phase warmup), then read and time every epoch (phase timed)."""
    import tensorflow as tf
    from harness import ranks

    from data_loading import pipeline

    def tensors(epoch: int) -> dict[str, tf.Tensor]:
        """Make string tensors of the files of an epoch; not timed."""
        chosen = paths(folder, files_of_rank(params, rank, epoch))
        return {split: tf.constant(names, tf.string) for split, names in chosen.items()}

    with phases("warmup"):
        options = pipeline.Options.from_params(params)
        if options.cache == "memory":
            drains = {
                split: pipeline.make_cached_drain(files, options)
                for split, files in tensors(0).items()
            }
        else:
            drains = dict.fromkeys(dataset.SPLITS, pipeline.make_drain(options))
        for _ in range(3):
            ranks.barrier()

    expected = params["samples_per_rank"] + params["validation_samples_per_rank"]
    epochs = Epochs(EpochTimes(), [], [])

    def read(files: dict[str, tf.Tensor]) -> bool:
        try:
            touched = [drains[split](files[split]) for split in dataset.SPLITS]
        except tf.errors.OpError as error:
            epochs.problem = (_exit_code(error), f"rank {rank}: {error.message}")
            return False
        samples = sum(part.samples for part in touched)
        epochs.sums_x.append(sum(part.sum_x for part in touched))
        epochs.sums_y.append(sum(part.sum_y for part in touched))
        if samples != expected:
            message = f"rank {rank}: read {samples} samples, not {expected}"
            epochs.problem = (EXIT_BAD_DATA, message)
        elif not np.isfinite([epochs.sums_x[-1], epochs.sums_y[-1]]).all():
            message = f"rank {rank}: the sum over all samples is not finite"
            epochs.problem = (EXIT_BAD_DATA, message)
        return epochs.problem is None

    with phases("timed"):
        epochs.times = time_epochs(params["epochs"], tensors, read, ranks.barrier)
    return epochs


def _exit_code(error: Exception) -> int:
    """Tell data that is gone (66) or broken (65) from any other trouble of TensorFlow (1)."""
    import tensorflow as tf

    if isinstance(error, tf.errors.NotFoundError):
        return EXIT_MISSING_DATA
    broken = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)
    return EXIT_BAD_DATA if isinstance(error, broken) else 1


def drop_page_cache(params: dict[str, Any], rank: int, folder: Path) -> dict[str, Any]:
    """Make the kernel forget every file this rank will read and return what that achieved."""
    from harness import ranks

    names = {
        name
        for epoch in range(params["epochs"])
        for files in paths(folder, files_of_rank(params, rank, epoch)).values()
        for name in files
    }
    before = page_cache.resident_fraction(names)
    ranks.barrier()  # ranks may share files: nobody drops before all have looked
    refused = page_cache.drop(names)
    ranks.barrier()
    after = page_cache.resident_fraction(names)
    everyone = ranks.gather_json([before, after, refused])
    outcome = page_cache.summary([each[0] for each in everyone], [each[1] for each in everyone])
    return {**outcome, "refused_files": sum(each[2] for each in everyone)}


def notes_on_reads(inside: np.ndarray, between: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Say whether each epoch read its own bytes, from the kernel's counters, or {} without them.

    `inside` and `between` are ``[epoch, rank]`` bytes read while timed and since the epoch before,
    `expected` ``[rank]`` the size of the files. Sockets count too, hence not exactly equal.
    """
    if not np.isfinite(inside).all() or not np.isfinite(between).all():
        return {}
    return {
        "timed_bytes_over_file_bytes": [float(v) for v in inside.sum(1) / expected.sum()],
        "largest_untimed_bytes": float(between[1:].max()) if len(between) > 1 else 0.0,
    }


def finish(run: program.Run, epochs: Epochs, phases: Phases, notes: dict[str, Any]) -> None:
    """Gather from all ranks (phase teardown) and write the result on rank 0."""
    from harness import ranks

    params = run.params
    with phases("teardown"):
        # Sizes are asked for only now: asking before would warm a parallel file system's caches.
        chosen = paths(run.data, files_of_rank(params, ranks.rank(), 0))
        names = [name for files in chosen.values() for name in files]
        size = sum(Path(name).stat().st_size for name in names)
        ranks.raise_together(wrong_size(params, names, size))
        times = epochs.times
        local, total, inside, between, sums_x, sums_y = (
            ranks.gather(np.asarray(values))
            for values in (
                *(times.local, times.total, times.read_inside, times.read_between),
                *(epochs.sums_x, epochs.sums_y),
            )
        )
        sizes = ranks.gather(np.asarray(float(size)))
        everyone = ranks.gather_json(
            facts.rank_facts(
                params["inter_threads"], params["intra_threads"], ranks.first_on_host()
            )
        )
    if ranks.rank() != 0:
        return
    notes |= {
        # Float32 sums in no fixed order: over the same data sum_x agrees to about 1e-5.
        "touched": {"sum_x": float(sums_x[0].sum()), "sum_y": float(sums_y[0].sum())},
        "reads": notes_on_reads(inside, between, sizes),
        "horovod": ranks.facts_about_horovod(),
    }
    samples = params["samples_per_rank"] + params["validation_samples_per_rank"]
    result.write_result(
        run.out,
        phases=phases,
        work={
            "samples_per_epoch": params["ranks"] * samples,
            "bytes_per_epoch": int(sizes.sum()),
        },
        ranks=everyone,
        versions=facts.versions(),
        variables=facts.variables(),
        samples={
            "local_times": local,
            "global_times": total,
            # Reading, decoding and summing overlap and are not told apart: all of it is input.
            "span_input": local,
            "span_wait": total - local,
        },
        notes=notes,
    )


def main(run: program.Run) -> None:
    """Run the benchmark on this rank. Raises ProgramError, with its exit code, on known trouble."""
    import_without("pandas", "scipy", "PIL")
    import tensorflow as tf
    from harness import ranks

    params = run.params
    phases = Phases()
    phases.add("import", since_start())
    with phases("init"):
        tf.config.set_visible_devices([], "GPU")  # reading needs none, and so leaves its memory be
        ranks.start(params["ranks"], params["inter_threads"], params["intra_threads"])

    notes: dict[str, Any] = {"page_cache": {"dropped": params["drop_page_cache"]}}
    scratch = run.node_local / f"{run.run_id}-rank{ranks.rank()}"
    if params["stage_to_node_local"]:  # ended from outside, still clear the node's scratch folder
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with phases("data_staging"):
            ranks.raise_together(find_missing(run) if ranks.rank() == 0 else None)
            folder = run.data
            if params["stage_to_node_local"]:
                folder = scratch
                chosen = files_of_rank(params, ranks.rank(), 0)
                ranks.raise_together(copy_files(run.data, scratch, chosen))
            if params["drop_page_cache"]:
                notes["page_cache"] |= drop_page_cache(params, ranks.rank(), folder)
        epochs = read_epochs(params, ranks.rank(), folder, phases)
        ranks.raise_together(epochs.problem)
        finish(run, epochs, phases, notes)
    finally:
        if params["stage_to_node_local"]:
            shutil.rmtree(scratch, ignore_errors=True)
    ranks.stop()


if __name__ == "__main__":
    sys.exit(program.run_program("data_loading", main, check_parameters))
