"""torch_scaling_small, shortened, as jobs of Slurm: srun starts the ranks, on two nodes too."""

from pathlib import Path

import pandas as pd
import yaml

from scalesweep.core.rank_columns import machine_names
from scalesweep.core.record import read_record
from tests.conftest import ROOT, make_project
from tests.fakes.torch_python import TORCH, needs_torch
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import SlurmProject

pytestmark = [*needs_slurm, needs_torch]
# By experiment what differs from the campaign: shards over two nodes, two stages on one.
LESS = {
    "weak_scaling": {
        "axes": {"ranks": [2], "data_parallel": ["fsdp2"]}, "scaling": "none",
        "fixed": {"ranks_per_node": 1},
    },
    "layouts": {"linked": [{"batch_size": 8, "pp": 2, "micro_batches": 4}], "fixed": {}},
}  # fmt: skip
SHORT = {"layers": 2, "warmup_batches": 1, "batches": 3}


def test_layouts_train_on_one_node_and_on_two(cluster: Cluster, tmp_path: Path) -> None:
    campaign = yaml.safe_load(
        (ROOT / "config/campaigns/small/torch_scaling_small.yaml").read_text()
    )
    experiments = {
        name: campaign["experiments"][name] | less
        | {"fixed": campaign["experiments"][name]["fixed"] | SHORT | less["fixed"], "repeats": 1}
        for name, less in LESS.items()
    }  # fmt: skip
    project = SlurmProject(make_project(tmp_path / "project").path, cluster)
    site = project.path / "config" / "sites" / "test_cluster.yaml"
    text = site.read_text()
    assert text.count(" .torch/bin/python") == 1
    site.write_text(text.replace(" .torch/bin/python", f" {TORCH}"))
    project.campaign(yaml.safe_dump(campaign | {"experiments": experiments}))

    results = project.path / campaign["results"]
    summary = pd.read_parquet(results / "summary.parquet").set_index("pp")
    assert summary["ranks"].tolist() == [2, 2]
    nodes, sizes = {}, {}
    for pp, run_id in summary["run_id"].items():
        (path,) = results.glob(f"runs/*/{run_id}/record.json")
        record = read_record(path)
        nodes[pp] = machine_names(record["resources"])
        sizes[pp] = record["metrics"]["model_parameters"]["value"]
        assert record["notes"]["exchange"]["backend"] == "gloo"
        assert record["metrics"]["samples_per_second"]["value"] > 0
    assert len(set(nodes[1])) == 2 and len(set(nodes[2])) == 1
    assert sizes[1] == sizes[2]  # the same network, in shards and in stages
