"""Published scaling series, typed in: what intervals are calibrated on and predictions tried on.

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

from collections.abc import Iterator
from dataclasses import replace
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
TENSORFLOW = "TensorFlow 2017"
GROMACS, CASTEP = "GROMACS", "CASTEP"
PLAYBOOK = "H100 of the Ultra-Scale Playbook"
LLAMA_1B, LLAMA_8B = "Llama 1B", "Llama 8B"

_TO_8 = (1, 2, 4, 8)
_TO_16 = (*_TO_8, 16)
_TO_32 = (*_TO_16, 32)
_TO_64 = (*_TO_32, 64)
_TO_128 = (*_TO_64, 128)
_TO_512 = (*_TO_128, 256, 512)
_TO_1024 = (*_TO_512, 1024)
_SUMMIT = (6, 12, 24, 48, 96, 192, 384, 768, 1020)
_EC2 = (1, 8, 16, 32, 64)
_NODES = (1, 4, 8, 16, 32)


def _training(
    cluster: str, name: str, per_node: int, ranks: tuple[int, ...], *seconds: float
) -> PublicSeries:
    return PublicSeries(cluster, TRAINING, name, per_node, ranks, seconds, is_rate=False)


def _images(name: str, *per_second: float) -> PublicSeries:
    return PublicSeries("EC2", TENSORFLOW, name, 8, _EC2, per_second)


def _node(cluster: str, table: str, *models: tuple[float, ...]) -> Iterator[PublicSeries]:
    for number, rates in enumerate(models, 1):
        name = f"{cluster}, {table}, {number}"
        yield PublicSeries(cluster, f"{TENSORFLOW} on one machine", name, 8, _TO_8, rates)


def _dlperf(program: str, *tables: tuple[str, tuple[float, ...]]) -> Iterator[PublicSeries]:
    for name, rates in tables:
        ranks = _NODES if len(rates) == len(_NODES) else _TO_32
        yield PublicSeries("DLPerf", program, name, 8, ranks, rates)


def _csc(
    cluster: str, program: str, *tables: tuple[str, tuple[float, ...]]
) -> Iterator[PublicSeries]:
    ranks, per_node = ((1, 2, 8, 16), 8) if cluster == "LUMI" else (_TO_8, 4)
    for name, rates in tables:
        yield PublicSeries(cluster, program, name, per_node, ranks, rates)


def _strong(
    cluster: str, program: str, name: str, ranks: tuple[int, ...], *rates: float
) -> PublicSeries:
    return PublicSeries(cluster, program, name, 1, ranks, rates, scaling="strong")


# fmt: off
PUBLIC: tuple[PublicSeries, ...] = (
    _training("Cori GPU", "Cori GPU", 8, _TO_64, 12.893975, 12.833653, 15.058182, 18.533700,
        19.009904, 19.279959, 22.272266),
    _training("Cori GPU", "Cori GPU, dummy", 8, _TO_64, 11.679684, 12.799187, 12.773162,
        13.916620, 15.088690, 15.837898, 16.143928),
    _training("Cori KNL", "Cori KNL", 1, _TO_1024, 17.317688, 18.528065, 18.764791, 18.910925,
        19.091434, 19.181881, 19.419858, 19.644668, 20.561300, 21.172881, 22.243103),
    _training("Cori KNL", "Cori KNL, dummy", 1, _TO_1024, 17.458997, 18.280915, 18.746286,
        18.912969, 19.109365, 19.299099, 19.439863, 19.615880, 20.052720, 20.588671, 23.047339),
    _training("Summit", "Summit, first table", 6, _SUMMIT, 2.438310, 2.475605, 2.598854, 2.732879,
        2.818809, 2.908948, 3.089087, 3.322992, 3.392342),
    _training("Summit", "Summit, second table", 6, _SUMMIT, 2.294221, 2.211925, 2.277796,
        2.395046, 2.473579, 2.623268, 2.999699, 3.247318, 3.378735),
    _training("Piz Daint", "Piz Daint GPU", 1, _TO_64, 27.585474, 28.193059, 28.447324, 28.971968,
        29.003337, 29.266624, 29.642493),
    _training("Piz Daint", "Piz Daint GPU, dummy", 1, _TO_64, 30.249063, 30.785995, 31.511835,
        31.511445, 31.658819, 32.089008, 32.124002),
    _training("Piz Daint", "Piz Daint CPU", 1, _TO_64, 420.400453, 488.072858, 484.418939,
        507.745656, 525.172876, 531.322841, 530.816406),
    _training("Piz Daint", "Piz Daint CPU, dummy", 1, _TO_64, 416.331779, 484.396916, 487.066389,
        513.707405, 527.347751, 523.755011, 533.304467),
    PublicSeries("Piz Daint", LOADING, "Piz Daint", 1, _TO_512, ( 6.489354, 6.636029, 6.748138,
        6.699254, 6.774516, 6.788149, 6.714009, 7.452257, 7.462975, 8.667767), is_rate=False),
    _images("Inception v3, batch 64", 29.7, 229, 459, 902, 1783),
    _images("ResNet-50, batch 64", 52.4, 378, 751, 1388, 2744),
    _images("ResNet-152, batch 64", 19.4, 146, 291, 565, 981),
    _images("Inception v3, batch 32", 29.2, 219, 427, 820, 1608),
    _images("ResNet-50, batch 32", 48.4, 333, 667, 1180, 2315),
    *_node("DGX-1", "synthetic", (142, 284, 569, 1131), (219, 422, 852, 1734),
        (91.8, 181, 356, 716), (2987, 5658, 10509, 17822), (154, 295, 584, 1081)),
    *_node("DGX-1", "real", (142, 278, 551, 1079), (218, 425, 853, 1630), (91.4, 179, 359, 708),
        (154, 284, 534, 898)),
    *_node("DGX-1", "synthetic, batch 32", (128, 259, 520, 995), (195, 368, 768, 1485),
        (82.7, 160, 317, 632), (144, 281, 549, 820)),
    *_node("DGX-1", "real, batch 32", (130, 257, 507, 966), (193, 369, 760, 1410),
        (82.4, 159, 317, 609), (144, 253, 457, 690)),
    *_node("GCE", "synthetic", (30.5, 57.8, 116, 227), (51.9, 99, 195, 387),
        (20, 38.2, 75.8, 148), (656, 1209, 2328, 4640), (35.4, 64.8, 120, 234)),
    *_node("GCE", "real", (30.6, 58.4, 115, 225), (51.2, 98.8, 194, 381), (20, 38.3, 75.4, 148),
        (639, 1136, 2067, 4056), (34.2, 62.9, 118, 230)),
    *_node("GCE", "synthetic, batch 32", (29.3, 55, 109, 216), (49.5, 95.4, 183, 362)),
    *_node("GCE", "real, batch 32", (29.5, 55.4, 110, 216), (49.3, 95.3, 186, 359)),
    *_node("EC2", "synthetic", (30.8, 58.7, 117, 230), (51.5, 98, 195, 384),
        (19.7, 37.6, 74.9, 149), (684, 1244, 2479, 4853), (36.3, 69.4, 141, 260)),
    *_node("EC2", "real", (30.5, 59, 118, 228), (51.3, 94.9, 188, 373), (19.7, 38.2, 75.2, 149),
        (36.3, 67.5, 136, 242)),
    *_node("EC2", "synthetic, batch 32", (29.9, 57.5, 114, 216), (49, 94.1, 184, 355)),
    *_node("EC2", "real, batch 32", (30, 57.5, 113, 212), (49.1, 95.1, 185, 353)),
    *_dlperf("NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5",
        ("batch 128", (392.24, 764.6, 1518.04, 3006.98, 5758.49, 11331.9)),
        ("batch 256", (1281.83, 4811.72, 9241.68, 13348.7, 27558.3)),
        ("batch 256, 2", (1393.87, 5158.71, 9621.31, 16219, 30713.7)),
    ),
    *_dlperf("NVIDIADeepLearningExamples/PyTorch/BERT",
        ("FP32 32", (119.6, 457.72, 921.32, 1499.4, 2885.81)),
        ("FP32 48", (121.94, 464.66, 928.01, 1584.32, 3039.3)),
        ("FP16 64", (444.51, 1671.66, 3251.7, 4936.92, 9331.72)),
        ("FP16 96", (462.35, 1727.93, 3287.12, 5426.07, 10349.1)),
    ),
    *_dlperf("NVIDIADeepLearningExamples/PyTorch/resnet50v1.5",
        ("FP32 128", (367.29, 1449.48, 2887.65, 5716.79, 10917.1)),
        ("AMP", (802.9, 3137.44, 6154.66, 11991.9, 22551.2)),
    ),
    *_dlperf("NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5",
        ("batch 128", (362.44, 1391.28, 2721.98, 5099.42, 9514.64)),
        ("batch 224", (945.18, 3546.02, 6903.42, 12021.1, 24734.2)),
        ("batch 224, 2", (1198.55, 4360.83, 8588.45, 14931, 29171.7)),
    ),
    *_dlperf("NVIDIADeepLearningExamples/TensorFlow/LanguageModeling/BERT",
        ("batch 32", (107.33, 397.71, 790.03, 1404.04, 2727.9)),
        ("batch 48", (112.76, 430.43, 855.45, 1576.88, 3089.74)),
        ("batch 64", (183.25, 721.56, 1452.59, 2653.74, 5189.07)),
        ("batch 64, 2", (422.53, 1552.11, 3112.73, 5050.86, 9409.2)),
        ("batch 96 with xla", (468.1, 1766.06, 3559.8, 5960.14, 11650)),
    ),
    *_dlperf("PaddlePaddle/bert",
        ("batch 32", (132.64, 228.12, 406.02, 615.12, 1116.02, 2073.6)),
        ("batch 64", (137.27, 252.71, 441.74, 761.22, 1426.52, 2736.78)),
        ("batch 96", (136.97, 258.73, 490.38, 868.6, 1631.36, 3167.68)),
        ("batch 64, 2", (289.23, 784.52, 1298.96, 1999.38, 3406.36)),
        ("batch 64, 3", (295.84, 845.84, 1471.45, 2285.75, 3801.84)),
        ("batch 128", (296.92, 877.31, 1538.25, 2701.81, 4922.16)),
        ("batch 160", (309.68, 915.7, 1666.54, 2969.85, 5452.35)),
    ),
    *_dlperf("PaddlePaddle/resnet50v1.5",
        ("batch 128", (352.72, 644.66, 1358.64, 2625.38, 4895.27, 9348.17)),
        ("batch 224", (1034.64, 3332.87, 4380.66, 6358.43, 10633.2)),
        ("batch 224, 2", (1001.23, 2499.34, 2563.44, 5165.41, 9573.03)),
        ("batch 196", (887.17, 3598, 6862.17, 6018.46, 11617.6)),
    ),
    *_dlperf("TensorFlow/bert",
        ("batch 32", (103.58, 177.18, 347.83, 675.82, 909, 1551.52)),
        ("batch 32, 2", (125.37, 216.46, 421.79, 775.93, 1022.99, 1693.59)),
        ("batch 48", (108.94, 194.29, 384.59, 752.21, 1106.71, 1956.1)),
        ("batch 48, 2", (131.27, 236.58, 468.83, 877.55, 1262.4, 2168.44)),
        ("batch 64", (112.99, 204.16, 402.02, 805.43, 1239.3, 2244.38)),
        ("batch 64, 2", (138.21, 254.91, 505.63, 959.02, 1448.74, 2544.74)),
        ("batch 64, 3", (228.66, 385.19, 746.9, 1402.41, 1893.51, 3194.02)),
        ("batch 64, 4", (414.78, 748.66, 1311.35, 2241.6, 2565.99, 4113.68)),
        ("batch 96", (258.18, 440.72, 868.12, 1669.07, 2421.33, 4168.79)),
        ("batch 96, 2", (466.34, 851.97, 1557.31, 2773.8, 3506.12, 5735.19)),
        ("batch 128", (503.47, 924.4, 1694.3, 3200.86, 4243.96, 7101.16)),
    ),
    *_dlperf("TensorFlow/resnet50v1.5",
        ("batch 128", (321.8, 574.66, 1143.46, 2458.74, 4849.68, 9418.44)),
        ("batch 128, 2", (938.09, 1572.3, 3061.66, 5734.83, 8418.2, 16250.2)),
        ("batch 256", (1075.27, 3560.81, 6898, 9870.15, 19314.3)),
        ("batch 320", (1014.13, 3616.97, 7114.79, 10210.5, 20311.1)),
    ),
    *_csc("Puhti", "DDP",
        ("synthetic", (329.27, 520.80, 1249.31, 2465.86)),
        ("synthetic, fp16", (670.50, 1186.25, 2392.44, 4655.31)),
    ),
    *_csc("Puhti", "run_clm", ("synthetic", (17.47, 33.563, 60.755, 105.145))),
    *_csc("Mahti", "DDP",
        ("synthetic", (784.38, 1495.75, 3081.61, 5862.00)),
        ("synthetic, fp16", (1123.50, 2125.94, 4087.08, 7851.35)),
    ),
    *_csc("Mahti", "run_clm", ("synthetic", (29.493, 57.184, 92.499, 139.883))),
    *_csc("LUMI", "DDP",
        ("synthetic, 2023-09-28", (503.67, 981.73, 3892.65, 7556.66)),
        ("synthetic, fp16, 2023-09-28", (870.53, 1630.93, 6421.78, 12388.28)),
        ("synthetic, 2023-11-17", (542.91, 1020.47, 4034.92, 7655.74)),
        ("synthetic, fp16, 2023-11-17", (902.57, 1694.43, 6440.36, 12066.58)),
        ("synthetic, 2024-02-29", (530.74, 1048.76, 4000.25, 7685.47)),
        ("synthetic, fp16, 2024-02-29", (931.08, 1725.14, 6419.29, 12042.89)),
    ),
    *_csc("LUMI", "run_clm",
        ("synthetic, 2023-09-28", (22.5, 43.37, 145.513, 231.133)),
        ("synthetic, 2023-11-17", (21.671, 41.527, 116.601, 162.697)),
    ),
    _strong("ARCHER", GROMACS, "nc2", (2, 4, 8, 16, 32, 64, 128, 256), 0.044, 0.085, 0.14, 0.243,
        0.406, 0.631, 0.826, 0.885),
    _strong("ARCHER", GROMACS, "1400k 1 thread", _TO_128, 1.037, 2.09, 3.818, 7.005, 10.206,
        17.897, 28.9945, 29.1145),
    _strong("ARCHER", GROMACS, "1400k 2 SMT", _TO_128, 1.216, 2.432, 4.256, 7.447, 14.195, 21.753,
        25.542, 20.994),
    _strong("Isambard", GROMACS, "1400k", _TO_32, 1.134, 2.553, 4.763, 8.259, 9.943, 16.109),
    _strong("Isambard", CASTEP, "al3x3", _TO_32, 0.000842122, 0.00149959, 0.00158758, 0.00168876,
        0.00209319, 0.00272799),
    _strong("CSD3", GROMACS, "1400k", _TO_32, 2.4865, 4.887, 9.413, 17.062, 26.685, 48.443),
    _strong("CSD3", CASTEP, "al3x3", _TO_32, 0.00135891, 0.00260447, 0.00412042, 0.00592136,
        0.00695797, 0.00659239),
    _strong("Tesseract", GROMACS, "1400k", _TO_32, 1.3242, 2.625, 5.164, 9.85, 13.416, 22.575),
    _strong("Athena", CASTEP, "al3x3", _TO_16, 0.000525854, 0.00160588, 0.00254675, 0.00412831,
        0.00457763),
    _strong(PLAYBOOK, LLAMA_1B, "TP 1, ZeRO 0, batch 1", _TO_32, 314187, 601755, 1131764, 1991183,
        3135209, 4019297),
    _strong(PLAYBOOK, LLAMA_1B, "TP 1, ZeRO 1, batch 1", _TO_32, 312045, 603168, 1150428, 2003005,
        2821318, 2899648),
    _strong(PLAYBOOK, LLAMA_1B, "TP 2, ZeRO 0, batch 1", _TO_32, 234190, 451060, 862852, 1475997,
        2727204, 3957622),
    _strong(PLAYBOOK, LLAMA_1B, "TP 2, ZeRO 1, batch 1", _TO_32, 223017, 454479, 856115, 1590314,
        2631418, 3339771),
    _strong(PLAYBOOK, LLAMA_1B, "TP 4, ZeRO 1, batch 1", _TO_32, 112377, 220060, 440973, 819487,
        1570441, 2464960),
    _strong(PLAYBOOK, LLAMA_8B, "TP 2, ZeRO 1, batch 1", _TO_32, 57128, 112558, 217070, 405553,
        687652, 903572),
    _strong(PLAYBOOK, LLAMA_8B, "TP 4, ZeRO 1, batch 1", _TO_32, 49905, 99032, 192575, 363080,
        640346, 894702),
    _strong(PLAYBOOK, LLAMA_8B, "TP 8, ZeRO 0, batch 8", _TO_32, 47270, 102668, 178968, 243677,
        771617, 1389550),
    _strong("pypop", "pypop example", "runtime", _TO_16, 1e6 / 21898659.14, 1e6 / 11528373.56,
        1e6 / 6082352.21, 1e6 / 3513565.33, 1e6 / 2339560.72),
)
# fmt: on
