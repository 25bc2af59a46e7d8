"""The same network in TensorFlow and in PyTorch, in one experiment: both train, and compare."""

import json

import pandas as pd
import pytest

from tests.conftest import Project
from tests.fakes.torch_python import needs_torch
from tests.workflow.small_campaigns import table

pytestmark = [pytest.mark.slow, needs_torch]
NAME = "frameworks_resnet20"


def test_one_network_in_two_frameworks(small_campaigns: Project) -> None:
    points = table(small_campaigns, NAME, "points").set_index("benchmark")
    assert list(points.index) == ["cnn_training", "torch_training"]
    # Layer by layer the same, from the same weights, on as many images.
    assert points["model_parameters_mean_run"].nunique() == 1
    assert points["training_throughput_mean_run"].gt(0).all()
    ratios = table(small_campaigns, NAME, "comparisons")
    assert ratios["parameter"].tolist() == ["benchmark"] and ratios["ratio"].gt(0).all()
    assert ratios["metric"].tolist() == ["training_throughput"]

    # Both say where the time of their steps went.
    summary = pd.read_parquet(small_campaigns.path / "results" / "summary.parquet")
    planned = json.loads((small_campaigns.path / "results" / "plan.json").read_text())
    ids = {
        run["run_id"]
        for entry in planned["experiments"]
        if entry.get("part_of") == NAME
        for run in entry["runs"]
    }
    accounts = summary[summary["run_id"].isin(ids)]["_account"].map(json.loads)
    assert len(accounts) == 2 and all(account["form"] == "steps" for account in accounts)
    assert all(account["compute"] > 0 and account["transfer"] >= 0 for account in accounts)


def test_frameworks_exchange_the_same_gradients(small_campaigns: Project) -> None:
    """And each run says with which versions, and in which messages."""
    path = small_campaigns.path / "results" / "plan.json"
    plan = json.loads(path.read_text())
    exchanged, versions = {}, {}
    for entry in plan["experiments"]:
        if entry.get("part_of") == NAME:
            record = path.parent / "runs" / "local" / entry["runs"][0]["run_id"] / "record.json"
            content = json.loads(record.read_text())
            exchanged[entry["benchmark"]] = content["notes"]["exchange"]
            versions[entry["benchmark"]] = content["environment"]["versions"]
    assert {exchange["backend"] for exchange in exchanged.values()} == {"gloo"}
    sizes = [sorted(exchange["tensor_bytes"]) for exchange in exchanged.values()]
    assert sizes[0] == sizes[1]
    assert "torch" in versions["torch_training"] and "torch" not in versions["cnn_training"]
    assert pd.notna(versions["cnn_training"]["horovod"])
