"""A program that knows nothing of scalesweep: prints rates and counts how often it was started."""

import argparse
import os
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
for name in ("--size", "--sizes", "--fast", "--out", "--extra"):
    parser.add_argument(name)
args = parser.parse_args()
rank = int(os.environ.get("HOROVOD_RANK", "0"))
with Path(__file__).with_name("started").open("a") as file:
    file.write(f"{rank}\n")
Path(args.out, f"rank{rank}.json").write_text(f'{{\n "peak": {1000 + rank}\n}}\n')
print(f"size {args.size}, sizes {args.sizes}, fast {args.fast}")
for step in range(3):
    print(f"step {step}: {float(args.size) * (step + 1) + rank}")
print(f"warm total: {2 * int(args.size)}.5" if args.extra != "nan" else "total: nan")
print("done", file=sys.stderr)
