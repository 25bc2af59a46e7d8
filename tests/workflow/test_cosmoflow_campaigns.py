"""The reduced CosmoFlow training campaign through Snakemake: really trained, with one repeat."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.conftest import make_project
from tests.workflow.warm_site import start_warm

CAMPAIGNS = Path(__file__).resolve().parents[2] / "config" / "campaigns"


def shortened() -> str:
    """The shipped campaign with one repeat, fewer points, one epoch where nothing is to be met."""
    content = yaml.safe_load((CAMPAIGNS / "cosmoflow_training_small.yaml").read_text())
    content["results"] = "results"
    experiments = content["experiments"]
    for name, experiment in experiments.items():
        experiment["repeats"] = 1
        shorter = {"target_mae": 0.1, "epochs": 16} if name == "time_to_target" else {"epochs": 1}
        experiment["fixed"] |= shorter
    experiments["weak_scaling"]["exclude"] = ["ranks == 2 and input == 'dummy'"]
    return yaml.safe_dump(content, sort_keys=False)


@pytest.mark.slow
def test_the_reduced_campaign_trains_to_its_target(tmp_path: Path) -> None:
    folder = start_warm(make_project(tmp_path / "project"))
    folder.write("c.yaml", shortened())
    done = folder.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    results = folder.path / "results"
    plan = json.loads((results / "plan.json").read_text())
    assert {run["status"] for each in plan["experiments"] for run in each["runs"]} == {"done"}

    for path in results.glob("runs/local/*/record.json"):
        record = json.loads(path.read_text())
        point, metrics = record["point"], record["metrics"]
        assert [name for name, *_ in record["phase_spans"]].count("training") == (
            metrics["epochs_run"]["value"]
        )
        assert ("final_mae" in metrics) == (point["input"] == "tfrecords")
        assert ("time_to_target" in metrics) == (point["target_mae"] is not None)
        if point["target_mae"] is not None:
            assert metrics["final_validation_mae"]["value"] <= point["target_mae"] == 0.1

    def table(experiment: str, name: str) -> pd.DataFrame:
        return pd.read_parquet(results / "tables" / experiment / f"{name}.parquet")

    points = table("time_to_target", "points")
    assert points["ranks"].tolist() == [1, 2]
    assert (points["time_to_target_mean_run"] > 0).all()
    epochs = table("time_to_target", "epochs")
    assert epochs.groupby("run_id")["validation_mae"].last().le(0.1).all()
    ratios = table("weak_scaling", "comparisons").query("parameter == 'input'")
    assert set(ratios["value"]) == {"dummy"}
    assert (ratios["ratio"] > 0).all()
    strong = table("strong_scaling", "scaling")
    assert strong["ranks"].tolist() == [1, 2]
    assert (results / "report.html").stat().st_size > 10_000
