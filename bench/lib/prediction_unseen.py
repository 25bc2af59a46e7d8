"""Published series on which nothing was calibrated: an independent test of predictions.

TensorFlow's benchmarks of 2017 on one machine, images/s on 1, 2, 4 and 8 GPUs at the same batch for
each GPU (github.com/tensorflow/docs, 62da04c, ``site/en/r1/guide/performance/benchmarks.md``): all
columns of its tables of the NVIDIA DGX-1 (P100), Google Compute Engine and Amazon EC2 (K80) that
have all four counts. "batch 32" are its tables of other results.
"""

from collections.abc import Mapping

import numpy as np

from scalesweep.analysis.prediction.series import Series, make_series

GPUS = (1, 2, 4, 8)
# Models in the order of the page: InceptionV3, ResNet-50, ResNet-152, AlexNet, VGG16.
TABLES: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "DGX-1, synthetic": (
        (142, 284, 569, 1131), (219, 422, 852, 1734), (91.8, 181, 356, 716),
        (2987, 5658, 10509, 17822), (154, 295, 584, 1081),
    ),
    "DGX-1, real": (
        (142, 278, 551, 1079), (218, 425, 853, 1630), (91.4, 179, 359, 708), (154, 284, 534, 898),
    ),
    "DGX-1, synthetic, batch 32": (
        (128, 259, 520, 995), (195, 368, 768, 1485), (82.7, 160, 317, 632), (144, 281, 549, 820),
    ),
    "DGX-1, real, batch 32": (
        (130, 257, 507, 966), (193, 369, 760, 1410), (82.4, 159, 317, 609), (144, 253, 457, 690),
    ),
    "GCE, synthetic": (
        (30.5, 57.8, 116, 227), (51.9, 99.0, 195, 387), (20.0, 38.2, 75.8, 148),
        (656, 1209, 2328, 4640), (35.4, 64.8, 120, 234),
    ),
    "GCE, real": (
        (30.6, 58.4, 115, 225), (51.2, 98.8, 194, 381), (20.0, 38.3, 75.4, 148),
        (639, 1136, 2067, 4056), (34.2, 62.9, 118, 230),
    ),
    "GCE, synthetic, batch 32": ((29.3, 55.0, 109, 216), (49.5, 95.4, 183, 362)),
    "GCE, real, batch 32": ((29.5, 55.4, 110, 216), (49.3, 95.3, 186, 359)),
    "EC2, synthetic": (
        (30.8, 58.7, 117, 230), (51.5, 98.0, 195, 384), (19.7, 37.6, 74.9, 149),
        (684, 1244, 2479, 4853), (36.3, 69.4, 141, 260),
    ),
    "EC2, real": (
        (30.5, 59.0, 118, 228), (51.3, 94.9, 188, 373), (19.7, 38.2, 75.2, 149),
        (36.3, 67.5, 136, 242),
    ),
    "EC2, synthetic, batch 32": ((29.9, 57.5, 114, 216), (49.0, 94.1, 184, 355)),
    "EC2, real, batch 32": ((30.0, 57.5, 113, 212), (49.1, 95.1, 185, 353)),
}  # fmt: skip


def unseen() -> list[Series]:
    """All of them, as weak-scaling series: the work of a GPU stays the same."""
    counts = np.array(GPUS, np.float64)
    return [make_series(counts, counts / rates) for table in TABLES.values() for rates in table]
