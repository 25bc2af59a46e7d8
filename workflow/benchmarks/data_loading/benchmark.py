"""What a rank does: copy files if asked to, trace its pipelines, then read and time every epoch.

Per epoch, on every rank: barrier; start the clock; drain the training and then the validation
batches, touching every sample; `local_time`; barrier; `global_time`. Each epoch's pipelines are
made and destroyed inside the timing.
"""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cosmoflow_data import dataset, pipeline
from cosmoflow_data.files import bytes_of, files_of_rank, find_missing, paths
from harness import input_errors, page_cache, ranks, watch
from harness.epochs import time_epochs
from harness.frame import Benchmark
from harness.native import Work
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, Run
from harness.staging import file_path
from harness.tf_probe import start_without_gpus

Problem = tuple[int, str]


class Program(Benchmark):
    """Epochs of reading, without training."""

    def __init__(self, run: Run, phases: Phases) -> None:
        """Nothing is read yet."""
        super().__init__(run, phases)
        self.page_cache: dict[str, Any] = {"dropped": self.params["drop_page_cache"]}
        self.scratch: Path | None = None  # this rank's copy on the node, if there is to be one
        self.sums: list[tuple[float, float]] = []  # of all x and all y, by epoch
        self.problem: Problem | None = None

    def start(self) -> None:
        """Start the ranks; reading needs no GPU, and so leaves its memory be."""
        start_without_gpus(self.params["ranks"], self.threads())

    def set_up(self) -> None:
        """See that all files are there; copy them, and drop them from the page cache, if asked."""
        run, params, rank = self.run, self.params, ranks.rank()
        self.folder = run.data
        if params["stage_to_node_local"]:
            self.scratch = run.node_local / f"{run.run_id}-rank{rank}"
            # Ended from outside, still clear the node's scratch folder (`close`).
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        with self.phases("data_staging"):
            ranks.raise_together(find_missing(run) if rank == 0 else None)
            if self.scratch is not None:
                self.folder = self.scratch
                chosen = files_of_rank(params, rank, 0)
                ranks.raise_together(copy_files(run.data, self.scratch, chosen))
            if params["drop_page_cache"]:
                self.page_cache |= drop_page_cache(params, rank, self.folder)

    def tensors(self, epoch: int) -> dict[str, tf.Tensor]:
        """Make string tensors of the files of an epoch; not timed."""
        chosen = paths(self.folder, files_of_rank(self.params, ranks.rank(), epoch))
        return {split: tf.constant(names, tf.string) for split, names in chosen.items()}

    def warm_up(self) -> None:
        """Trace the pipelines, and meet at some barriers."""
        with self.phases("warmup"):
            if self.params["cache"] == "memory":
                self.drains = {
                    split: pipeline.make_cached_drain(files, self.params)
                    for split, files in self.tensors(0).items()
                }
            else:
                self.drains = dict.fromkeys(dataset.SPLITS, pipeline.make_drain(self.params))
            for _ in range(3):
                ranks.barrier()

    def measure(self) -> None:
        """Read and time every epoch."""
        with self.phases("timed"):
            self.times = time_epochs(self.params["epochs"], self.tensors, self.read, ranks.barrier)
        ranks.raise_together(self.problem)

    def read(self, files: dict[str, tf.Tensor]) -> bool:
        """Read every sample of an epoch; return whether all went well."""
        params, here = self.params, f"rank {ranks.rank()}"
        try:
            touched = [self.drains[split](files[split]) for split in dataset.SPLITS]
        except tf.errors.OpError as error:
            names = [os.fsdecode(name) for split in files.values() for name in split.numpy()]
            code, said = input_errors.describe(error, names, params["compression"])
            self.problem = code, f"{here}: {said}"
            return False
        samples, *sums = (sum(values) for values in zip(*touched, strict=True))
        self.sums.append((sums[0], sums[1]))
        expected = params["samples_per_rank"] + params["validation_samples_per_rank"]
        if samples != expected:
            self.problem = EXIT_BAD_DATA, f"{here}: read {samples} samples, not {expected}"
        elif not np.isfinite(sums).all():
            self.problem = EXIT_BAD_DATA, f"{here}: the sum over all samples is not finite"
        return self.problem is None

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times, bytes read and sums; ProgramError on all ranks when sizes are wrong."""
        params, times = self.params, self.times
        chosen = paths(self.run.data, files_of_rank(params, ranks.rank(), 0))
        names = [name for files in chosen.values() for name in files]
        size = bytes_of(params, names)
        local, total, self.inside, self.between, self.all_sums = (
            ranks.gather(np.asarray(values))
            for values in (
                *(times.local, times.total, times.read_inside, times.read_between),
                self.sums,
            )
        )
        self.sizes = ranks.gather(np.asarray(float(size)))
        return {
            "local_times": local,
            "global_times": total,
            # Reading, decoding and summing overlap and cannot be separated: all of it is input.
            "span_input": local,
            "span_wait": None if local is None else total - local,
        }

    def work(self) -> Work:
        """Return the samples and bytes of an epoch."""
        samples = self.params["samples_per_rank"] + self.params["validation_samples_per_rank"]
        return {
            "samples_per_epoch": self.params["ranks"] * samples,
            "bytes_per_epoch": int(self.sizes.sum()),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return sums over the first epoch, and whether each epoch read its own bytes."""
        # Float32 sums in no fixed order: over the same data sum_x agrees to about 1e-5.
        sum_x, sum_y = self.all_sums[0].sum(axis=1)
        return {
            "page_cache": self.page_cache,
            "touched": {"sum_x": float(sum_x), "sum_y": float(sum_y)},
            "reads": notes_on_reads(self.inside, self.between, self.sizes),
        }

    def close(self) -> None:
        """Clear the node's scratch folder."""
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def copy_files(source: Path, target: Path, chosen: dict[str, np.ndarray]) -> Problem | None:
    """Copy a rank's files to node-local storage; return exit code and message when that failed."""
    try:
        for split, indices in chosen.items():
            (target / split).mkdir(parents=True, exist_ok=True)
            for index in indices:
                paths = (file_path(folder, split, index) for folder in (source, target))
                shutil.copyfile(*paths)
                watch.advance()
    except FileNotFoundError as error:
        return EXIT_MISSING_DATA, f"missing {error.filename}"
    except OSError as error:
        free = shutil.disk_usage(target if target.exists() else "/").free
        return 1, f"staging to {target}: {error.strerror}, {free / 1e9:.2f} GB free there"
    return None


def drop_page_cache(params: dict[str, Any], rank: int, folder: Path) -> dict[str, Any]:
    """Make the kernel forget every file this rank will read and return what that achieved."""
    names = {
        name
        for epoch in range(params["epochs"])
        for files in paths(folder, files_of_rank(params, rank, epoch)).values()
        for name in files
    }
    before = page_cache.resident_fraction(names)
    ranks.barrier()  # ranks may share files: none drops before all have looked
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
