"""A project whose toy benchmark runs as jobs of a test cluster."""

import csv
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, Project, make_project
from tests.fakes.snakemake_calls import python
from tests.slurm.cluster import Cluster

SITE = """\
site: toy_cluster
nodes: 4
cores_per_node: 2
memory_gib_per_node: 2
time_limit_minutes: 5
launch:
  single: [srun, "--mpi=none", -N, "1", -n, "1", -c, "{cpus_per_rank}"]
  multi: [srun, "--mpi=none", -N, "{nodes}", -n, "{ranks}", -c, "{cpus_per_rank}"]
"""
# As a user would, but looking at the queue often.
OFTEN = ("--seconds-between-status-checks", "1")
PROFILE = ("--profile", "slurm")


@dataclass
class SlurmProject(Project):
    """A copy of the project beside a cluster."""

    cluster: Cluster
    # Of the environment, None takes one away.
    variables: Mapping[str, str | None] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """What a user of the cluster has: an empty home, and SLURM_CONF."""
        home = super().environment()["HOME"]
        own = {"HOME": home, "PYTHONPATH": str(ROOT / "plugins")}
        every = {**self.cluster.environment, **own, **self.variables}
        return {name: value for name, value in every.items() if value is not None}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start Snakemake with the Slurm profile; its output goes to the file ``out``."""
        return self._start(sys.executable, "-P", "-m", "snakemake", *words, *OFTEN, *PROFILE)

    def run(self, *words: str) -> "subprocess.Popen[str]":
        """Start ``scalesweep run``, which waits for the jobs of earlier calls first."""
        words = ("-m", "scalesweep", "run", *words, *PROFILE, "--", *OFTEN)
        return self._start(sys.executable, *words)

    def watch(self, *words: str) -> "subprocess.Popen[str]":
        """``start`` for a call that is not to be ended by a signal: forked from a process that has
        imported Snakemake (``fakes.snakemake_calls``)."""
        return self._start(python(), "-m", "snakemake", *words, *OFTEN, *PROFILE)

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        with (self.path / "out").open("w") as out:
            return subprocess.Popen(
                words, cwd=self.path, text=True, env=self.environment(), stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def snakemake(self, *words: str, minutes: int = 7) -> "subprocess.CompletedProcess[str]":
        """Call Snakemake with the Slurm profile, for so long at most."""
        return super().snakemake(*words, *OFTEN, *PROFILE, minutes=minutes)

    def slurm(self, *words: str) -> tuple[int, str]:
        """Likewise; exit code and what it says."""
        done = self.snakemake(*words)
        return done.returncode, done.stdout + done.stderr

    def run_ids(self) -> dict[str, str]:
        """Behaviour of the toy (ranks, where it is good) -> run id, from the plan."""
        odd = ("", "good", None)
        return {
            row["ranks"] if row.get("behaviour") in odd else row["behaviour"]: row["run_id"]
            for row in self.plan()
        }

    def jobs(self, run_id: str) -> list[dict[str, str]]:
        """Rows of jobs.csv of a run, in the order of their jobs."""
        with (self.path / "results" / "jobs.csv").open(newline="") as file:
            return [row for row in csv.DictReader(file) if row["run_id"] == run_id]

    def result(self, run_id: str, name: str) -> dict[str, Any]:
        """record.json or failure.json of a run."""
        (path,) = self.path.glob(f"results/runs/*/{run_id}/{name}")
        content = json.loads(path.read_text())
        assert isinstance(content, dict)
        return content

    def submitted(self) -> int:
        """How many jobs the cluster's accounting knows, some seconds late."""
        return len(self.cluster.run("sacct", "-nXa", "--format=jobid").split())


def slurm_project(
    folder: Path, cluster: Cluster, slurm: str = "{}", more: str = ""
) -> SlurmProject:
    """A new project with a site ``toy_cluster`` that has this ``slurm`` section."""
    project = make_project(folder)
    (project.path / "config" / "sites" / "toy_cluster.yaml").write_text(
        f"{SITE}{more}slurm: {slurm}\n"
    )
    return SlurmProject(project.path, cluster)
