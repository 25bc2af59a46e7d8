"""torch_scaling_small, shortened: shards, tensor and pipeline parallelism through Snakemake."""

import json

import pandas as pd
import pytest

from tests.conftest import Project
from tests.fakes.torch_python import needs_torch
from tests.workflow.small_campaigns import table

pytestmark = [pytest.mark.slow, needs_torch]


def test_shards_scale_and_layouts_train(small_campaigns: Project) -> None:
    scaling = table(small_campaigns, "torch_scaling_weak_scaling", "scaling")
    assert scaling["ranks"].tolist() == [1, 2]
    assert scaling["samples_per_second_eff_run"].gt(0).all()
    points = table(small_campaigns, "torch_scaling_layouts", "points").set_index(["tp", "pp"])
    assert set(points.index) == {(2, 1), (1, 2)}
    assert points["tokens_per_second_mean_run"].tolist() == pytest.approx(
        (64 * points["samples_per_second_mean_run"]).tolist()
    )
    assert points["peak_rss_mean_run"].gt(1e8).all()
    # Each layout trains the same network on the same samples.
    assert points["model_parameters_mean_run"].nunique() == 1
    losses = points["final_loss_mean_run"].tolist()
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_layouts_say_what_they_wait_for(small_campaigns: Project) -> None:
    """Shards for weights and gradients, tp for parts of each layer, a pipeline for a neighbour,
    a single rank for nobody."""
    summary = pd.read_parquet(small_campaigns.path / "results" / "summary.parquet")
    rows = summary[summary["model"] == "transformer"]
    waits = {}
    for run in rows.to_dict("records"):
        account = json.loads(run["_account"])
        assert account["form"] == "steps" and account["compute"] > 0
        parts = account["forward"] + account["backward"] + account["optimizer"]
        assert parts == pytest.approx(account["compute"], rel=0.05)
        shape = run["ranks"], run["tp"], run["pp"]
        waits[shape] = {
            name for name in ("sharded", "tensor", "pipeline") if account.get(name, 0) > 0
        }
    assert waits == {
        (1, 1, 1): set(), (2, 1, 1): {"sharded"}, (2, 2, 1): {"tensor"},
        (2, 1, 2): {"pipeline"},
    }  # fmt: skip


def test_the_step_of_a_mesh_is_taken_apart(small_campaigns: Project) -> None:
    """Terms add up to the step; exchange by the axis that the layout has; a pipeline's idle time
    stands beside the formula."""
    steps = table(small_campaigns, "torch_scaling_layouts", "mesh_steps")
    for _, rows in steps.groupby(["tp", "pp"]):
        assert rows["value"].sum() == pytest.approx(rows["step"].iloc[0])
    terms = steps.set_index(["tp", "pp", "term"])["value"]
    assert terms[2, 1, "tensor"] > 0 and (2, 1, "pipeline") not in terms.index
    assert terms[1, 2, "pipeline"] > 0 and (1, 2, "tensor") not in terms.index
    # The campaign's own probe says what products of float32 could reach.
    assert (terms.xs("least", level="term") > 0).all()
    assert (terms.xs("recompute", level="term") == 0).all()
    idle = table(small_campaigns, "torch_scaling_layouts", "pipeline_idle")
    (row,) = idle.to_dict("records")
    assert (row["stages"], row["virtual_stages"], row["micro_batches"]) == (2, 1, 2)
    assert row["formula"] == 0.5 and row["idle"] > 0
