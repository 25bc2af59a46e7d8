"""The reduced NT3 campaign through Snakemake: real training to its target, fewer points."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.conftest import Project, make_project
from tests.workflow.warm_site import start_warm

pytestmark = pytest.mark.slow

CAMPAIGNS = Path(__file__).resolve().parents[2] / "config" / "campaigns"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The campaign with one repeat, one batch size and rate less, two readers."""
    content = yaml.safe_load((CAMPAIGNS / "nt3_small.yaml").read_text())
    content["results"] = "results"
    experiments = content["experiments"]
    del experiments["batches_and_rates"]
    for name, experiment in experiments.items():
        experiment["repeats"] = 1
        if name != "loading":
            experiment["fixed"]["filters"] = [16, 16]
    readers = experiments["loading"]["linked"]
    experiments["loading"]["linked"] = [readers[0], readers[-2]]
    experiments["loading"]["fixed"] |= {"features": 4000}
    project = start_warm(make_project(tmp_path_factory.mktemp("nt3") / "project"))
    project.write("c.yaml", yaml.safe_dump(content, sort_keys=False))
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def table(project: Project, experiment: str, name: str) -> pd.DataFrame:
    return pd.read_parquet(project.path / "results" / "tables" / experiment / f"{name}.parquet")


def test_every_run_reaches_the_target(finished: Project) -> None:
    seen = 0
    for path in finished.path.glob("results/runs/*/*/record.json"):
        record = json.loads(path.read_text())
        target = record["point"]["target_accuracy"]
        if target is None:
            continue
        seen += 1
        assert target == 0.95
        assert record["metrics"]["test_accuracy"]["value"] >= target
        assert record["metrics"]["time_to_target"]["value"] > 0
        assert record["work"]["phases"] == ["training"]
    assert seen == 3  # one rank, two, two with rows of their own


def test_tables(finished: Project) -> None:
    points = table(finished, "epochs_shared", "points").set_index("ranks")
    assert points.index.tolist() == [1, 2]
    assert (points["time_to_target_mean_run"] > 0).all()
    assert (points["epochs_run_mean_run"] <= [32, 16]).all()
    epochs = table(finished, "epochs_shared", "epochs")
    assert {"epoch", "loss", "validation_accuracy", "learning_rate"} <= set(epochs.columns)
    last = epochs.groupby("ranks")["validation_accuracy"].last()
    assert (last >= 0.95).all()
    rates = epochs.groupby("ranks")["learning_rate"].max()
    assert rates[2] == pytest.approx(2 * rates[1])
    loading = table(finished, "loading", "points")
    assert set(loading["data_format"]) == {"csv", "parquet"}
    assert (loading["data_loading_time_mean_run"] > 0).all()
    phases = set(table(finished, "loading", "phases")["phase"])
    assert {"import", "data_loading", "preprocessing", "broadcast", "evaluation"} <= phases


def test_tables_of_each_format_are_staged_once(finished: Project) -> None:
    files = sorted(path.name for path in finished.path.glob("data/nt3-*/*/part-*"))
    assert files == ["part-000000.csv"] * 4 + ["part-000000.parquet"] * 2
    again = finished.snakemake("-n", "--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
    # A table that is lost is made again before the runs that need it.
    next(iter(finished.path.glob("data/nt3-*/train/part-000000.csv"))).unlink()
    for path in finished.path.glob("results/runs/*/*/record.json"):
        path.unlink()
    planned = finished.snakemake("-n", "--configfile", "c.yaml")
    assert "stage" in planned.stdout


def test_the_published_campaign_asks_for_memory_modes(finished: Project) -> None:
    planned = finished.snakemake("plan", "--configfile", "config/campaigns/nt3.yaml")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    for nodes in (25, 100, 400):
        for mode in ("cache", "flat"):
            requests = [line for line in planned.stdout.splitlines() if f"--nodes={nodes} " in line]
            assert any(f"--constraint=quad&{mode} " in line for line in requests)


def test_epochs_that_ranks_cannot_share_are_refused_when_planning(finished: Project) -> None:
    content = yaml.safe_load((CAMPAIGNS / "nt3.yaml").read_text())
    content["experiments"] = {"epochs_shared": content["experiments"]["epochs_shared"]}
    content["experiments"]["epochs_shared"]["axes"]["ranks"] = [25, 48]
    finished.write("refused.yaml", yaml.safe_dump(content, sort_keys=False))
    planned = finished.snakemake("plan", "--configfile", "refused.yaml")
    assert planned.returncode != 0
    message = planned.stdout + planned.stderr
    assert "total_epochs" in message and "48" in message and "Traceback" not in message
