"""Shards of a PyTorch campaign, shortened, as a job of Slurm: srun starts ranks on two nodes."""

from pathlib import Path

import yaml

from scalesweep.core.rank_columns import machine_names
from scalesweep.core.record import read_record
from tests.conftest import ROOT
from tests.fakes.torch_python import TORCH, needs_torch
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import slurm_project

pytestmark = [*needs_slurm, needs_torch]
CAMPAIGN = ROOT / "config" / "campaigns" / "small" / "torch_scaling_small.yaml"
SHORT = {"ranks_per_node": 1, "layers": 2, "warmup_batches": 1, "batches": 3}


def test_shards_train_on_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    campaign = yaml.safe_load(CAMPAIGN.read_text())
    experiment = campaign["experiments"]["weak_scaling"]
    experiment |= {"scaling": "none", "repeats": 1, "fixed": experiment["fixed"] | SHORT}
    experiment["axes"] = {"ranks": [2], "data_parallel": ["fsdp2"]}
    project = slurm_project(tmp_path / "p", cluster)
    site = project.path / "config" / "sites" / "test_cluster.yaml"
    text = site.read_text()
    assert text.count(" .torch/bin/python") == 1
    site.write_text(text.replace(" .torch/bin/python", f" {TORCH}"))
    only = campaign | {"experiments": {"weak_scaling": experiment}}
    project.campaign(yaml.safe_dump(only), "--until", "run")
    (path,) = project.path.glob(f"{campaign['results']}/runs/*/*/record.json")
    record = read_record(path)
    assert len(set(machine_names(record["resources"]))) == 2
    assert record["notes"]["exchange"]["backend"] == "gloo"
    assert record["metrics"]["samples_per_second"]["value"] > 0
