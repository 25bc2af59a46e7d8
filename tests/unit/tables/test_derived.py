"""Metrics that a campaign states by formulas: worked out for each run, then as any other."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import RunState
from scalesweep.tables.derived import with_derived
from scalesweep.tables.summary import build_summary
from tests.fakes.records import write_run

Load = Callable[..., Campaign]

BODY = "axes: {behaviour: [good, noisy]}\nfixed: {size: 4}\nrepeats: 3\n"
STATED = """\
main_metric: samples_per_joule
metrics:
  samples_per_joule:
    {formula: size * ranks / energy, unit: samples/J, better: higher, doc: Samples of a joule}
  above_idle: {formula: 1 / (mean_power - 90), unit: "1", better: higher}
  slowdown: {formula: total_throughput / total_throughput_init, unit: "1", better: lower}
  never: {formula: wall_s / peak_power, unit: s/W, better: lower}
"""
# By behaviour: joules of each repeat, and watts; None: the run has no such metric.
ENERGY: dict[str, list[float | None]] = {"good": [10.0, 20.0, 40.0], "noisy": [5.0, None, 8.0]}
POWER = {"good": [91.0, 90.0, 92.0], "noisy": [90.0, 90.0, 90.0]}


def measured(campaign: Campaign, folder: Path) -> tuple[pd.DataFrame, Plan]:
    """Summary and plan of the campaign, all runs of which are made up and done."""
    records = []
    times = {"local_times": np.ones((3, 1)), "global_times": np.array([[2.0], [1.0], [1.0]])}
    for run_id, (_, run) in campaign.unique_runs().items():
        values = {
            "energy": (ENERGY[run.point["behaviour"]][run.repeat], "J"),
            "mean_power": (POWER[run.point["behaviour"]][run.repeat], "W"),
        }
        metrics = {
            name: {"value": value, "unit": unit, "better": "lower", "scope": "total"}
            for name, (value, unit) in values.items()
            if value is not None
        }
        changes = {"benchmark": "toy", "point": dict(run.point), "repeat": run.repeat}
        records.append(write_run(folder, run_id, times, metrics=metrics, **changes))
    states = dict.fromkeys(campaign.unique_runs(), RunState(Status.DONE))
    plan = build_plan(campaign, states)
    return with_derived(build_summary(records), plan["experiments"]), plan


def test_they_are_worked_out_for_each_run_with_intervals(campaign_of: Load, tmp_path: Path) -> None:
    plain = campaign_of(BODY)
    campaign = campaign_of(BODY + STATED)
    assert [*campaign.unique_runs()] == [*plain.unique_runs()]  # no part of run ids
    summary, plan = measured(campaign, tmp_path / "runs")
    frame = summary.sort_values(["behaviour", "repeat"])
    np.testing.assert_allclose(
        frame["samples_per_joule_mean_run"], [0.4, 0.2, 0.1, 0.8, math.nan, 0.5]
    )
    # A division by zero is missing, not infinite, and so is what reads a missing number.
    np.testing.assert_allclose(frame["above_idle_mean_run"], [1, math.nan, 0.5] + 3 * [math.nan])
    np.testing.assert_allclose(frame["slowdown_mean_run"], 2.0)
    assert frame["never_mean_run"].isna().all()

    tables = make_tables(summary, plan)["e"]
    points = tables["points"].set_index("behaviour")
    low, mean, high = (points.loc["good", f"samples_per_joule_{end}_run"]
                       for end in ("low", "mean", "high"))  # fmt: skip
    assert low < mean < high and mean == pytest.approx(0.7 / 3)
    assert tables["points"].attrs["units"]["samples_per_joule_mean_run"]["better"] == "higher"
    compared = tables["comparisons"].query(
        "metric == 'samples_per_joule' and against == 'reference'"
    )
    assert compared["ratio"].tolist() == pytest.approx([0.65 / (0.7 / 3)])
    (entry,) = plan["experiments"]
    assert entry["metrics"]["samples_per_joule"] == "Samples of a joule: size * ranks / energy"


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("m: {formula: enery / size, JOULES}", r"e.metrics.m.formula: 'enery / size': 'enery' is "
         r"no metric or parameter of the runs; did you mean energy\? allowed: average|bytes, ener"),
        ("m: {formula: 'energy[0]', JOULES}", "only numbers can be worked with"),
        ("m: {formula: energy, unit: apples}", "metrics.m: the key 'better' is missing"),
        ("energy: {formula: size, JOULES}", "metrics.energy: benchmark or tables have this name"),
        ("energy_eff: {formula: energy, JOULES}", "reserved|the scaling of 'energy'"),
    ],
)  # fmt: skip
def test_one_clear_line_for_a_mistake(campaign_of: Load, metric: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        campaign_of(f"metrics:\n  {metric.replace('JOULES', 'unit: J, better: lower')}\n")
