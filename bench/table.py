"""Run the benchmarks one after the other; their figures go into one page of the documentation.

bench/figures.json keeps the figures of each script's last run, with date, machine and how busy it
was before; docs/reference/figures.md shows them. A script that fails does not keep the others from
running; the exit code is then 1. It is 0 where a bound is missed, because on a machine that does
other work at the same time a bound says little; the page says NO.

    python -m bench.table [SCRIPT ...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bench.lib.pairs import within
from scalesweep.core.host import host_facts

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "bench" / "figures.json", ROOT / "docs" / "reference" / "figures.md"
SCRIPTS = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "table")
)  # fmt: skip
# Seconds before a script in which others may use the cores; the load average still has the script
# before in it.
LOOK_S = 2.0
WORDS = {True: "yes", False: "NO", None: ""}
HEAD = """<!-- bench/table.py writes this page -->

# Figures of scalesweep itself

Written by `make bench`: each script's last run, with the share of the cores that others used.
What the figures are of: [bench](../../bench/README.md).
"""


def run(script: str) -> dict[str, Any] | None:
    """Run one script, its output shown as it comes; return its figures, None if it failed."""
    print(f"== {script}", flush=True)
    busy, machine = psutil.cpu_percent(LOOK_S) / 100, host_facts()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "figures.json"
        command = [sys.executable, "-m", f"bench.{script}", "--json", str(report)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode:
            print(f"error: {script}: exit code {done.returncode}", file=sys.stderr, flush=True)
            return None
        figures = json.loads(report.read_text())["figures"]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{machine['cpu_model']}, {machine['cores']} cores",
        "busy": round(busy, 2),
        "figures": figures,
    }


def page_of(kept: dict[str, Any]) -> str:
    """Return the page: a section for each script, a row for each of its figures."""
    lines = [HEAD]
    for script, of_run in sorted(kept.items()):
        lines += [f"## {script}\n", "{date}, {machine}, busy {busy:.0%}\n".format(**of_run)]
        lines += ["| figure | measured | unit | bound | kept |", "|---|--:|---|--:|---|"]
        for row in of_run["figures"]:
            sign = ">=" if row["better"] == "higher" else "<="
            bound = "" if row["bound"] is None else f"{sign} {row['bound']:,.4g}"
            cells = (row["name"], f"{row['value']:,.4g}", row["unit"], bound, WORDS[within(row)])
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Run the command line; 1 if a script failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=", ".join(SCRIPTS))
    scripts = parser.parse_args().scripts or SCRIPTS
    if unknown := [name for name in scripts if name not in SCRIPTS]:
        parser.error(f"no benchmark {unknown[0]!r}; allowed: {', '.join(SCRIPTS)}")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    failed = []
    for script in scripts:
        if (of_run := run(script)) is None:
            failed.append(script)
            continue
        kept[script] = of_run
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page_of(kept))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    print(f"figures: {PAGE.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
