"""Names of layouts: what benchmark.yaml words, what a plan has of it, and what readers see."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.core.joined_experiments import LAYOUT, shown
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import RunState


@pytest.fixture(scope="module")
def torch() -> Benchmark:
    return load_benchmark("torch_training")


def names(benchmark: Benchmark, *changes: dict[str, Any], ranks: int = 8) -> list[str]:
    """The names of layouts with these changed values."""
    points = [{**benchmark.defaults, "ranks": ranks, **change} for change in changes]
    assert benchmark.layout is not None
    layouts = benchmark.layout.named(points, [*benchmark.parameters], "ranks", benchmark.defaults)
    return [] if layouts is None else [known["name"] for known in layouts["names"]]


def test_a_layout_is_named_by_what_is_not_the_default(torch: Benchmark) -> None:
    fsdp2 = {"data_parallel": "fsdp2"}
    assert names(torch, {}, fsdp2, {**fsdp2, "dp_shard": 2, "tp": 2}, {"tp": 8}) == [
        "ddp", "fsdp2", "fsdp2, dp_shard 2, tp 2", "ddp, tp 8"
    ]  # fmt: skip
    assert names(torch, {}, {"tp": 2, "pp": 2}, {"pp": 4}) == ["tp 1, pp 1", "tp 2, pp 2", "pp 4"]
    # One that varies, and the directions of a grid, keep their own names.
    assert names(torch, {}, fsdp2) == []
    assert names(torch, *({"tp": t, "pp": p} for t, p in product((1, 2), (1, 2)))) == []


def test_along_a_series_a_layout_keeps_its_name(torch: Benchmark) -> None:
    assert torch.layout is not None
    kinds: list[dict[str, Any]] = [
        {"data_parallel": "ddp"},
        {"data_parallel": "fsdp2"},
        {"data_parallel": "fsdp2", "dp_shard": 4},
    ]
    points = [
        {**torch.defaults, "ranks": ranks, "bucket_cap_mb": ranks, **kind}
        for ranks, kind in product((4, 8), kinds)
    ]
    layouts = torch.layout.named(points, [*torch.parameters], "ranks", torch.defaults)
    assert layouts is not None and layouts["default"] == "ddp"
    # The buckets follow the ranks: they tell no layouts apart.
    assert [(known["name"], len(known["values"])) for known in layouts["names"]] == [
        ("ddp", 2), ("fsdp2", 2), ("fsdp2, dp_shard 4", 2)
    ]  # fmt: skip


def test_the_name_stands_for_its_parameters(tmp_path: Path) -> None:
    """In the plan as shown ``layout`` leads, and labels do not list what its names say."""
    linked = [
        {"tp": tp, "pp": pp, "batch_size": 8 * tp * pp} for tp, pp in ((1, 1), (2, 1), (1, 2))
    ]
    fixed = {"model": "mlp", "layers": 4, "width": 64, "ranks": 4, "ranks_per_node": 4}
    experiment = {"benchmark": "torch_training", "linked": linked, "fixed": fixed}
    content = {"campaign": "c", "site": "local", "experiments": {"e": experiment}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(content))
    campaign = load_campaign(tmp_path / "c.yaml")
    plan = build_plan(campaign, dict.fromkeys(campaign.unique_runs(), RunState(Status.NEW)))
    whole = shown(plan)["experiments"][0]
    results = ExperimentResults(whole, {})
    assert results.leaders == [LAYOUT] and whole["axes"] == [LAYOUT, "batch_size", "tp", "pp"]
    assert results.columns == [LAYOUT, "batch_size"]  # of the page's tables; files have all
    described = [results.describe(run["point"]) for run in whole["runs"]]
    assert described[1:] == ["layout tp 2 (batch_size 16)", "layout pp 2 (batch_size 16)"]
