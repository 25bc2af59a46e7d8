"""Published scaling series, typed in: what the intervals are calibrated on and tried on.

Costs are seconds of an epoch at the same work per rank, or ranks over throughput. All are public:

* CosmoFlow training, ``notebooks/ScalingAnalysis.ipynb`` and ``ScalingAnalysisSummit.ipynb`` of
  github.com/sparticlesteve/cosmoflow-benchmark (559eafb; Cori KNL, Cori GPU, Summit) and
  ``notebooks/ScalingAnalysisDaint.ipynb`` of github.com/jgphpc/cosmoflow-benchmark (596a27f; Piz
  Daint): mean time of the later epochs. "dummy": input made in memory.
* CosmoFlow data loading on Piz Daint, ``notebooks/DataBenchmark.ipynb`` of the latter (f7e0883),
  mean time of the later epochs. Its row of 1,024 ranks is left out: it was computed from the three
  ranks that the printed array shows.
* TensorFlow's benchmarks of 2017 (github.com/tensorflow/docs, ``site/en/r1/guide/performance/
  benchmarks.md``), images/s on up to 64 K80 GPUs of Amazon EC2.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.prediction.series import Series, make_series


class PublicSeries(NamedTuple):
    """Where a series is from, its rank (or GPU) counts and seconds or images/s."""

    study: str
    name: str
    ranks: tuple[int, ...]
    values: tuple[float, ...]
    is_rate: bool = False

    def series(self) -> Series:
        """It as a weak-scaling series."""
        ranks, values = np.array(self.ranks, np.float64), np.array(self.values, np.float64)
        return make_series(ranks, ranks / values if self.is_rate else values)


TRAINING = "CosmoFlow training"
LOADING = "CosmoFlow data loading"
TENSORFLOW = "TensorFlow 2017"

_TO_64 = (1, 2, 4, 8, 16, 32, 64)
_TO_512 = (*_TO_64, 128, 256, 512)
_TO_1024 = (*_TO_512, 1024)
_SUMMIT = (6, 12, 24, 48, 96, 192, 384, 768, 1020)
_EC2 = (1, 8, 16, 32, 64)


def _training(name: str, ranks: tuple[int, ...], *seconds: float) -> PublicSeries:
    return PublicSeries(TRAINING, name, ranks, seconds)


def _images(name: str, *per_second: float) -> PublicSeries:
    return PublicSeries(TENSORFLOW, name, _EC2, per_second, is_rate=True)


# fmt: off
PUBLIC: tuple[PublicSeries, ...] = (
    _training("Cori GPU", _TO_64, 12.893975, 12.833653, 15.058182, 18.533700, 19.009904, 19.279959,
              22.272266),
    _training("Cori GPU, dummy", _TO_64, 11.679684, 12.799187, 12.773162, 13.916620, 15.088690,
              15.837898, 16.143928),
    _training("Cori KNL", _TO_1024, 17.317688, 18.528065, 18.764791, 18.910925, 19.091434,
              19.181881, 19.419858, 19.644668, 20.561300, 21.172881, 22.243103),
    _training("Cori KNL, dummy", _TO_1024, 17.458997, 18.280915, 18.746286, 18.912969, 19.109365,
              19.299099, 19.439863, 19.615880, 20.052720, 20.588671, 23.047339),
    _training("Summit, first table", _SUMMIT, 2.438310, 2.475605, 2.598854, 2.732879, 2.818809,
              2.908948, 3.089087, 3.322992, 3.392342),
    _training("Summit, second table", _SUMMIT, 2.294221, 2.211925, 2.277796, 2.395046, 2.473579,
              2.623268, 2.999699, 3.247318, 3.378735),
    _training("Piz Daint GPU", _TO_64, 27.585474, 28.193059, 28.447324, 28.971968, 29.003337,
              29.266624, 29.642493),
    _training("Piz Daint GPU, dummy", _TO_64, 30.249063, 30.785995, 31.511835, 31.511445,
              31.658819, 32.089008, 32.124002),
    _training("Piz Daint CPU", _TO_64, 420.400453, 488.072858, 484.418939, 507.745656, 525.172876,
              531.322841, 530.816406),
    _training("Piz Daint CPU, dummy", _TO_64, 416.331779, 484.396916, 487.066389, 513.707405,
              527.347751, 523.755011, 533.304467),
    PublicSeries(LOADING, "Piz Daint", _TO_512, (
        6.489354, 6.636029, 6.748138, 6.699254, 6.774516, 6.788149, 6.714009, 7.452257, 7.462975,
        8.667767)),
    _images("Inception v3, batch 64", 29.7, 229, 459, 902, 1783),
    _images("ResNet-50, batch 64", 52.4, 378, 751, 1388, 2744),
    _images("ResNet-152, batch 64", 19.4, 146, 291, 565, 981),
    _images("Inception v3, batch 32", 29.2, 219, 427, 820, 1608),
    _images("ResNet-50, batch 32", 48.4, 333, 667, 1180, 2315),
)
# fmt: on


def by_study() -> Mapping[str, list[PublicSeries]]:
    """The series by where they are from, in the order above."""
    found: dict[str, list[PublicSeries]] = {}
    for one in PUBLIC:
        found.setdefault(one.study, []).append(one)
    return found
