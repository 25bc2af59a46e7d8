"""A point of cosmoflow_training from the hyperparameters of an MLPerf log.

What the keys mean: MLPerf HPC training rules, "Hyperparameters and Optimizer".
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.mlperf_log import Job, is_number

# MLPerf HPC training rules, "Benchmarks".
TARGET_MAE = 0.124
# Key of the log -> parameter, where they mean the same.
_SAME = {
    "dropout": "dropout", "target_mae": "target_mae", "epochs": "epochs",
    "sample_shape": "sample_shape", "opt_learning_rate_warmup_epochs": "warmup_epochs",
}  # fmt: skip
_ORIGIN = ("submission_org", "submission_platform", "submission_division")


class MlperfPoint:
    """Parameters of cosmoflow_training from a log; raises ImportRefusedError where they are
    none."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.values: dict[str, Any] = {}
        self.variant: dict[str, str] = {}
        self.assumed: dict[str, str] = {}
        self.train_samples = 0

    def read(self, ranks: int | None, submission: Mapping[str, Any]) -> None:
        """Fill in everything that the log states."""
        self._ranks(ranks)
        self.train_samples = self._shared("train_samples", "samples_per_rank", 1)
        batch = self._shared("global_batch_size", "batch_size", 1)
        if self.job.value("eval_samples") is not None:
            self._shared("eval_samples", "validation_samples_per_rank", 0)
        for key, name in _SAME.items():
            if (value := self.job.value(key)) is not None:
                self.values[name] = value
        if "epochs" not in self.values:
            # How many a run needed is its outcome: runs that needed more are repeats all the same.
            self.values["epochs"] = None
        if "target_mae" not in self.values and "submission_division" in submission:
            self.values["target_mae"] = TARGET_MAE
            self.assumed["target_mae"] = "MLPerf HPC's rules"
        if (name := self.job.value("opt_name")) is not None:
            self.values["optimizer"] = str(name).lower()
        self._learning_rate(batch)
        self._decay()
        if decay := self.job.value("opt_weight_decay"):
            self.variant["opt_weight_decay"] = str(decay)
        for key in _ORIGIN:
            if key in submission:
                self.variant[key] = self._unscaled(str(submission[key]))

    def _ranks(self, given: int | None) -> None:
        """Ranks as the log states them, else those that were ``given``."""
        stated, nodes = self._count("number_of_ranks", 0), self._count("number_of_nodes", 0)
        each = self._count("accelerators_per_node", 0)
        if stated:
            ranks = stated
        elif nodes and each:
            ranks = nodes * each
            self.assumed["ranks"] = "one for each accelerator"
        elif given:
            ranks = given
            self.assumed["ranks"] = "--ranks"
        else:
            raise ImportRefusedError(
                "the log does not state the number of ranks: add --ranks N",
                self.job.first_line,
            )
        self.values["ranks"] = ranks
        if given not in (None, ranks):
            self.assumed["ranks"] = f"the log's own, not those of --ranks {given}"
        if nodes and ranks % nodes == 0:
            self.values["ranks_per_node"] = ranks // nodes

    def _count(self, key: str, least: int) -> int | None:
        value = self.job.value(key)
        if value is None:
            return None
        if not is_number(value) or not least <= value < 2**53 or value != int(value):
            line = self.job.find(key)[0].line
            raise ImportRefusedError(
                f"{key} {str(value)[:40]!a} is not a whole number from {least} on", line
            )
        return int(value)

    def _shared(self, key: str, name: str, least: int) -> int:
        """Set a parameter per rank from the total in the log; returns the total."""
        total, ranks = self._count(key, least), self.values["ranks"]
        if total is None:
            raise ImportRefusedError(f"the log lacks {key}", self.job.last_line)
        if total % ranks:
            raise ImportRefusedError(
                f"{key} {total:,} does not divide evenly among {ranks:,} ranks",
                self.job.find(key)[0].line,
            )
        self.values[name] = total // ranks
        return total

    def _learning_rate(self, batch: int) -> None:
        """Base and reference batch of the rate.

        opt_base_learning_rate is the peak, base rate times scaling factor, and
        opt_learning_rate_warmup_factor that factor (MLPerf HPC training rules,
        "Hyperparameters and Optimizer").
        """
        peak = self.job.value("opt_base_learning_rate")
        factor = self.job.value("opt_learning_rate_warmup_factor")
        if peak is None:
            return
        if not is_number(peak) or not 0 <= peak < math.inf:
            line = self.job.find("opt_base_learning_rate")[0].line
            raise ImportRefusedError(
                f"opt_base_learning_rate {str(peak)[:40]!a} is not a rate", line
            )
        reference = batch / factor if is_number(factor) and factor > 0 else math.nan
        if reference >= 1 and reference == int(reference):
            # Rounded, so that 0.006 / 6 is 0.001 at every batch size.
            self.values["base_learning_rate"] = float(f"{peak / factor:.9g}")
            self.values["learning_rate_reference_batch"] = int(reference)
        else:
            self.values["base_learning_rate"] = float(peak)
            self.values["learning_rate_reference_batch"] = batch
            if factor is not None:
                self.variant["opt_learning_rate_warmup_factor"] = str(factor)

    def _decay(self) -> None:
        """Epochs and factors of the decay, each factor of the peak."""
        key = "opt_learning_rate_decay_factor"
        boundaries = self.job.value("opt_learning_rate_decay_boundary_epochs")
        factors = self.job.value(key)
        if not isinstance(boundaries, list):
            # Steps, or another kind of decay: no parameter says so.
            decay = [boundaries, factors]
            if decay != [None, None]:
                self.variant["learning rate decay"] = str(decay)
            return
        self.values["decay_epochs"] = boundaries
        if is_number(factors):
            # The reference writes the largest only (utils/optimizers.py of cosmoflow-benchmark).
            if len(boundaries) > 1:
                self.assumed["decay_factors"] = (
                    f"the log states {factors:g}; each next one is assumed to be half of it"
                )
            factors = [factors / 2**place for place in range(len(boundaries))]
        if not isinstance(factors, list) or len(factors) != len(boundaries):
            raise ImportRefusedError(
                f"{key} {str(factors)[:60]!a} does not go with {len(boundaries)} boundaries",
                self.job.find("opt_learning_rate_decay_boundary_epochs")[0].line,
            )
        self.values["decay_factors"] = factors

    def _unscaled(self, text: str) -> str:
        """A platform's name without the counts of ranks or nodes that many have in them."""
        counts = [self.values["ranks"], self.job.value("number_of_nodes")]
        words = "|".join(rf"{int(count)}(?:\.0)?" for count in counts if is_number(count))
        return re.sub(rf"(?<![\d.])(?:{words})(?![\d.])", "N", text)[:80]
