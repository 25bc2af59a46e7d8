"""A second toy benchmark beside the first, and an experiment of both."""

import shutil
from pathlib import Path

# The same program in less time, with one parameter of its own in the place of another.
_OTHERS = {
    "benchmark.yaml": {
        "name: toy": "name: toy_fast",
        "  rate: {type: number, minimum: 0, default: 1.0, doc: a number}":
        "  speed: {type: number, minimum: 0, default: 2.0, doc: how fast}",
        "when: rate > 100": "when: speed > 100",
    },
    "main.py": {
        '1.0 + 0.01 * run["repeat"]': '0.6 + 0.011 * run["repeat"]',
    },
}  # fmt: skip

BOTH = """
    benchmark: [toy, toy_fast]
    scaling: weak
    axes: {ranks: [1, 2]}
    fixed: {size: 3}
    fixed_of: {toy: {rate: 2.0, threads: 3}, toy_fast: {threads: 1}}
    repeats: 2
"""


def add_toy_fast(benchmarks: Path) -> None:
    """Put it beside ``toy`` in the folder of the benchmarks."""
    folder = benchmarks / "toy_fast"
    shutil.copytree(benchmarks / "toy", folder)
    for name, changes in _OTHERS.items():
        text = (folder / name).read_text()
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        (folder / name).write_text(text)
