"""What a rank does: make its pipeline, then take, consume and time every batch of every epoch.

Per epoch, on every rank: barrier; start the clock; a new iterator; take each batch and consume it;
`local_time`; barrier; `global_time`.
"""

import time
from concurrent.futures import Executor
from typing import Any

import numpy as np
import tensorflow as tf

from cosmoflow_data.dataset import TARGETS
from cosmoflow_data.files import bytes_of, require
from harness import input_errors, page_cache, ranks
from harness.epochs import time_epochs
from harness.frame import Arrays
from harness.native import Metric, Work, metric
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA, Run
from harness.staging import file_path
from harness.tf_probe import HostOnly
from input_pipeline import pipelines
from input_pipeline.python_samples import start_workers

SIZE = 512  # rows of the consumer's matrices


class Program(HostOnly):
    """Epochs of taking batches from one pipeline."""

    def __init__(self, run: Run, phases: Phases) -> None:
        """Nothing is read yet."""
        super().__init__(run, phases)
        self.waited: list[float] = []  # s by epoch
        self.consumed: list[float] = []
        self.sums_y: list[float] = []
        self.resident: list[float | None] = []
        self.problem: tuple[int, str] | None = None
        self.workers: Executor | None = None

    def set_up(self) -> None:
        """See that all files are there, and make the pipeline; nothing is read."""
        params, rank = self.params, ranks.rank()
        with self.phases("data_staging"):
            require(self.run, validation_samples_per_rank=0)
        count = params["samples_per_rank"] // params["samples_per_file"] * params["ranks"]
        self.files = [file_path(self.run.data, "train", number) for number in range(count)]
        if params["pipeline"] == "processes":
            self.workers = start_workers(pipelines.processes(params))
        self.data = pipelines.make(self.files, params, rank, self.workers)
        # Every p-th file is a rank's (tf.data's shard), or all may be.
        fixed = params["shard"] == "before_shuffle"
        self.may_read = self.files[rank :: params["ranks"]] if fixed else self.files

    def warm_up(self) -> None:
        """Trace the consumer, and meet at some barriers."""
        with self.phases("warmup"):
            params = self.params
            products = round(params["step_gflop"] * 1e9 / (2 * SIZE**3))
            shape = [params["batch_size"], *params["sample_shape"]]
            self.consume = make_consumer(shape, products)
            self.consume(tf.zeros(shape), tf.zeros([params["batch_size"], TARGETS]))
            for _ in range(3):
                ranks.barrier()

    def measure(self) -> None:
        """Take all batches of every epoch."""
        with self.phases("timed"):
            self.times = time_epochs(
                self.params["epochs"], self.prepare, lambda _: self.take_all(), ranks.barrier
            )
        ranks.raise_together(self.problem)

    def prepare(self, epoch: int) -> None:
        """Have the kernel forget the files, where that is asked for; not timed."""
        if self.params["page_cache"] == "cold":
            page_cache.drop(self.may_read)
            ranks.barrier()  # ranks may share files: none looks before all have dropped
            self.resident.append(page_cache.resident_fraction(self.may_read))

    def take_all(self) -> bool:
        """Take and consume an epoch's batches; return whether all went well."""
        here, expected = f"rank {ranks.rank()}", self.params["samples_per_rank"]
        waited = consumed = sum_y = 0.0
        samples = 0
        now = time.perf_counter()
        try:
            iterator = iter(self.data)
            while (batch := next(iterator, None)) is not None:
                taken = time.perf_counter()
                waited += taken - now
                _, part_y = (value.numpy().item() for value in self.consume(*batch))
                now = time.perf_counter()
                consumed += now - taken
                sum_y += part_y
                samples += self.params["batch_size"]
            waited += time.perf_counter() - now
            del iterator  # its threads end inside the timing, and nothing is read ahead
        except tf.errors.OpError as error:
            code, said = input_errors.describe(error, self.may_read, self.params["compression"])
            self.problem = code, f"{here}: {said}"
            return False
        self.waited.append(waited)
        self.consumed.append(consumed)
        self.sums_y.append(sum_y)
        if samples != expected:
            self.problem = EXIT_BAD_DATA, f"{here}: took {samples} samples, not {expected}"
        return self.problem is None

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times, sums and bytes read."""
        size = bytes_of(self.files[ranks.rank() :: self.params["ranks"]])
        times = self.times
        local, total, self.inside, waited, consumed, self.all_y = (
            ranks.gather(np.asarray(values))
            for values in (
                *(times.local, times.total, times.read_inside),
                *(self.waited, self.consumed, self.sums_y),
            )
        )
        self.sizes = ranks.gather(np.asarray(float(size)))
        return {
            "local_times": local,
            "global_times": total,
            "span_input": waited,
            "span_compute": consumed,
        }

    def about_rank(self) -> float | None:
        """Return the largest share of this rank's files that stayed in the page cache."""
        return page_cache.most_kept(self.resident)

    def work(self) -> Work:
        """Return the samples of an epoch, and the bytes that they take in files."""
        return {
            "samples_per_epoch": self.params["ranks"] * self.params["samples_per_rank"],
            "bytes_per_epoch": int(self.sizes.sum()),
        }

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return how much of an epoch the consumer waits, and how much was read for it."""
        later = slice(1 if len(arrays["local_times"]) > 1 else 0, None)
        share = (arrays["span_input"] / arrays["local_times"])[later].mean()
        metrics = {"waiting_share": metric(share, "1")}
        read = self.inside[-1].sum() / self.sizes.sum()
        # Not every kernel counts, and what processes read is not this one's.
        if np.isfinite(read) and self.workers is None:
            metrics["bytes_read_per_byte"] = metric(read, "1")
        return metrics

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the sum of y by epoch, the same in each, and whether reads were cold."""
        notes: dict[str, Any] = {"touched": {"sum_y": [float(row.sum()) for row in self.all_y]}}
        if self.params["page_cache"] == "cold":
            notes["page_cache"] = page_cache.of_cold_reads(about_ranks)
        return notes

    def close(self) -> None:
        """End the processes that make samples."""
        if self.workers is not None:
            self.workers.shutdown(cancel_futures=True)


def make_consumer(shape: list[int], products: int) -> Any:
    """Return a function of a batch (x of `shape`, y) that returns the sums of both.

    It also multiplies so many matrices of SIZE rows, one after the other: 2 SIZE³ FLOP each.
    """
    signature = [tf.TensorSpec(shape, tf.float32), tf.TensorSpec([shape[0], TARGETS], tf.float32)]
    start = tf.eye(SIZE)

    @tf.function(input_signature=signature)
    def consume(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        product = start
        for _ in tf.range(products):  # the product of identities: computed in full, and finite
            product = tf.matmul(product, start)
        # Products count, at no weight, so that no optimiser leaves them out.
        return tf.reduce_sum(x) + 0.0 * product[0, 0], tf.reduce_sum(tf.cast(y, tf.float64))

    return consume.get_concrete_function()
