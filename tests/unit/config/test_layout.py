"""Names of layouts: what benchmark.yaml words, what a plan has of it, and what readers see."""

from itertools import product
from typing import Any

import pytest

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.core.files import canonical_json
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.layouts import LAYOUT, values_text
from scalesweep.core.plan_format import Plan
from scalesweep.core.shown_plan import shown
from scalesweep.experiment.results import ExperimentResults


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


def test_the_name_stands_for_its_parameters() -> None:
    """In the plan as shown ``layout`` leads, and labels do not list what its names say."""
    names = {(1, 1): "ddp 4", (2, 1): "tp 2", (1, 2): "pp 2"}
    points = [{"ranks": 4, "tp": tp, "pp": pp, "batch": 8 * tp * pp} for tp, pp in names]
    info = {"unit": None, "doc": "", "default": 1, "workload": False}
    entry: Any = {
        "name": "e", "scale": "ranks", "scale_parameters": ["ranks"], "scaling": "none",
        "axes": ["batch", "tp", "pp"], "work": [], "fixed": {"ranks": 4}, "profiles": [],
        "parameters": dict.fromkeys(points[0], info), "linked": ["tp", "pp", "batch"],
        "runs": [{"point": point, "repeat": 0, "status": "new"} for point in points],
        "excluded": [{"point": {**points[0], "tp": 4}, "reason": ""}],
        "derived_at": {
            canonical_json([p["batch"], p["tp"], p["pp"]]): {"dp": 4 // (p["tp"] * p["pp"])}
            for p in points
        },
        "layouts": {
            "doc": "", "default": "ddp 4",
            "names": [{"values": {"tp": tp, "pp": pp}, "name": n} for (tp, pp), n in names.items()],
        },
    }  # fmt: skip
    plan: Plan = {"experiments": [entry]}  # type: ignore[typeddict-item]
    whole = shown(plan)["experiments"][0]
    results = ExperimentResults(whole, {})
    assert results.leaders == [LAYOUT] and whole["axes"] == [LAYOUT, "batch", "tp", "pp"]
    described = [results.describe(run["point"]) for run in whole["runs"]]
    assert described[1:] == ["layout tp 2 (batch 16)", "layout pp 2 (batch 16)"]
    assert results.columns == [LAYOUT, "batch"]  # of the page's tables; files have all
    # What the campaign derives is looked up by the other axes.
    assert [parameters_at(whole, run["point"])["dp"] for run in whole["runs"]] == [4, 2, 2]
    # A layout that is not planned has no name.
    assert whole["excluded"][0]["point"][LAYOUT] == values_text({"tp": 4, "pp": 1})
