"""What every benchmark program needs: ranks, timing of epochs, facts about the run, its result.

Runs on compute nodes with the site's own Python, NumPy and framework, so nothing else is imported
here. `ranks` imports the framework that a benchmark chooses.
"""

import os
import sys

# Before TensorFlow's first import: the tf.keras that Horovod 0.28 knows, and no start-up chatter.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow leaves oneDNN out on CPUs without AVX512-VNNI and the like, and convolutions of NCHW
# with it: the same kernels everywhere, unless the site says otherwise.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def import_without(*packages: str) -> None:
    """Hide packages that a framework imports only where it finds them.

    Keras loads pandas, SciPy and Pillow for functions that few programs call: about a fifth of the
    seconds that importing TensorFlow takes, and on every rank. To be called before that import.
    """
    for package in packages:
        sys.modules.setdefault(package, None)  # type: ignore[arg-type]
