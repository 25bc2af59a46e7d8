"""Helper of test_cnn_updates: train in several ways and keep every copy's weights.

``train_copies.py FOLDER STEPS CASE...``, on every rank; a CASE is JSON, the parameters that differ
from SETTINGS. Cases that TensorFlow's own clusters serve need a process of their own; others share
one. Rank r writes ``FOLDER/case<number>-rank<r>.npz``: `times`, `losses`, `spans`, ``copy<c>_<v>``
for variable v of copy c, `places` (the devices of all of these) and `cpu_seconds` of the process.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import numpy as np

from cnn_training import cluster, updates
from harness import ranks
from tests.benchmarks.cnn_programs import DEFAULTS

SETTINGS = {
    "model": "lenet",
    "data_set": "imagenet",
    "batch_size": 16,
    "optimizer": "momentum",
    "learning_rate": 0.003,
    "weight_decay": 0.01,
}


def train(params, place, steps):
    """Train as the program does."""
    trainer = updates.make(params, place, None)
    if trainer.run is None:
        return {}, []
    times, losses, spans = trainer.run(steps)
    return {"times": times, "losses": losses, "spans": spans}, trainer.copies


def main():
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    place = None
    ranks.use("tensorflow")
    for number, text in enumerate(sys.argv[3:]):
        changes = json.loads(text)
        params = DEFAULTS | SETTINGS | changes
        if place is None:
            place = cluster.join(params)
        began, devices = time.process_time(), place.devices[: params["devices_per_rank"]]
        arrays, copies = train(params, replace(place, devices=devices), steps)
        ranks.barrier()
        arrays["cpu_seconds"] = time.process_time() - began
        arrays["places"] = [each.device for copy in copies for each in copy]
        for copy, variables in enumerate(copies):
            arrays |= {f"copy{copy}_{v}": np.asarray(each) for v, each in enumerate(variables)}
        np.savez(folder / f"case{number}-rank{place.rank}.npz", **arrays)
    ranks.stop()


main()
