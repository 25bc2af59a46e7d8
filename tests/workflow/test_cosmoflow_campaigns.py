"""The reduced CosmoFlow training campaign through Snakemake: really trained, with one repeat."""

import json

import pytest

from tests.conftest import Project
from tests.workflow.small_campaigns import table


@pytest.mark.slow
def test_the_reduced_campaign_trains_to_its_target(small_campaigns: Project) -> None:
    results = small_campaigns.path / "results"
    paths = list(results.glob("runs/local/cosmoflow_training-*/record.json"))
    assert len(paths) == 6  # three of weak scaling, two to a target, one of input_bound
    for path in paths:
        record = json.loads(path.read_text())
        point, metrics = record["point"], record["metrics"]
        assert [name for name, *_ in record["phase_spans"]].count("training") == (
            metrics["epochs_run"]["value"]
        )
        assert ("final_mae" in metrics) == (point["input"] == "tfrecords")
        assert ("time_to_target" in metrics) == (point["target_mae"] is not None)
        if point["target_mae"] is not None:
            assert metrics["final_validation_mae"]["value"] <= point["target_mae"] == 0.1

    points = table(small_campaigns, "cosmoflow_training_time_to_target", "points")
    assert points["ranks"].tolist() == [1, 2]
    assert (points["time_to_target_mean_run"] > 0).all()
    epochs = table(small_campaigns, "cosmoflow_training_time_to_target", "epochs")
    assert epochs.groupby("run_id")["validation_mae"].last().le(0.1).all()
    comparisons = table(small_campaigns, "cosmoflow_training_weak_scaling", "comparisons")
    ratios = comparisons.query("parameter == 'input'")
    assert set(ratios["value"]) == {"dummy"}
    assert (ratios["ratio"] > 0).all()
    strong = table(small_campaigns, "cosmoflow_training_time_to_target", "scaling")
    assert strong["ranks"].tolist() == [1, 2]
