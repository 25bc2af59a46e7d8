"""Helper of test_harness: gather from two ranks in many small pieces, and fail together.

``gather_ranks.py FRAMEWORK``, on two ranks; what comes out is compared here. Those of torch take a
few steps before.
"""

import sys

import numpy as np

from harness import ranks
from harness.program import ProgramError

ranks.use(sys.argv[1])
ranks.start(2)
ranks.GATHER_BYTES = 5 * 8 * 2  # five values of each rank at a time
if sys.argv[1] == "torch":
    import torch

    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(4):
        layer(torch.ones(8, 64)).sum().backward()
        torch.distributed.all_reduce(layer.weight.grad)
        optimizer.step()
rank, first = ranks.rank(), np.arange(12.0).reshape(4, 3)
whole, none = ranks.gather(first + 100 * rank), ranks.gather(np.empty(0))
texts = ranks.gather_json("x" * (3 + 5 * rank))
assert ranks.mean_over_ranks({"a": rank, "b": 2}) == {"a": 0.5, "b": 2.0}
assert [ranks.barrier(True), ranks.barrier(rank == 0)] == [True, False]
try:
    ranks.raise_together((65, "it broke") if rank == 1 else None)
    raise AssertionError
except ProgramError as error:
    assert (error.code, str(error)) == (65, "" if rank else "it broke")
assert (ranks.size(), ranks.first_on_host()) == (2, rank == 0)
if rank == 0:
    np.testing.assert_array_equal(whole, np.stack([first, first + 100], axis=-1))
    assert none.shape == (0, 2) and texts == ["xxx", "xxxxxxxx"]
else:
    assert whole is None
ranks.stop()
ranks.end(0)
