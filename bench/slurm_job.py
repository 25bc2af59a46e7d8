"""What a Slurm job of a run holds its nodes for beyond the benchmark program.

A job of this workflow, and one of a Snakefile of seven lines with Snakemake's Slurm executor, are
submitted to a Slurm of one node that this program boots. Then the two batch scripts, as Slurm has
them, run here in turn, several times: seconds and CPU seconds beyond the program's own time.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run

ROOT = Path(__file__).resolve().parents[1]
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.support import slurm_project

CAMPAIGN = """\
campaign: c
site: toy_cluster
experiments:
  e:
    benchmark: toy
    axes: {{size: {{from: 1, to: 100, step: 1}}}}
    fixed: {{ranks: 1, ranks_per_node: 1}}
    repeats: {repeats}
"""
MINIMAL = """\
rule all:
    input: "done"
rule run:
    output: "done"
    resources: mpi="", runtime=5, mem_mb=1024
    shell: "sleep 2; touch done"
"""
# Both programs take so long: Snakemake, which counts jobs by the second, ends no sooner.
PROGRAM_S = 2.0


def batch_script(cluster: Cluster, folder: Path, words: list[str]) -> Path:
    """Submit one job by calling Snakemake in ``folder``; its batch script."""
    env = {**cluster.environment, "HOME": str(folder)}
    every = ("squeue", "-h", "-tall", "-o%A")
    before = set(cluster.run(*every).split())
    command = [sys.executable, "-m", "snakemake", "--jobs", "1", *words]
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        jobs: list[str] = []

        def submitted() -> bool:
            jobs[:] = set(cluster.run(*every).split()) - before
            return bool(jobs)

        if not wait_until(submitted, 60):
            raise SystemExit(f"{folder}: no job was submitted")
        path = folder / "job.sh"
        cluster.run("scontrol", "write", "batch_script", jobs[0], str(path))
        cluster.run("scancel", jobs[0])
        process.kill()
    wait_until(lambda: not cluster.run("squeue", "-h").strip(), 30)
    return path


def carry_out(script: Path, env: dict[str, str]) -> tuple[float, float]:
    """Seconds and CPU seconds of a batch script run here."""
    before, clock = os.times(), time.perf_counter()
    subprocess.run(["bash", script], cwd=script.parent, env=env, check=True, capture_output=True)
    wall, after = time.perf_counter() - clock, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return wall, cpu


def measure(points: int = 1000, rounds: int = 7) -> Iterator[dict[str, Any]]:
    """Medians of so many pairs, of a campaign of so many runs, in hundreds."""
    with tempfile.TemporaryDirectory(prefix="b-") as name, Cluster(f"{name}/c", nodes=1) as cluster:
        ours = slurm_project(Path(name, "p"), cluster).path
        site = ours / "config" / "sites" / "toy_cluster.yaml"
        text = site.read_text().replace(
            '[srun, "--mpi=none", -N, "1", -n, "1", -c, "{cpus_per_rank}"]', "[]"
        )
        site.write_text(f"{text}prologue: [sleep {PROGRAM_S}]\n")
        (ours / "c.yaml").write_text(CAMPAIGN.format(repeats=points // 100))
        minimal = Path(name, "m")
        minimal.mkdir()
        (minimal / "Snakefile").write_text(MINIMAL)
        words = ["--profile", "slurm", "--configfile", "c.yaml"]
        scripts = {
            "this workflow": batch_script(cluster, ours, words),
            "seven lines": batch_script(cluster, minimal, ["--executor", "slurm"]),
        }
        env = {**cluster.environment, "SLURM_JOB_ID": "1000000"}  # after all that were submitted
        beyond: dict[str, list[tuple[float, float]]] = {key: [] for key in scripts}
        for _ in range(rounds):
            for key, script in scripts.items():
                wall, cpu = carry_out(script, env)
                program = PROGRAM_S
                if key == "this workflow":
                    (record,) = ours.glob("results/runs/*/*/record.json")
                    program = json.loads(record.read_text())["wall_s"]
                beyond[key].append((wall - program, cpu))
                for made in (*ours.glob("results/runs/*/*/record.json"), minimal / "done"):
                    made.unlink(missing_ok=True)
    for key, pairs in beyond.items():
        held, cpu = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        yield figure(f"a job of {key}: held beyond the program", held, "s")
        yield figure("  its CPU seconds", cpu, "s")
    ratios = [a[0] / b[0] for a, b in zip(*beyond.values(), strict=True)]
    yield figure("held, to a Snakefile of seven lines", statistics.median(ratios), "x")


if __name__ == "__main__":
    run(measure)
