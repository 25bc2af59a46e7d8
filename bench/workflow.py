"""What Snakemake costs on a large finished campaign, against an empty Snakefile.

Pairs in one run: `snakemake -n` on a finished campaign of N made-up runs and on an empty Snakefile,
in turn; the ratio of every pair, and its median. The same with ten new points to plan.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pairs import write_json

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PARTS = ("Snakefile", "scalesweep", "workflow", "config", "profiles", "resources")
CAMPAIGN = """campaign: large
site: local
experiments:
  grid:
    benchmark: toy
    axes:
      size: {{from: 1, to: {sizes}, step: 1}}
    repeats: 10
"""


def make_project(folder: Path, runs: int) -> None:
    """A project whose campaign of ``runs`` runs of the tests' toy benchmark is all done."""
    for part in PARTS:
        source = ROOT / part
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / part)
    shutil.copytree(ROOT / "tests" / "toy", folder / "workflow" / "benchmarks" / "toy")
    sizes = runs // 10
    (folder / "c.yaml").write_text(CAMPAIGN.format(sizes=sizes))
    (folder / "more.yaml").write_text(CAMPAIGN.format(sizes=sizes + 1))
    text = (folder / "workflow" / "benchmarks" / "toy" / "benchmark.yaml").read_text()
    (folder / "workflow" / "benchmarks" / "toy" / "benchmark.yaml").write_text(
        text.replace("maximum: 1000", f"maximum: {runs}").replace("size > 500", f"size > {runs}")
    )
    script = """
import sys
from pathlib import Path
sys.path.insert(0, ".")
from scalesweep.campaign import load_campaign
from scalesweep.plan import build_plan, stamp_state, write_plan
from scalesweep.record import write_record
from scalesweep.store import scan
campaign = load_campaign(Path("c.yaml"))
for run_id, (experiment, run) in campaign.unique_runs().items():
    write_record(campaign.runs_folder / run_id, dict(
        run_id=run_id, benchmark="toy", version=1, point=run.point, repeat=run.repeat,
        site="local", source="simulated", started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:01+00:00", wall_s=1.0, attempt=1, phases={}, metrics={}, work={},
        resources={}, environment={}, notes={}, git=None, command=[]))
states = scan(campaign.runs_folder, campaign.unique_runs())
stamp_state(campaign, states)
write_plan(campaign, build_plan(campaign, states), as_json=True)
for name in ("summary.parquet", "jobs.csv", "tables/.snakemake_timestamp",
             "figures/.snakemake_timestamp", "report.html"):
    path = campaign.results / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
"""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, env=env)


def seconds(folder: Path, *words: str) -> tuple[float, str]:
    """Wall time of one Snakemake call, in seconds, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-c1", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - began, done.stdout + done.stderr


def compare(
    folder: Path, empty: Path, words: list[str], expect: str, rounds: int
) -> dict[str, float]:
    """Medians of ``rounds`` interleaved pairs: a call here, and an empty Snakefile's no-op."""
    here, there = [], []
    for _ in range(rounds):
        there.append(seconds(empty)[0])
        took, said = seconds(folder, *words)
        assert expect in said, said[-2000:]
        here.append(took)
    ratios = [a / b for a, b in zip(here, there, strict=True)]
    return {
        "seconds": statistics.median(here),
        "empty_seconds": statistics.median(there),
        "ratio": statistics.median(ratios),
    }


def main() -> None:
    """Measure and print a table; with --json also write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, empty = Path(scratch) / "large", Path(scratch) / "empty"
        folder.mkdir()
        empty.mkdir()
        shutil.copytree(ROOT / "profiles", empty / "profiles")  # the same scheduler and settings
        (empty / "Snakefile").write_text('rule all:\n    input: "there"\n')
        (empty / "there").touch()
        make_project(folder, args.runs)
        nothing, planned = "Nothing to be done", "Job stats"
        seconds(folder, "--configfile", "c.yaml", "-n")  # bytecode and the page cache
        found = {
            f"no-op at {args.runs} finished runs": compare(
                folder, empty, ["--configfile", "c.yaml"], nothing, args.rounds
            ),
            "dry run with ten new runs": compare(
                folder, empty, ["--configfile", "more.yaml", "-n"], planned, args.rounds
            ),
        }
    print(f"{'':40} {'seconds':>8} {'empty':>8} {'ratio':>6}   (bounds: 1.5 and 2)")
    for name, row in found.items():
        print(f"{name:40} {row['seconds']:8.2f} {row['empty_seconds']:8.2f} {row['ratio']:6.2f}")
    write_json(found, args.json)


if __name__ == "__main__":
    main()
