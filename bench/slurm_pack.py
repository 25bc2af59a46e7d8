"""What shared allocations save on Slurm: nodes held beyond the programs, and the campaign's time.

Sixty runs of a program that sleeps for 2 s, in four shapes (one and two nodes, one and two ranks a
node), on a Slurm of four nodes that this program boots: with a job for each run, with ``slurm:
{pack: {minutes: 10}}``, and with ``nodes: 4`` too, by which runs are measured at the same time on
nodes of their own (that no two shared a node is checked). Node-seconds are those of Slurm's
accounting, and the programs' own are those of the records. Slurm has whole seconds, of the start
and of the end of a job: the standard error of their sum is printed too, and a ratio only where what
is held beyond the programs is more than twice that.
"""

import argparse
import csv
import itertools
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, write_json

ROOT = Path(__file__).resolve().parents[1]
from tests.slurm.cluster import Cluster
from tests.slurm.support import slurm_project, stays

CAMPAIGN = """\
campaign: c
site: toy_cluster
experiments:
  e:
    benchmark: toy
    linked:
      - {{ranks: 1, ranks_per_node: 1}}
      - {{ranks: 2, ranks_per_node: 2}}
      - {{ranks: 2, ranks_per_node: 1}}
      - {{ranks: 4, ranks_per_node: 2}}
    memory_gib_per_rank: 0.1
    time_limit_minutes: 1
    expected_minutes: 0.05
    repeats: {repeats}
"""
SHAPES = 4
PROGRAM_S = 2.0
AT_ONCE = "the same, at once"


def measured(cluster: Cluster, folder: Path, slurm: str, repeats: int) -> dict[str, float]:
    """Jobs, node-seconds held, those of the programs, and seconds of one campaign."""
    more = f"prologue: [sleep {PROGRAM_S - 0.1:g}]\n"
    project = slurm_project(folder, cluster, slurm, more)
    project.write("c.yaml", CAMPAIGN.format(repeats=repeats))
    began = time.monotonic()
    code, said = project.slurm("--configfile", "c.yaml", timeout=900)
    wall_s = time.monotonic() - began
    if code:
        raise SystemExit(f"{slurm}: {said}")
    if "nodes" in slurm:
        for stay, other in itertools.combinations(stays(project), 2):
            if stay.overlaps(other) and not stay.nodes.isdisjoint(other.nodes):
                raise SystemExit(f"{stay} and {other} shared a node")
    with (project.path / "results" / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    if len(project.records()) != SHAPES * repeats:
        raise SystemExit(f"{slurm}: {len(project.records())} records")
    held = sum(int(row["nodes"]) * int(row["elapsed_s"]) for row in rows)
    programs = sum(int(row["nodes"]) * float(row["program_s"]) for row in rows)
    # Two roundings of a job, each of variance 1/12.
    error = math.sqrt(sum(int(row["nodes"]) ** 2 for row in rows) / 6)
    return {
        "jobs": float(len(rows)),
        "held_node_s": float(held),
        "program_node_s": programs,
        "beyond_node_s": held - programs,
        "error_node_s": error,
        "wall_s": wall_s,
    }


def main() -> None:
    """Boot, run both campaigns, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="of each of the four shapes")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    args = parser.parse_args()
    ways = {
        "a job for each run": "{}",
        "shared allocations": "{pack: {minutes: 10}}",
        AT_ONCE: "{pack: {minutes: 10, nodes: 4}}",
    }
    result: dict[str, Any] = {"runs": SHAPES * args.repeats}
    with tempfile.TemporaryDirectory(prefix="b-") as name, Cluster(f"{name}/c") as cluster:
        print(f"{'':20} jobs  held, node-s  programs'   beyond them  wall, s")
        for number, (key, slurm) in enumerate(ways.items()):
            row = measured(cluster, Path(name, f"p{number}"), slurm, args.repeats)
            result[key] = row
            print(
                f"{key:20} {row['jobs']:4.0f} {row['held_node_s']:13.0f}"
                f" {row['program_node_s']:10.0f} {row['beyond_node_s']:7.1f} +-"
                f"{row['error_node_s']:4.1f} {row['wall_s']:8.0f}"
            )
    alone, shared, _ = (result[key] for key in ways)
    name = f"{result['runs']} runs of 2 s in {SHAPES} shapes: node-seconds held beyond the programs"
    result["figures"] = [
        figure(f"{name}, a job for each", alone["beyond_node_s"], "node-s"),
        figure("  standard error by Slurm's whole seconds", alone["error_node_s"], "node-s"),
        figure(f"{name}, shared allocations", shared["beyond_node_s"], "node-s"),
        figure("  standard error by Slurm's whole seconds", shared["error_node_s"], "node-s"),
    ]
    if all(row["beyond_node_s"] > 2 * row["error_node_s"] for row in (alone, shared)):
        ratio = alone["beyond_node_s"] / shared["beyond_node_s"]
        result["figures"].append(figure("  a job for each over shared allocations", ratio, "x"))
    less = alone["beyond_node_s"] - shared["beyond_node_s"]
    error = math.hypot(alone["error_node_s"], shared["error_node_s"])
    print(f"held beyond the programs: {less:.0f} +- {error:.0f} node-s less in shared allocations")
    write_json(result, args.json)


if __name__ == "__main__":
    main()
