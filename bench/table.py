"""Run the benchmarks one after the other, then print all their figures as one table.

Each script leaves results/bench/<script>.json; the table (what was measured, its bound, whether it
is within it, and the script) is left in results/bench/table.json, with the machine and how busy it
was before each script. A script that fails does not keep the others from running; the exit code is
then 1. It is 0 where a bound is missed, because on a machine that does other work at the same time
a bound says little; the table says NO, and its last line how often.

    python -m bench.table [SCRIPT ...] [--read]
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bench.lib.pairs import within

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "bench"
from scalesweep.core.host import host_facts
from scalesweep.planning.plan_text import aligned

SCRIPTS = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "table")
)  # fmt: skip
# Share of the cores' time that others used while nothing was measured, in the seconds before a
# script: more than this is other work. (The load average still has the script before in it.)
BUSY, LOOK_S = 0.1, 2.0
WORDS = {True: "yes", False: "NO", None: ""}


def run(script: str, results: Path) -> bool:
    """Run one script, its output shown as it comes; whether it succeeded."""
    print(f"== {script}", flush=True)
    report = results / f"{script}.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"bench.{script}", "--json", str(report)]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        print(f"error: {script}: exit code {done.returncode}", file=sys.stderr, flush=True)
    return done.returncode == 0


def rows_of(script: str, results: Path) -> list[dict[str, Any]]:
    """The figures that a script has left; none if it has left no file."""
    try:
        figures = json.loads((results / f"{script}.json").read_text())["figures"]
    except FileNotFoundError:
        return []
    return [{**row, "within": within(row), "script": script} for row in figures]


def text_of(rows: list[dict[str, Any]]) -> str:
    """The table for people; the last line counts the bounds."""
    cells = [("figure", "measured", "unit", "bound", "within", "script")]
    for row in rows:
        sign = ">=" if row["better"] == "higher" else "<="
        bound = "" if row["bound"] is None else f"{sign} {row['bound']:.4g}"
        value = f"{row['value']:.4g}" if abs(row["value"]) < 1000 else f"{row['value']:,.0f}"
        cells.append((row["name"], value, row["unit"], bound, WORDS[row["within"]], row["script"]))
    lines = aligned(cells, left={0, 2, 4, 5})
    lines.insert(1, "-" * max(map(len, lines)))
    bounded = [row for row in rows if row["within"] is not None]
    missed = sum(not row["within"] for row in bounded)
    return "\n".join([*lines, "", f"{len(bounded) - missed} of {len(bounded)} bounds are kept"])


def main() -> int:
    """Run the command line; 1 if a script failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=", ".join(SCRIPTS))
    parser.add_argument("--read", action="store_true", help="run nothing; print what is there")
    args = parser.parse_args()
    if unknown := [name for name in args.scripts if name not in SCRIPTS]:
        parser.error(f"no benchmark {unknown[0]!r}; allowed: {', '.join(SCRIPTS)}")
    scripts = args.scripts or SCRIPTS
    RESULTS.mkdir(parents=True, exist_ok=True)
    others, failed = {}, []
    for script in () if args.read else scripts:
        others[script] = psutil.cpu_percent(LOOK_S) / 100
        if not run(script, RESULTS):
            failed.append(script)
    rows = [row for script in scripts for row in rows_of(script, RESULTS)]
    print(f"\n{text_of(rows)}")
    if busy := [script for script, value in others.items() if value > BUSY]:
        print(f"other work was going on before: {', '.join(busy)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    if not args.read:
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        table = {
            "ended": ended, "machine": host_facts(), "busy": others, "failed": failed,
            "figures": rows,
        }  # fmt: skip
        (RESULTS / "table.json").write_text(json.dumps(table, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
