"""The reduced CNN campaigns through Snakemake with real training, fewer steps and one repeat."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Project
from tests.workflow.small_campaigns import SHORTER, table

pytestmark = pytest.mark.slow

CNN = [
    f"{campaign}_{name}"
    for campaign in (
        "cnn_layout",
        "cnn_variable_update",
        "cifar10_scaling",
        "cnn_gpus",
        "cnn_input",
    )
    for name in SHORTER[campaign]
]


def test_every_point_has_a_rate_or_is_unsupported(small_campaigns: Project) -> None:
    results = small_campaigns.path / "results"
    plan = json.loads((results / "plan.json").read_text())
    report = (results / "report.html").read_text()
    names = [experiment["name"] for experiment in plan["experiments"]]
    for experiment in CNN:
        place = names.index(experiment)
        statuses = {run["status"] for run in plan["experiments"][place]["runs"]}
        assert statuses <= {"done", "unsupported"}, experiment
        rates = table(small_campaigns, experiment, "points")["total_images_per_second_mean_run"]
        assert (rates.dropna() > 0).all()
        assert f'id="e{place + 1}"' in report


def test_layouts(small_campaigns: Project) -> None:
    points = table(small_campaigns, "cnn_layout_cifar10", "points")
    assert len(points) == 2 and points["repeats"].eq(1).all()
    comparisons = table(small_campaigns, "cnn_layout_cifar10", "comparisons")
    ratios = comparisons.query("parameter == 'data_format'")
    assert ratios["value"].tolist() == ["NCHW"] and (ratios["ratio"] > 0).all()


def test_variable_updates(small_campaigns: Project) -> None:
    both = table(small_campaigns, "cnn_variable_update_processes", "points")
    assert set(both["variable_update"]) == {"collective_all_reduce", "horovod"}
    assert both["repeats"].eq(1).all() and set(both["devices"]) == {1, 2}
    points: pd.DataFrame = table(small_campaigns, "cnn_variable_update_all_reduce", "points")
    reductions = points.set_index("all_reduce")["repeats"]
    assert reductions.to_dict() == {"hierarchical_copy": 1, "nccl": 0}
    report = (small_campaigns.path / "results" / "report.html").read_text()
    assert "all_reduce nccl" in report and "1 unsupported" in report
    rows = table(small_campaigns, "cnn_variable_update_processes", "scaling").query("devices == 2")
    assert len(rows) == 2 and (rows["total_images_per_second_eff_run"] > 0).all()


def test_cifar10_scaling(small_campaigns: Project) -> None:
    points = table(small_campaigns, "cifar10_scaling_horovod", "points")
    assert points["repeats"].eq(1).all() and len(points) == 4
    figures = small_campaigns.path / "results" / "figures" / "cifar10_scaling_horovod"
    assert {"size-run.svg", "overview-run.svg"} <= {path.name for path in figures.iterdir()}


def test_which_gpus(small_campaigns: Project) -> None:
    name, titles = "env.CUDA_VISIBLE_DEVICES", ("cnn_gpus_each_gpu", "cnn_gpus_pairs")
    each, pairs = (set(table(small_campaigns, title, "points")[name]) for title in titles)
    assert each == {"0", "1"} and pairs == {"0,5", "0,1"}
    paths = small_campaigns.path.glob("results/runs/*/cnn_training-*/record.json")
    seen = {
        (record["point"][name], *record["environment"]["ranks"]["visible_gpus"]["values"])
        for record in map(json.loads, map(Path.read_text, paths))
        if record["point"].get(name)
    }
    assert seen == {("0", "0"), ("1", "1"), ("0,5", "0,5"), ("0,1", "0,1")}
    ratios = table(small_campaigns, "cnn_gpus_pairs", "comparisons")
    assert ratios[["parameter", "value", "reference"]].to_numpy().tolist() == [[name, "0,1", "0,5"]]
    figures = small_campaigns.path / "results" / "figures" / "cnn_gpus_pairs"
    assert "parameter.svg" in {path.name for path in figures.iterdir()}


def test_convergence(small_campaigns: Project) -> None:
    """Epochs are validated and their accuracy is in tables, figures and the report."""
    experiment = "cifar10_convergence_ranks"
    epochs = table(small_campaigns, experiment, "epochs").groupby("ranks")
    assert set(epochs.groups) == {1, 2}
    best = epochs["validation_accuracy"].max()
    assert (best > 0.8).all() and (epochs["loss"].last() < epochs["loss"].first()).all()
    accuracy = table(small_campaigns, experiment, "accuracy")
    assert accuracy["samples"].tolist() == [512, 512]
    assert accuracy["reached"].tolist() == (best >= 0.9).astype(int).tolist()
    points = table(small_campaigns, experiment, "points")
    assert points["final_validation_accuracy_mean_run"].tolist() == pytest.approx(
        epochs["validation_accuracy"].last().tolist()
    )
    figures = small_campaigns.path / "results" / "figures" / experiment
    assert {"accuracy-time.svg", "accuracy-loss.svg"} <= {path.name for path in figures.iterdir()}


def test_the_grid_and_a_metric_of_its_own(small_campaigns: Project) -> None:
    """What the benchmark cannot combine is left out; a stated metric stands among the measured."""
    points = table(small_campaigns, "cnn_grid_grid", "points")
    modes = points.groupby("variable_update")["devices"].apply(set).to_dict()
    assert modes == {"replicated": {1}, "horovod": {1, 2}}
    rates = points["total_images_per_second_mean_run"] / points["devices"]
    assert points["images_per_thread_mean_run"].tolist() == pytest.approx(rates.tolist())
    results = small_campaigns.path / "results"
    plan = json.loads((results / "plan.json").read_text())
    (grid,) = (each for each in plan["experiments"] if each["name"] == "cnn_grid_grid")
    (left_out,) = grid["excluded"]
    assert left_out["point"]["devices"] == 2 and "one process" in left_out["reason"]
    report = (results / "report.html").read_text()
    assert "Images per thread" in report and "use collective_all_reduce" in report
