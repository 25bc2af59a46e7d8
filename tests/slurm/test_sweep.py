"""A real sweep through `snakemake --profile slurm`: TensorFlow and Horovod across slurmds."""

from pathlib import Path

import pytest
import yaml

from scalesweep.core.rank_columns import by_rank, machine_column, machine_names
from tests.conftest import ROOT
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import MPI, needs_slurm, why_no_mpi
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: sweep
site: test_cluster
experiments:
  uneven:
    benchmark: data_loading
    axes: {ranks: [3]}
    fixed: &small
      ranks_per_node: 2
      sample_shape: [16, 16, 16, 4]
      samples_per_rank: 8
      validation_samples_per_rank: 4
      epochs: 3
"""
# On MPI the uneven run alone.
WEAK = """\
  weak:
    benchmark: data_loading
    scaling: weak
    axes: {ranks: [1, 2]}
    fixed: {<<: *small, ranks_per_node: 1}
"""


@pytest.mark.parametrize(
    "controller",
    [
        "gloo",
        pytest.param("mpi", marks=pytest.mark.skipif(bool(why_no_mpi()), reason=why_no_mpi())),
    ],
)
def test_ranks_read_on_as_many_nodes(cluster: Cluster, tmp_path: Path, controller: str) -> None:
    project = slurm_project(tmp_path / "p", cluster)
    site = yaml.safe_load((ROOT / "config" / "sites" / "test_cluster.yaml").read_text())
    planned, more = ["1", "2", "3"], WEAK
    if controller == "mpi":
        planned, more = ["3"], ""
        # Nothing but these words and variables makes a site one of MPI.
        words = ["srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-N", "{nodes}", "-n", "{ranks}"]
        site["launch"] = {key: [*words, "-c", "{cpus_per_rank}"] for key in ("single", "multi")}
        site["env"] |= MPI
    site["prologue"] = ["export TF_FROM_PROLOGUE=here"]
    (project.path / "config" / "sites" / "test_cluster.yaml").write_text(yaml.safe_dump(site))
    project.write("sweep.yaml", CAMPAIGN + more)
    code, said = project.slurm("--configfile", "sweep.yaml")
    failures = [path.read_text() for path in project.path.glob("results/runs/*/*/failure.json")]
    if controller == "mpi" and any("Segmentation fault" in text for text in failures):
        # Open MPI was seen to die at its start where cores were short, before our code had begun.
        code, said = project.slurm("--configfile", "sweep.yaml")
    assert code == 0, said
    ids = project.run_ids()
    assert sorted(ids) == planned
    for ranks, run_id in ids.items():
        count, each = int(ranks), 2 if ranks == "3" else 1
        record = project.result(run_id, "record.json")
        nodes = by_rank(machine_column(record["resources"]), count)
        names = machine_names(record["resources"])
        assert set(names) <= set(cluster.nodes)
        assert nodes == [name for name in names for _ in range(each)][:count]
        assert record["notes"]["exchange"]["backend"] == controller
        mpi = record["environment"]["versions"]["mpi"]
        assert mpi.startswith("Open MPI v") if controller == "mpi" else mpi is None
        assert all(by_rank(record["environment"]["ranks"]["affinity"], count))
        variables = record["environment"]["variables"]
        assert variables["TF_FROM_PROLOGUE"] == "here"
        assert variables["HOROVOD_CONTROLLER"] == controller
        asked = record["resources"]["slurm"]
        job = project.jobs(run_id)[-1]
        assert (asked["nodes"], asked["job_id"]) == (len(names), int(job["job_id"]))
        assert (job["state"], int(job["nodes"])) == ("COMPLETED", len(names))
        assert float(job["program_s"]) == pytest.approx(record["wall_s"], abs=1e-3)
    page = project.report()
    assert f"{len(ids)} of {len(ids)} runs done" in page and 'id="jobs"' in page
    # Staging was a job; planning, tables, figures and the report were not.
    logs = project.path / "results" / "logs" / "slurm" / "test_cluster"
    assert {path.name for path in logs.iterdir()} == {*ids.values(), "stage"}
