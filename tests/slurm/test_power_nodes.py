"""Samplers on every node of a job, beside the program's own step."""

import csv
from pathlib import Path

import pytest

from tests.fakes.sysfs import Rising, samplers, zone
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: c
site: toy_cluster
experiments:
  e:
    benchmark: toy
    fixed: {ranks: 2, ranks_per_node: 1, behaviour: slow}
"""


@pytest.mark.measured
def test_power_of_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    package = zone(tmp_path / "sys", "intel-rapl:0", "package-0")
    power = f"power: {{interval_s: 0.2, sources: [rapl], sysfs: {tmp_path / 'sys'}}}\n"
    project = slurm_project(tmp_path / "p", cluster, more=power)
    with Rising({package: 100.0}):
        project.campaign(CAMPAIGN)
    (run_id,) = project.run_ids().values()
    record = project.result(run_id, "record.json")
    energy = record["energy"]
    assert energy["missing"] is None, energy
    assert len(energy["hosts"]) == 2 and set(energy["hosts"]) <= set(cluster.nodes)
    # Both nodes are this machine: each reads the same counter.
    first, second = (of["rapl:package-0"]["joules"] for of in energy["domains"].values())
    assert abs(first - second) < 0.02 * first
    assert energy["joules"] == first + second and energy["sampler_cpu_s"] > 0
    assert 0.7 * 200 < energy["mean_watts"] < 1.05 * 200
    (path,) = project.path.glob(f"results/runs/*/{run_id}/power.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["host"] for row in rows} == set(energy["hosts"])
    # The program had its step to itself: the other one ends after it.
    (job,) = project.jobs(run_id)
    assert job["state"] == "COMPLETED"
    assert wait_until(lambda: not samplers(project.path), 10)
