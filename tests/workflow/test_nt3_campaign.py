"""The reduced NT3 campaign through Snakemake: real training to its target, fewer points."""

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import Project
from tests.workflow.small_campaigns import CAMPAIGNS, table

pytestmark = pytest.mark.slow


def test_every_run_reaches_the_target(small_campaigns: Project) -> None:
    seen = 0
    for path in small_campaigns.path.glob("results/runs/*/nt3-*/record.json"):
        record = json.loads(path.read_text())
        target = record["point"]["target_accuracy"]
        if target is None:
            continue
        seen += 1
        assert target == 0.95
        assert record["metrics"]["test_accuracy"]["value"] >= target
        assert record["metrics"]["time_to_target"]["value"] > 0
        assert record["work"]["phases"] == ["training"]
    assert seen == 2  # one rank and two


def test_tables(small_campaigns: Project) -> None:
    points = table(small_campaigns, "nt3_epochs_shared", "points").set_index("ranks")
    assert points.index.tolist() == [1, 2]
    assert (points["time_to_target_mean_run"] > 0).all()
    assert (points["epochs_run_mean_run"] <= [32, 16]).all()
    epochs = table(small_campaigns, "nt3_epochs_shared", "epochs")
    assert {"epoch", "loss", "validation_accuracy", "learning_rate"} <= set(epochs.columns)
    last = epochs.groupby("ranks")["validation_accuracy"].last()
    assert (last >= 0.95).all()
    rates = epochs.groupby("ranks")["learning_rate"].max()
    assert rates[2] == pytest.approx(2 * rates[1])
    loading = table(small_campaigns, "nt3_loading", "points")
    assert set(loading["data_format"]) == {"csv", "parquet"}
    assert (loading["data_loading_time_mean_run"] > 0).all()
    phases = set(table(small_campaigns, "nt3_loading", "phases")["phase"])
    assert {"import", "data_loading", "preprocessing", "broadcast", "evaluation"} <= phases


def test_tables_of_each_format_are_staged_once(small_campaigns: Project, tmp_path: Path) -> None:
    files = sorted(path.name for path in small_campaigns.path.glob("data/nt3-*/*/part-*"))
    assert files == ["part-000000.csv"] * 4 + ["part-000000.parquet"] * 2
    again = small_campaigns.snakemake("-n", "--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
    # A table that is lost is made again before the runs that need it.
    lost = [
        *sorted(small_campaigns.path.glob("data/nt3-*/train/part-000000.csv"))[:1],
        *small_campaigns.path.glob("results/runs/*/nt3-*/record.json"),
    ]
    for place, path in enumerate(lost):
        path.rename(tmp_path / str(place))
    planned = small_campaigns.snakemake("-n", "--configfile", "c.yaml")
    assert "stage" in planned.stdout
    for place, path in enumerate(lost):
        (tmp_path / str(place)).rename(path)


def test_the_published_campaign_asks_for_memory_modes(small_campaigns: Project) -> None:
    planned = small_campaigns.snakemake("plan", "--configfile", "config/campaigns/nt3.yaml")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    for nodes in (25, 100, 400):
        for mode in ("cache", "flat"):
            requests = [line for line in planned.stdout.splitlines() if f"--nodes={nodes} " in line]
            assert any(f"--constraint=quad&{mode} " in line for line in requests)


def test_epochs_that_ranks_cannot_share_are_refused_when_planning(small_campaigns: Project) -> None:
    content = yaml.safe_load((CAMPAIGNS / "nt3.yaml").read_text())
    content["experiments"] = {"epochs_shared": content["experiments"]["epochs_shared"]}
    content["experiments"]["epochs_shared"]["axes"]["ranks"] = [25, 48]
    small_campaigns.write("refused.yaml", yaml.safe_dump(content, sort_keys=False))
    planned = small_campaigns.snakemake("plan", "--configfile", "refused.yaml")
    assert planned.returncode != 0
    message = planned.stdout + planned.stderr
    assert "total_epochs" in message and "48" in message and "Traceback" not in message
