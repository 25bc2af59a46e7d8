"""Published scaling series: what intervals are calibrated on and predictions tried on.

The numbers are in tests/published/scaling_series.csv.

Costs are seconds of an epoch at the same work per rank, ranks over throughput, or ranks times the
time of the same work. Series of one cluster are alike: ``cluster`` is what is left out as a whole.
``ranks_per_node``: of GPUs, as the source states the machine; 1 where counts are whole nodes. All
are public:

* CosmoFlow training, ``notebooks/ScalingAnalysis.ipynb`` and ``ScalingAnalysisSummit.ipynb`` of
  github.com/sparticlesteve/cosmoflow-benchmark (559eafb; Cori KNL, Cori GPU, Summit) and
  ``notebooks/ScalingAnalysisDaint.ipynb`` of github.com/jgphpc/cosmoflow-benchmark (596a27f; Piz
  Daint): mean time of the later epochs. "dummy": input made in memory.
* CosmoFlow data loading on Piz Daint, ``notebooks/DataBenchmark.ipynb`` of the latter (f7e0883),
  mean time of the later epochs. Its row of 1,024 ranks is left out: it was computed from the three
  ranks that the printed array shows.
* TensorFlow's benchmarks of 2017 (github.com/tensorflow/docs, 62da04c, ``site/en/r1/guide/
  performance/benchmarks.md``), images/s on up to 64 K80 GPUs of Amazon EC2 and on 1, 2, 4 and 8
  GPUs of one NVIDIA DGX-1 (P100), Google Compute Engine and Amazon EC2 machine (K80): all columns
  that have all four counts. "batch 32" are its tables of other results.
* DLPerf (github.com/Oneflow-Inc/DLPerf, c89430b), samples/s of a folder's ``README.md`` on four
  nodes of eight V100: the tables of TensorFlow's, PaddlePaddle's and NVIDIA's programs.
* github.com/mvsjober/ml-benchmarks (0380e79), ``results.md``, images/s of ResNet-50 under DDP and
  samples/s of ``run_clm`` on Puhti and Mahti (nodes of four GPUs) and LUMI (of eight): the rows of
  PyTorch 2.0 to 2.2 that have four counts.
* github.com/hpc-uk/archer-benchmarks (f644ea4), ``apps/GROMACS/*/results`` (ns/day; large,
  1400k-atoms) and ``apps/CASTEP/al3x3/results`` (1/s) by nodes, strong scaling. Times of several
  runs are their mean.
* The Ultra-Scale Playbook (github.com/vinjn/nanotron-ultrascale-playbook, 924e4d0, ``assets/data/
  benchmarks/benchmarks_interactive.html``), tokens/s of Llama models of 1B and 8B parameters at a
  global batch of 256 sequences, strong scaling by nodes of eight H100: every layout without
  pipeline (tensor parallelism, ZeRO stage, micro-batch) that has one value for each of 1 to 32
  nodes. Its 64 nodes are left out: few layouts have them, and of most the rate there is a tenth to
  a half of that at 32, which the source does not explain.
* github.com/numericalalgorithmsgroup/pypop (830913d), runtimes of its example at 1 to 16 processes
  (us), strong scaling.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.prediction.series import Series, make_series
from scalesweep.analysis.prediction.topology import NODE, Border, Growth


class PublicSeries(NamedTuple):
    """A series with its cluster, program (or study), rank (or GPU, or node) counts and values."""

    cluster: str
    program: str
    name: str
    ranks_per_node: int
    ranks: tuple[int, ...]
    values: tuple[float, ...]
    is_rate: bool = True
    scaling: str = "weak"

    def series(self) -> Series:
        """It without what is known of its machine."""
        ranks, values = np.array(self.ranks, np.float64), np.array(self.values, np.float64)
        return make_series(ranks, ranks / values if self.is_rate else values, self.scaling)

    def with_borders(self) -> Series:
        """It with the border of a node."""
        return replace(self.series(), borders=(Border(NODE, self.ranks_per_node),))

    def among_similar(self) -> Series:
        """It with the border of a node and all other series of its program on its cluster."""
        similar = tuple(
            Growth(own.ranks, own.cost)
            for other in PUBLIC
            if other is not self
            and (other.cluster, other.program, other.scaling)
            == (self.cluster, self.program, self.scaling)
            for own in [other.series()]
        )
        return replace(self.with_borders(), similar=similar)


TRAINING = "CosmoFlow training"
LOADING = "CosmoFlow data loading"
PUBLISHED = Path(__file__).parents[2] / "tests" / "published" / "scaling_series.csv"


def _read() -> Iterator[PublicSeries]:
    with PUBLISHED.open(newline="") as file:
        for row in csv.DictReader(file):
            yield PublicSeries(
                row["cluster"], row["program"], row["series"], int(row["ranks_per_node"]),
                tuple(int(word) for word in row["ranks"].split()),
                tuple(float(word) for word in row["values"].split()),
                is_rate=row["unit"] != "s", scaling=row["scaling"],
            )  # fmt: skip


PUBLIC = tuple(_read())
