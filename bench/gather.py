"""Memory and disk that per-rank arrays take: step times of 1,024 ranks x 1,000 steps.

As many values as that are gathered from the real ranks that fit here (1,024,000 over all of
them), then 16 times as many: how much rank 0 and the others grow meanwhile (VmHWM, reset before).
Rank 0 then writes the 1,000 x 1,024 as every program of ours does, and reads them back.

    python -m bench.gather [--ranks 4]
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run

ROOT = Path(__file__).resolve().parents[1]
STEPS, RANKS = 1000, 1024
TIMES = 16
RAW_BYTES = 8 * STEPS * RANKS
SIZE_BOUND = 2.0
# A piece as Horovod's input and output, in TensorFlow's hands and as NumPy's; a rank that is not
# the first holds no more than this whatever there is to gather.
PIECES = 4
MB = 1e6


def gather(ranks: int) -> dict[str, Any]:
    """What the ranks report."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        launcher = ROOT / "workflow" / "launchers" / "horovodrun.py"
        each = STEPS * RANKS // ranks
        words = [sys.executable, launcher, "--gloo", "-np", ranks, sys.executable]
        words += [ROOT / "bench" / "lib" / "gather_ranks.py", report, Path(scratch) / "out", ranks]
        words += [each, TIMES * each]
        done = subprocess.run(
            [str(word) for word in words], check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        measured: dict[str, Any] = json.loads(report.read_text())
        return measured


def measure(ranks: int = 4) -> Iterator[dict[str, Any]]:
    """Of so many ranks."""
    measured = gather(ranks)
    rest = PIECES * measured["piece_bytes"]
    for measurement, times in zip(measured["gathered"], (1, TIMES), strict=True):
        first, *others = measurement["growth_bytes"]
        name = f"gathering {'' if times == 1 else f'{times} x '}1,024 x 1,000"
        most = (times * RAW_BYTES + rest) / MB
        yield figure(f"{name}: rank 0 grows by", first / MB, "MB", most)
        yield figure(f"{name}: another rank grows by", max(others) / MB, "MB", rest / MB)
    once = measured["gathered"][0]
    share = once["file_bytes"] / once["raw_bytes"]
    yield figure("their file / raw float64", share, "x", SIZE_BOUND)
    yield figure("writing it once", once["write_seconds"], "s")
    yield figure("writing it: rank 0 grows by", once["write_growth_bytes"] / MB, "MB")


if __name__ == "__main__":
    run(measure)
