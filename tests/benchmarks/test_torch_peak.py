"""torch_peak: what it counts, and what it leaves."""

import numpy as np
import pytest

from tests.benchmarks.programs import PYTORCH, Program, read, start_torch_ranks, warm
from tests.fakes.torch_python import needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

SMALL = {"sizes": [32, 64], "repeats": 3, "seconds_per_repeat": 0, "threads": 1}
PROGRAM = Program("torch_peak", SMALL)


def start(folder, **params):
    path, out = PROGRAM.write_run(folder, None, **params)
    words = [*warm(PROGRAM.name, PYTORCH), "--run", str(path)]
    ranks = start_torch_ranks(words, params.get("ranks", 1))
    assert [each.returncode for each in ranks] == [0] * len(ranks), ranks[0].stderr[-4000:]
    return read(ranks[0], out)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_of_two_ranks_are_counted_and_timed(tmp_path, dtype):
    native, samples = start(tmp_path, dtype=dtype, ranks=2, ranks_per_node=2)
    assert samples["sweep_seconds"].shape == (2, 3, 2)
    amounts = np.array([[2 * 2 * 32**3], [2 * 2 * 64**3]])
    best = (amounts / samples["sweep_seconds"].max(axis=2)).max()
    assert native["metrics"]["flops"]["value"] == pytest.approx(best)
    sweep, value = native["notes"]["sweep"], {"float32": 4, "bfloat16": 2}[dtype]
    assert sweep["amounts"] == amounts.ravel().tolist()
    assert sweep["moved"] == [2 * 3 * value * size**2 for size in (32, 64)]
    assert all(calls % 4 == 0 for calls in sweep["calls"])  # of a chain
    if native["notes"]["tf32"]["device"] == "CPU":
        assert native["notes"]["devices"] == ["CPU", "CPU"]
