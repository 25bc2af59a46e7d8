"""What a rank does: trace its pipeline, then read and time every epoch.

Per epoch, on every rank: barrier; start the clock; drain the training and then the validation
batches, touching every sample; `local_time`; barrier; `global_time`. Each epoch's pipelines are
made and destroyed inside the timing.
"""

import os
from typing import Any

import numpy as np
import tensorflow as tf

from cosmoflow_data import dataset, files, pipeline
from harness import input_errors, page_cache, ranks
from harness.epochs import time_epochs
from harness.native import Work
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA, Run
from harness.tf_probe import HostOnly


class Program(HostOnly):
    """Epochs of reading, without training."""

    def __init__(self, run: Run, phases: Phases) -> None:
        """Nothing is read yet."""
        super().__init__(run, phases)
        self.resident: float | None = None  # share of the files in the page cache once dropped
        self.sums: list[tuple[float, float]] = []  # of all x and all y, by epoch
        self.problem: tuple[int, str] | None = None

    def set_up(self) -> None:
        """See that all files are there; drop them from the page cache, if asked."""
        with self.phases("data_staging"):
            files.require(self.run)
            if self.params["drop_page_cache"]:
                epochs = range(self.params["epochs"])
                every = (names for epoch in epochs for names in self.names(epoch).values())
                names = {name for names in every for name in names}
                page_cache.drop(names)
                ranks.barrier()  # ranks may share files: none looks before all have dropped
                self.resident = page_cache.resident_fraction(names)

    def names(self, epoch: int) -> dict[str, list[str]]:
        """Return what this rank reads in an epoch, by split."""
        return files.files_of_rank(self.params, self.run.data, ranks.rank(), epoch)

    def tensors(self, epoch: int) -> list[tf.Tensor]:
        """Make string tensors of the files of an epoch; not timed."""
        names = self.names(epoch)
        return [tf.constant(names[split], tf.string) for split in dataset.SPLITS]

    def warm_up(self) -> None:
        """Trace the pipeline, and meet at some barriers."""
        with self.phases("warmup"):
            self.drain = pipeline.make_drain(self.params)
            for _ in range(3):
                ranks.barrier()

    def measure(self) -> None:
        """Read and time every epoch."""
        with self.phases("timed"):
            self.times = time_epochs(self.params["epochs"], self.tensors, self.read, ranks.barrier)
        ranks.raise_together(self.problem)

    def read(self, tensors: list[tf.Tensor]) -> bool:
        """Read every sample of an epoch; return whether all went well."""
        here = f"rank {ranks.rank()}"
        try:
            touched = [self.drain(names) for names in tensors]
        except tf.errors.OpError as error:
            names = [os.fsdecode(name) for each in tensors for name in each.numpy()]
            code, said = input_errors.describe(error, names, self.params["compression"])
            self.problem = code, f"{here}: {said}"
            return False
        samples, sum_x, sum_y = (sum(values) for values in zip(*touched, strict=True))
        self.sums.append((sum_x, sum_y))
        if samples != self.samples:
            self.problem = EXIT_BAD_DATA, f"{here}: read {samples} samples, not {self.samples}"
        return self.problem is None

    @property
    def samples(self) -> int:
        """Samples of a rank in an epoch."""
        return int(self.params["samples_per_rank"] + self.params["validation_samples_per_rank"])

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times, sums and bytes read."""
        times = self.times
        size = float(sum(files.bytes_of(names) for names in self.names(0).values()))
        local, total, self.inside, self.all_sums, self.sizes = (
            ranks.gather(np.asarray(values))
            for values in (times.local, times.total, times.read_inside, self.sums, size)
        )
        return {
            "local_times": local,
            "global_times": total,
            # Reading, decoding and summing overlap and cannot be separated: all of it is input.
            "span_input": local,
            "span_wait": None if local is None else total - local,
        }

    def about_rank(self) -> float | None:
        """Return the share of this rank's files that stayed in the page cache."""
        return self.resident

    def work(self) -> Work:
        """Return the samples and bytes of an epoch."""
        return {
            "samples_per_epoch": self.params["ranks"] * self.samples,
            "bytes_per_epoch": int(self.sizes.sum()),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return sums over the first epoch, and whether each epoch read its own bytes."""
        # Float32 sums in no fixed order: over the same data sum_x agrees to about 1e-5.
        sum_x, sum_y = self.all_sums[0].sum(axis=1)
        notes: dict[str, Any] = {"touched": {"sum_x": float(sum_x), "sum_y": float(sum_y)}}
        if self.params["drop_page_cache"]:
            notes["page_cache"] = page_cache.of_cold_reads(about_ranks)
        # By the kernel's counters, where it has them. Sockets count too, hence not exactly 1.
        if np.isfinite(self.inside).all():
            read = self.inside.sum(axis=1) / self.sizes.sum()
            notes["timed_bytes_over_file_bytes"] = read.tolist()
        return notes
