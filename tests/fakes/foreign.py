"""The foreign program of the tests: where it lies, and a site that can start it."""

from pathlib import Path

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.log_patterns import Result

FOREIGN = Path(__file__).resolve().parents[1] / "foreign"
SITE = {
    "site": "toy", "nodes": 4, "cores_per_node": 2, "oversubscribe": True,
    "launch": {"single": [], "multi": ["{python}", str(FOREIGN / "launcher.py"), "{ranks}"]},
}  # fmt: skip


def patterns(benchmark: Benchmark) -> Result:
    assert benchmark.extract is not None
    return benchmark.extract
