"""The loop of cnn_training's steps, for bench/torch_loop.py: lines as in `torch_loops`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow" / "benchmarks"))

from harness import import_without

import_without("pandas", "scipy", "PIL")

import tensorflow as tf  # noqa: F401  (before the modules that need it)
import yaml

from cnn_training import cluster, updates
from harness import ranks


def main() -> None:
    """Answer lines until standard input ends."""
    ranks.use("tensorflow")
    declared = Path(updates.__file__).with_name("benchmark.yaml").read_text()
    specs = yaml.safe_load(declared)["parameters"]
    params = {name: spec["default"] for name, spec in specs.items()} | json.loads(sys.argv[1])
    place = cluster.Place(0, 1, "CPU", ["/device:CPU:0"], (0, 0))
    trainer = updates.make(params, place, None)
    print(flush=True)
    for line in sys.stdin:
        trainer.run(int(line.split()[1]))
        print(flush=True)


if __name__ == "__main__":
    main()
