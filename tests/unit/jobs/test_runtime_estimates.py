"""Expected wall times: what they rest on, in which order, with the numbers worked out by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.state.run_state import RunState

READER = """
name: reader
version: 1
summary: Reads samples, epoch by epoch.
parameters:
  ranks: {type: integer, minimum: 1, default: 1, doc: ranks}
  ranks_per_node: {type: integer, minimum: 1, default: 8, doc: ranks on a node}
  amount: {type: integer, minimum: 0, default: 100, doc: samples of a rank}
  epochs: {type: integer, minimum: 1, default: 1, doc: epochs}
  batch_size: {type: integer, minimum: 1, default: 4, doc: batch}
  shape: {type: array, items: integer, default: [8, 8], doc: shape of a sample}
WORK
data:
  program: stage.py
  parameters: [shape]
  files: {train: amount}
  bytes_per_file: "100"
command: ["true"]
result: native
"""
Study = Callable[..., tuple[Campaign, Estimates]]


@pytest.fixture
def study(toy: Path) -> Study:
    """A campaign of single points and its estimates. A point that ends in seconds is done, one that
    ends in None is not."""
    (toy / "benchmarks" / "reader").mkdir()
    (toy / "benchmarks" / "reader" / "stage.py").touch()
    (toy / "sites" / "toy.yaml").write_text(
        "site: toy\nnodes: 4096\ncores_per_node: 8\nlaunch: {single: [], multi: []}\n"
    )

    def make(
        *points: tuple[dict[str, Any], float | None],
        work: str = "work: {scope: rank, samples: amount}",
        more: str = "",
        source: str = "measured",
    ) -> tuple[Campaign, Estimates]:
        (toy / "benchmarks" / "reader" / "benchmark.yaml").write_text(READER.replace("WORK", work))
        path = toy / "campaign.yaml"
        lines = ["campaign: t", "site: toy", "experiments:"]
        for index, (point, _) in enumerate(points):
            lines.append(f"  e{index}: {{benchmark: reader, fixed: {point}{more}}}")
        path.write_text("\n".join(lines) + "\n")
        campaign = load_campaign(path)
        states = dict.fromkeys(campaign.unique_runs(), RunState("new"))
        for experiment, (_, done) in zip(campaign.experiments, points, strict=True):
            if done:
                state = RunState("done", "1", wall_s=done, source=source)
                states[experiment.runs[0].run_id] = state
        return campaign, Estimates(campaign, states)

    return make


def last(made: tuple[Campaign, Estimates]) -> tuple[float | None, str]:
    """Estimate and basis of the last point's last run."""
    campaign, estimates = made
    experiment = campaign.experiments[-1]
    run = experiment.runs[-1]
    return estimates.estimate(experiment, run)


def test_the_same_point_comes_first(campaign_of: Callable[..., Campaign]) -> None:
    campaign = campaign_of("axes: {rate: [1, 2]}\nrepeats: 5\nexpected_minutes: 9")
    states = dict.fromkeys(campaign.unique_runs(), RunState("new"))
    experiment = campaign.experiments[0]
    # Repeats stand side by side: points 1, 2, 1, 2, ...
    for run, wall_s in zip(experiment.runs, (10.0, 70.0, 11.0, 71.0, 30.0, 72.0), strict=False):
        states[run.run_id] = RunState("done", "1", wall_s=wall_s, source="measured")
    estimates = Estimates(campaign, states)
    for run, seconds in zip(experiment.runs[6:], (11.0, 71.0, 11.0, 71.0), strict=True):
        assert estimates.estimate(experiment, run) == (seconds, "same point")


TWO, EIGHT = ({"ranks": 2}, 10.0), ({"ranks": 8}, 30.0)
READ = ({"ranks": 2, "amount": 100, "epochs": 2}, 50.0)
SCALED = "scaled by work"
TOTAL = "work: {scope: total, samples: amount}"


@pytest.mark.parametrize(
    ("measured", "point", "more", "found"),
    [
        ([({}, None)], {"ranks": 2}, {}, (None, "")),
        ([({}, None)], {}, {"more": ", expected_minutes: 1.5"}, (90.0, "campaign")),
        # 50 s are for 200 samples of a rank.
        ([READ], {"ranks": 2, "amount": 200, "epochs": 3}, {}, (150.0, SCALED)),
        ([READ], {"ranks": 2, "amount": 0}, {}, (None, "")),
        # Weak scaling: as much for each rank, whatever their number. Strong: in all.
        ([READ], {"ranks": 64, "amount": 100, "epochs": 2}, {}, (50.0, SCALED)),
        ([({"amount": 800}, 80.0)], {"ranks": 4, "amount": 800}, {"work": TOTAL}, (20.0, SCALED)),
        # The nearest ranks by ratio; of several runs the median.
        ([TWO, EIGHT], {"ranks": 3}, {}, (10.0, SCALED)),
        ([TWO, EIGHT], {"ranks": 5}, {}, (30.0, SCALED)),
        ([({"batch_size": n}, w) for n, w in ((1, 20.0), (2, 30.0), (3, 100.0))],
         {"amount": 300}, {}, (90.0, SCALED)),
        # Nothing is known of samples of another form, without work, or by other sources.
        ([({"shape": [4, 4]}, 50.0)], {"shape": [64, 64]}, {}, (None, "")),
        ([READ], {"ranks": 2, "epochs": 3}, {"work": ""}, (None, "")),
        ([READ], READ[0], {"work": ""}, (50.0, "same point")),
        ([({}, 50.0)], {"amount": 3}, {"source": "imported"}, (None, "")),
        ([({}, 50.0)], {"amount": 3}, {"source": "simulated"}, (None, "")),
    ],
)  # fmt: skip
def test_what_an_estimate_rests_on(
    study: Study, measured: list[Any], point: dict[str, Any], more: dict[str, str],
    found: tuple[float | None, str],
) -> None:  # fmt: skip
    seconds, basis = last(study(*measured, (point, None), **more))
    assert (seconds, basis) == (found[0] and pytest.approx(found[0]), found[1])


def test_after_a_timeout_a_point_takes_at_least_its_limit(study: Study) -> None:
    campaign, _ = study(({"batch_size": 8}, None), ({"ranks": 2}, None), more=", repeats: 2")
    done, other, timed_out, _ = campaign.unique_runs()
    states = dict.fromkeys(campaign.unique_runs(), RunState("new"))

    def estimate(run_id: str, given_s: float) -> tuple[float | None, str]:
        failed = RunState("failed", "1", "TIMEOUT", given_s=given_s)
        return last((campaign, Estimates(campaign, {**states, run_id: failed})))

    assert estimate(timed_out, 120.0) == (120.0, "timeout")
    states[done] = RunState("done", "1", wall_s=20.0, source="measured")
    assert estimate(timed_out, 120.0) == (120.0, "timeout")
    assert estimate(timed_out, 12.0) == (20.0, "scaled by work")
    assert estimate(other, 120.0) == (20.0, "scaled by work")  # of another point
