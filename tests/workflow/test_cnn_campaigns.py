"""The reduced CNN campaigns through Snakemake with real training, fewer steps and one repeat."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.conftest import Project, make_project
from tests.workflow.warm_site import start_warm

pytestmark = pytest.mark.slow

CAMPAIGNS = Path(__file__).resolve().parents[2] / "config" / "campaigns"
# Over processes: on TensorFlow's servers and under Horovod. That every mode trains is tested where
# they are (test_cnn_updates).
MODES = ["collective_all_reduce", "horovod"]


def shortened(name: str, *without: str, **axes: dict[str, Any]) -> str:
    """A shipped campaign with one repeat, few steps and, by experiment, fewer values."""
    content = yaml.safe_load((CAMPAIGNS / f"{name}.yaml").read_text())
    content["results"] = "results"
    for title in without:
        del content["experiments"][title]
    for title, experiment in content["experiments"].items():
        experiment["repeats"] = 1
        experiment["fixed"] |= {"warmup_batches": 1, "batches": 4}
        experiment["axes"] |= axes.get(title, {})
    return yaml.safe_dump(content, sort_keys=False)


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    return start_warm(make_project(tmp_path / "project"))


def run(folder: Project, text: str) -> dict[str, pd.DataFrame]:
    """Run a campaign; returns the points of each experiment, all with a rate unless unsupported."""
    folder.write("c.yaml", text)
    done = folder.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    results = folder.path / "results"
    plan = json.loads((results / "plan.json").read_text())
    points = {}
    for experiment in plan["experiments"]:
        statuses = {run["status"] for run in experiment["runs"]}
        assert statuses <= {"done", "unsupported"}, experiment["name"]
        name = experiment["name"]
        points[name] = pd.read_parquet(results / "tables" / name / "points.parquet")
        rates = points[name]["total_images_per_second_mean_run"]
        assert (rates.dropna() > 0).all()
        assert f'id="e{len(points)}"' in (results / "report.html").read_text()
    return points


def test_layouts(folder: Project) -> None:
    points = run(folder, shortened("cnn_layout_small", cifar10={"model": ["resnet20"]}))["cifar10"]
    assert len(points) == 2 and points["repeats"].eq(1).all()
    table = folder.path / "results" / "tables" / "cifar10" / "comparisons.parquet"
    ratios = pd.read_parquet(table).query("parameter == 'data_format'")
    assert ratios["value"].tolist() == ["NCHW"] and (ratios["ratio"] > 0).all()


def test_variable_updates(folder: Project) -> None:
    fewer = {"processes": {"variable_update": MODES}}
    points = run(folder, shortened("cnn_variable_update_small", "one_process", **fewer))
    both = points["processes"]
    assert set(both["variable_update"]) == set(MODES)
    assert both["repeats"].eq(1).all() and set(both["devices"]) == {1, 2}
    reductions = points["all_reduce"].set_index("all_reduce")["repeats"]
    assert reductions.to_dict() == {"hierarchical_copy": 1, "reduction_to_one": 1, "nccl": 0}
    report = (folder.path / "results" / "report.html").read_text()
    assert "all_reduce nccl" in report and "1 unsupported" in report
    scaling = folder.path / "results" / "tables" / "processes" / "scaling.parquet"
    rows = pd.read_parquet(scaling).query("devices == 2")
    assert len(rows) == 2 and (rows["total_images_per_second_eff_run"] > 0).all()


def test_cifar10_scaling(folder: Project) -> None:
    fewer = {"horovod": {"model": ["alexnet", "resnet20"]}}
    points = run(folder, shortened("cifar10_scaling_small", "parameter_server", **fewer))
    assert points["horovod"]["repeats"].eq(1).all() and len(points["horovod"]) == 4
    figures = {path.name for path in (folder.path / "results" / "figures" / "horovod").iterdir()}
    assert "size-run.svg" in figures and "overview-run.svg" in figures


def test_which_gpus(folder: Project) -> None:
    name = "env.CUDA_VISIBLE_DEVICES"
    fewer = {"each_gpu": {name: ["0", "1"]}, "pairs": {"variable_update": ["independent"]}}
    text = shortened("cnn_gpus_small", "scaling", "layouts", **fewer)
    points = run(folder, text)
    assert {title: set(rows[name]) for title, rows in points.items()} == {
        "each_gpu": {"0", "1"}, "pairs": {"0,5", "0,1"},
    }  # fmt: skip
    paths = folder.path.glob("results/runs/*/*/record.json")
    seen = {
        (record["point"][name], *record["environment"]["ranks"]["visible_gpus"]["values"])
        for record in map(json.loads, map(Path.read_text, paths))
    }
    assert seen == {("0", "0"), ("1", "1"), ("0,5", "0,5"), ("0,1", "0,1")}
    ratios = pd.read_parquet(folder.path / "results" / "tables" / "pairs" / "comparisons.parquet")
    assert ratios[["parameter", "value", "reference"]].to_numpy().tolist() == [[name, "0,1", "0,5"]]
    figures = {path.name for path in (folder.path / "results" / "figures" / "pairs").iterdir()}
    assert "parameter.svg" in figures


def test_convergence(folder: Project) -> None:
    """Epochs are validated and their accuracy is in tables, figures and the report."""
    text = shortened("cifar10_convergence_small", "devices")
    points = run(folder, text)["ranks"]
    tables = folder.path / "results" / "tables" / "ranks"
    epochs = pd.read_parquet(tables / "epochs.parquet").groupby("ranks")
    assert set(epochs.groups) == {1, 2}
    best = epochs["validation_accuracy"].max()
    assert (best > 0.8).all() and (epochs["loss"].last() < epochs["loss"].first()).all()
    accuracy = pd.read_parquet(tables / "accuracy.parquet")
    assert accuracy["samples"].tolist() == [512, 512]
    assert accuracy["reached"].tolist() == (best >= 0.9).astype(int).tolist()
    assert points["final_validation_accuracy_mean_run"].tolist() == pytest.approx(
        epochs["validation_accuracy"].last().tolist()
    )
    figures = {path.name for path in (folder.path / "results" / "figures" / "ranks").iterdir()}
    assert {"accuracy-time.svg", "accuracy-loss.svg"} <= figures


def test_the_grid_and_a_metric_of_its_own(folder: Project) -> None:
    """What the benchmark cannot combine is left out; a stated metric stands among the measured."""
    fewer = {"inter_threads": [2], "batch_size": [8], "variable_update": ["replicated", "horovod"]}
    text = shortened("cnn_grid_small", grid=fewer)
    content = yaml.safe_load(text)
    formula = "total_images_per_second / (devices * intra_threads)"
    stated = {"images_per_thread": {"formula": formula, "unit": "images/s", "scope": "rank"}}
    content["experiments"]["grid"] |= {"metrics": stated, "main_metric": "images_per_thread"}
    points = run(folder, yaml.safe_dump(content, sort_keys=False))["grid"]
    modes = points.groupby("variable_update")["devices"].apply(set).to_dict()
    assert modes == {"replicated": {1}, "horovod": {1, 2}}
    rates = points["total_images_per_second_mean_run"] / points["devices"]
    assert points["images_per_thread_mean_run"].tolist() == pytest.approx(rates.tolist())
    plan = json.loads((folder.path / "results" / "plan.json").read_text())
    (left_out,) = plan["experiments"][0]["excluded"]
    assert left_out["point"]["devices"] == 2 and "one process" in left_out["reason"]
    report = (folder.path / "results" / "report.html").read_text()
    assert "Images per thread" in report and "use collective_all_reduce" in report
