"""Helper of test_planted_runs: steps that meet in an allreduce of Horovod.

``late_horovod.py RANK MS``: that rank waits so long for its input in each step.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "resources" / "spans"))

import horovod.tensorflow as hvd
import tensorflow as tf
from scalesweep_spans import Spans

STEPS, COMPUTE_S = 14, 0.02


def main():
    hvd.init()
    late = float(sys.argv[2]) / 1e3 if hvd.rank() == int(sys.argv[1]) else 0.0
    spans, gradient = Spans(), tf.ones(1000)
    hvd.allreduce(gradient)  # ranks start together
    for _ in range(STEPS):
        spans.begin("input")
        time.sleep(late)
        spans.at("compute")
        time.sleep(COMPUTE_S)
        spans.at("communication")
        hvd.allreduce(gradient)
        spans.end(samples=8)


if __name__ == "__main__":
    main()
