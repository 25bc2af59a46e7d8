"""A project whose toy benchmark runs as jobs of a test cluster."""

import csv
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, Project, make_project
from tests.fakes.snakemake_calls import call, python
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
SNAKEMAKE = ("-P", "-m", "snakemake", "--seconds-between-status-checks", "1")


@dataclass
class SlurmProject(Project):
    """A copy of the project beside a cluster."""

    cluster: Cluster
    profile: str = "slurm"

    def environment(self, **more: str | None) -> Mapping[str, str]:
        """What a user of the cluster has: an empty home, and SLURM_CONF; None takes one away."""
        home = self.path / "home"
        home.mkdir(exist_ok=True)
        all_of_it = {
            **self.cluster.environment,
            "HOME": str(home),
            "PYTHONPATH": str(ROOT / "plugins"),
            **more,
        }
        return {name: value for name, value in all_of_it.items() if value is not None}

    def start(self, *words: str, **more: str | None) -> "subprocess.Popen[str]":
        """Start Snakemake with the Slurm profile; its output goes to the file ``out``."""
        return self._start([sys.executable, *SNAKEMAKE, *words], **more)

    def run(self, *words: str, **more: str | None) -> "subprocess.Popen[str]":
        """Start ``scalesweep run``, which waits for the jobs of earlier calls first."""
        call = ["-m", "scalesweep", "run", *words, "--profile", self.profile, "--", *SNAKEMAKE[3:]]
        with (self.path / "out").open("w") as out:
            return subprocess.Popen(
                [sys.executable, *call], cwd=self.path, text=True,
                env=self.environment(**more), stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def watch(self, *words: str, **more: str | None) -> "subprocess.Popen[str]":
        """``start`` for a call that is not to be ended by a signal: forked from a process that has
        imported Snakemake (``fakes.snakemake_calls``)."""
        return self._start([python(), *SNAKEMAKE[1:], *words], **more)

    def _start(self, words: list[str], **more: str | None) -> "subprocess.Popen[str]":
        with (self.path / "out").open("w") as out:
            return subprocess.Popen(
                [*words, "--profile", self.profile], cwd=self.path, text=True,
                env=self.environment(**more), stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def slurm(self, *words: str, **more: str | None) -> tuple[int, str]:
        """Call Snakemake with the Slurm profile; exit code and what it says."""
        words = (*SNAKEMAKE[3:], *words, "--profile", self.profile)
        done = call("snakemake", words, self.path, self.environment(**more), seconds=400)
        return done.returncode, done.stdout + done.stderr

    def campaign(self, text: str, *words: str, code: int = 0) -> str:
        """Write the campaign c.yaml and have Snakemake run it as jobs; what it says."""
        self.write("c.yaml", text)
        ended, said = self.slurm(*words, "--configfile", "c.yaml")
        assert ended == code and "Traceback" not in said, said
        return said

    def _call(
        self, module: str, words: Sequence[str], minutes: int = 7
    ) -> subprocess.CompletedProcess[str]:
        return call(module, words, self.path, self.environment(), seconds=60 * minutes)

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
