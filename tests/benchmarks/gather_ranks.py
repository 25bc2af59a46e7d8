"""Helper of test_harness: gather from two ranks in many small pieces; rank 0 writes JSON.

``gather_ranks.py REPORT FRAMEWORK``, on two ranks. Those of torch take a few steps before.
"""

import json
import sys
from pathlib import Path

import numpy as np

from harness import ranks
from harness.program import ProgramError

ranks.use(sys.argv[2])
ranks.start(2)
ranks.GATHER_BYTES = 5 * 8 * 2  # five values of each rank at a time
if sys.argv[2] == "torch":
    import torch

    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(4):
        layer(torch.ones(8, 64)).sum().backward()
        torch.distributed.all_reduce(layer.weight.grad)
        optimizer.step()
mine = np.arange(12.0).reshape(4, 3) + 100 * ranks.rank()
whole = ranks.gather(mine)
none = ranks.gather(np.empty(0))
texts = ranks.gather_json({"rank": ranks.rank(), "text": "x" * (3 + 5 * ranks.rank())})
mean = ranks.mean_over_ranks({"a": ranks.rank(), "b": 2})
ok = [ranks.barrier(True), ranks.barrier(ranks.rank() == 0)]
try:
    ranks.raise_together((65, "it broke") if ranks.rank() == 1 else None)
except ProgramError as error:
    raised = [error.code, str(error)]
if ranks.rank() == 0:
    report = {
        "whole": whole.tolist(),
        "empty": list(none.shape),
        "texts": texts,
        "ok": ok,
        "mean": mean,
        "raised": raised,
        "place": [ranks.rank(), ranks.size(), ranks.first_on_host()],
    }
    Path(sys.argv[1]).write_text(json.dumps(report))
else:
    assert whole is None
    assert raised == [65, ""]
ranks.stop()
ranks.end(0)
