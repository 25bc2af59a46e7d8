"""Memory and disk that per-rank arrays take: step times of 1,024 ranks x 1,000 steps.

As many values as that are gathered from the real ranks that fit here (1,024,000 over all of
them), then 16 times as many: how much rank 0 and the others grow meanwhile (VmHWM, reset before).
Rank 0 then writes the 1,000 x 1,024 as every program of ours does, and reads them back.

    python -m bench.gather [--json FILE] [--ranks 4]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, line, write_json

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


def main() -> None:
    """Measure and print rows; with --json also write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    measured = gather(args.ranks)
    rest = PIECES * measured["piece_bytes"]
    rows = []
    for measurement, times in zip(measured["gathered"], (1, TIMES), strict=True):
        first, *others = measurement["growth_bytes"]
        many = "" if times == 1 else f"{times} x "
        rows += [
            figure(
                f"gathering {many}1,024 x 1,000: rank 0 grows by", first / MB, "MB",
                (times * RAW_BYTES + rest) / MB,
            ),
            figure(
                f"gathering {many}1,024 x 1,000: another rank grows by", max(others) / MB, "MB",
                rest / MB,
            ),
        ]  # fmt: skip
    measurement = measured["gathered"][0]
    rows += [
        figure(
            "their file / raw float64",
            measurement["file_bytes"] / measurement["raw_bytes"],
            "x",
            SIZE_BOUND,
        ),
        figure("writing it once", measurement["write_seconds"], "s"),
        figure("writing it: rank 0 grows by", measurement["write_growth_bytes"] / MB, "MB"),
    ]
    print(*map(line, rows), sep="\n")
    # 1,024 ranks x 1,000 steps are one piece: 8.2 MB of at most 8.4 MB.
    steps = measured["piece_bytes"] // (8 * RANKS)
    details = {"ranks": args.ranks, "steps_in_a_piece_at_1024_ranks": steps, **measured}
    write_json({**details, "figures": rows}, args.json)


if __name__ == "__main__":
    main()
