"""Experiments of several benchmarks: their parts, what these share, and one entry of them all."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.joined_experiments import benchmarks_of, parameters_at, shown
from scalesweep.core.plan_format import Plan
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.general import other_main_metric
from scalesweep.planning.plan import build_plan
from scalesweep.report.experiment_part import fixed_parameters
from scalesweep.state.run_state import RunState
from scalesweep.tables.points import ExperimentData
from tests.fakes.two_benchmarks import BOTH, add_toy_fast


@pytest.fixture
def both(toy: Path) -> Callable[..., Campaign]:
    """Load a campaign with the experiment of both benchmarks, changed by replacing texts."""
    add_toy_fast(toy / "benchmarks")

    def load(old: str = "", new: str = "", more: str = "") -> Campaign:
        assert old in BOTH
        path = toy / "campaign.yaml"
        body = BOTH.replace(old, new) if old else BOTH
        path.write_text(f"campaign: c\nsite: toy\nexperiments:\n  both:{body}{more}")
        return load_campaign(path)

    return load


def finished(campaign: Campaign) -> Plan:
    """The plan of a campaign all of whose runs are done."""
    state = RunState("done", "1", wall_s=1.0, source="measured")
    return build_plan(campaign, dict.fromkeys(campaign.unique_runs(), state))


def test_runs_are_those_of_experiments_of_one_benchmark(both: Callable[..., Campaign]) -> None:
    alone = (
        "  alone:\n    benchmark: toy\n    axes: {ranks: [1, 2]}\n"
        "    fixed: {size: 3, rate: 2.0, threads: 3}\n    repeats: 2\n"
    )
    campaign = both(more=alone)
    assert [e.name for e in campaign.experiments] == ["both.toy", "both.toy_fast", "alone"]
    first, second, third = ([run.run_id for run in e.runs] for e in campaign.experiments)
    assert first == third and not set(first) & set(second)
    assert {run_id.split("-")[0] for run_id in second} == {"toy_fast"}
    assert [e.part_of for e in campaign.experiments] == ["both", "both", ""]


def test_parts_are_shown_as_one(both: Callable[..., Campaign]) -> None:
    plan = finished(both(more="  last: {benchmark: toy}\n"))
    # A parameter that changes the work of one of them, and not of the first.
    plan["experiments"][1]["parameters"]["size"]["workload"] = True
    plan["experiments"][0]["parameters"]["size"]["workload"] = False
    assert [entry["name"] for entry in plan["experiments"]] == ["both.toy", "both.toy_fast", "last"]
    whole = shown(plan)
    assert [entry["name"] for entry in whole["experiments"]] == ["both", "last"]
    entry, last = whole["experiments"]
    assert last is plan["experiments"][-1]
    assert entry["axes"] == ["ranks", "benchmark"] and entry["points"] == 4
    assert benchmarks_of(entry) == {"toy": 1, "toy_fast": 1}
    assert entry["parameters"]["size"]["workload"]
    assert entry["fixed"]["size"] == 3 and "threads" not in entry["fixed"]
    # What one of them alone has is no parameter of the other's points.
    at = {it: parameters_at(entry, {"benchmark": it, "ranks": 2}) for it in ("toy", "toy_fast")}
    assert at["toy"]["rate"] == 2.0 and "rate" not in at["toy_fast"]
    assert at["toy_fast"]["speed"] == 2.0 and at["toy_fast"]["threads"] == 1
    fixed = fixed_parameters(ExperimentResults(entry, {}))
    assert [item["name"] for item in fixed["set"]] == ["size"]
    assert [run["point"]["benchmark"] for run in entry["runs"]] == ["toy"] * 4 + ["toy_fast"] * 4


def test_a_metric_of_two_meanings_is_not_compared(both: Callable[..., Campaign]) -> None:
    plan = finished(both())
    runs = [run for e in plan["experiments"] for run in e["runs"]]
    summary = pd.DataFrame({"run_id": [run["run_id"] for run in runs], "source": "measured"})
    summary["warnings"], summary["samples"] = None, 3.0
    summary["repeat"] = [run["repeat"] for run in runs]
    summary["images_mean_run"] = summary["odd_mean_run"] = 1.0
    images = {"unit": "images/s", "better": "higher", "scope": "total"}
    summary.attrs["metrics"] = {
        name: {"images": images, "odd": images | {"unit": unit}}
        for name, unit in (("toy", "images/s"), ("toy_fast", "samples/s"))
    }
    entry = shown(plan)["experiments"][0]
    data = ExperimentData(summary, entry)
    assert "odd" in data.unlike and [metric for metric, _ in data.measures] == ["images"]
    points = pd.DataFrame({"ranks": [1], "benchmark": ["toy"], "even_mean_run": [1.0]})
    points.attrs["units"] = {"even_mean_run": images | {"label": "even"}}
    (note,) = other_main_metric(
        ExperimentResults({**entry, "main_metric": "odd"}, {"points": points})
    )
    assert note.subject == "odd" and note.reason


@pytest.mark.parametrize("other", [{}, {"unit": "s"}, {"better": "lower"}, {"scope": "rank"}])
def test_a_main_metric_means_the_same_in_all_benchmarks(
    both: Callable[..., Campaign], toy: Path, other: dict[str, str]
) -> None:
    """Nothing runs for a comparison that cannot be made."""
    usual = {"metric": "fast", "pattern": "(x)", "unit": "items/s", "better": "higher"}
    for name, of in {"toy": {}, "toy_fast": other}.items():
        file = toy / "benchmarks" / name / "benchmark.yaml"
        extract = {"extract": [{**usual, "scope": "total", **of}]}
        text = file.read_text().replace("result: native", f"result: {json.dumps(extract)}")
        file.write_text(text)
    if not other:
        assert {each.main_metric for each in both().experiments} == {"fast"}
        return
    with pytest.raises(UserError, match=r"differ \(fast, unit items/s, better higher, scope to"):
        both()
    formulas = "{toy: 'fast', toy_fast: '1 / fast'}"
    stated = f"metrics: {{same: {{formula: {formulas}, unit: items/s, better: higher}}}}"
    stated += "\n    main_metric: same"
    assert {each.main_metric for each in both("repeats: 2", stated).experiments} == {"same"}


def test_flop_are_counted_by_one_convention(both: Callable[..., Campaign], toy: Path) -> None:
    for name, metric in (("toy", "mfu_palm"), ("toy_fast", "mfu_megatron")):
        file = toy / "benchmarks" / name / "benchmark.yaml"
        more = f"result: native\nmetrics: {{{metric}: how}}"
        file.write_text(file.read_text().replace("result: native", more))
    formulas = "{toy: mfu_palm, toy_fast: mfu_megatron}"
    stated = f"metrics: {{of_peak: {{formula: {formulas}, unit: '1', better: higher}}}}"
    with pytest.raises(UserError, match="mfu_palm and mfu_megatron count FLOP by two conventions"):
        both("repeats: 2", stated)
