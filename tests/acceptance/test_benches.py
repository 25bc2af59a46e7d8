"""Every bench of the folder bench/ ends with figures: each in its shortest form."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fakes.torch_python import needs_torch

pytestmark = pytest.mark.slow

NAMES = sorted(
    path.stem
    for path in (ROOT / "bench").glob("*.py")
    if path.stem not in ("__init__", "table")  # which runs the others
)
SMALL = "--repeats 1 --largest 2 --rounds 1"
SHORTEST = {
    "best_layout": "--campaigns 1",
    "ceilings": "--rounds 20",
    "clear": "--experiments 4",
    "cnn_training": "--rounds 1 --steps 1",
    "comparisons": "--comparisons 5",
    "data_loading": "--rounds 1 --edge 8 --samples 32",
    "execute": "--runs 100 --starts 3",
    "history": "--series 1 --years 1 --sessions 40",
    "late_ranks": "--recordings 2",
    "layouts": "--sweeps 1",
    "log_warm_up": "--runs 2",
    "noop": "--runs 100 --rounds 1",
    "prediction": "--series 1",
    "probes": "--rounds 1",
    "refresh": SMALL,
    "repeats": "--rounds 2",
    "report": SMALL,
    "spans_protocol": "--rounds 1",
    "step_causes": "--campaigns 1",
    "summaries": "--repeats 1 --largest 2",
    "torch_loop": "--rounds 1",
    "torch_stamps": "--rounds 1",
    "traces": "--megabytes 1",
}
# Their shortest form takes more than 4 s of CPU.
LONG = (
    *("clear", "cnn_training", "comparisons", "data_loading", "execute", "history"),
    *("noop", "prediction", "probes", "refresh", "repeats", "report"),
    *("summaries", "torch_loop", "torch_stamps", "traces"),
)


def case(name: str) -> Any:
    marks = [pytest.mark.whole] if name in LONG else []
    if name.startswith("torch_"):
        marks.append(needs_torch)
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [case(name) for name in NAMES])
def test_a_bench_ends_with_figures(name: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", f"bench.{name}", "--json", str(tmp_path / "figures.json")]
    words += SHORTEST.get(name, "").split()
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert figures and all({"name", "value", "unit", "bound"} <= row.keys() for row in figures)
