"""Helper of test_torch_training: train in several ways, in one process a rank.

``train_torch.py FOLDER STEPS CASE...``, on every rank; a CASE is JSON, all parameters. Rank r
writes ``FOLDER/case<number>-rank<r>.npz``: `losses` of the steps, `weights` after them (all in a
row), `input_sums` of each micro-batch. A case ``"place": [i, n]`` trains on
share i of n instead of the rank's, one with ``"data"`` from that folder.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from harness import ranks, torch_ranks

ranks.use("torch")

from torch_training import benchmark, inputs, steps


def train(params, data, place, count):
    device = torch_ranks.device()
    shared, optimizer = benchmark.build(params, device)
    assert inputs.check(params, data, place, device) is None
    read = inputs.make(params, data, place, device)
    sums = [float(images.double().sum()) for images, _ in read()]
    taken = steps.take(shared, optimizer, read, count)
    weights = torch.cat([p.detach().flatten() for p in shared.parameters()])
    return {"losses": taken.losses, "weights": weights.numpy(), "input_sums": np.array(sums)}


def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    cases = [json.loads(text) for text in sys.argv[3:]]
    ranks.start(cases[0]["ranks"], 1, 1)
    for number, case in enumerate(cases):
        place = inputs.Place(*case.pop("place", (ranks.rank(), ranks.size())))
        data = Path(case["data"]) if "data" in case else None
        arrays = train(case, data, place, count)
        np.savez(folder / f"case{number}-rank{ranks.rank()}.npz", **arrays)
    ranks.stop()
    ranks.end(0)


if __name__ == "__main__":
    main()
