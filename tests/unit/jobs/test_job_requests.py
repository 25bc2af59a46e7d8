"""Requests: from estimates, and from how the last job of a run ended."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.status import Status
from scalesweep.jobs.job_requests import Request, may_mend, request_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.state.run_state import RunState

SITE = """\
site: toy
nodes: 4
cores_per_node: 4
memory_gib_per_node: 8
time_limit_minutes: 10
slurm: {max_minutes: 20}
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("requests")
    (folder / "toy.yaml").write_text(SITE)
    (folder / "c.yaml").write_text(
        "campaign: c\nsite: toy\nexperiments:\n  e:\n    benchmark: data_loading\n"
        "    axes: {ranks: [1, 2, 4]}\n    memory_gib_per_rank: 1.5\n    repeats: 2\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scalesweep.config.site.SITES", folder)
        return load_campaign(folder / "c.yaml")


def test_an_experiment_may_run_alone(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalesweep.config.site.SITES", campaign.file.parent)
    text = campaign.file.read_text()
    path = campaign.file.with_name("alone.yaml")
    path.write_text(
        f"{text}    concurrent_runs: 1\n  f: {{benchmark: data_loading, axes: {{ranks: [3]}}}}\n"
        "  shares_a_run: {benchmark: data_loading, axes: {ranks: [2]}}\n"
    )
    alone = load_campaign(path)
    estimates = Estimates(alone, {run_id: RunState(Status.NEW) for run_id in alone.unique_runs()})
    asked = [request_for(alone, e, e.runs[0], estimates, None).shape for e in alone.experiments]
    assert ["--dependency=singleton" in shape.extra for shape in asked] == [True, False, True]


def request(
    campaign: Campaign,
    ranks: int = 2,
    failure: Mapping[str, Any] | None = None,
    wall_s: float | None = None,
) -> Request:
    """The request of the second repeat, the first of which may be done in ``wall_s``."""
    (experiment,) = campaign.experiments
    states = {run.run_id: RunState(Status.NEW) for run in experiment.runs}
    first, run = [run for run in experiment.runs if run.point["ranks"] == ranks]
    if wall_s is not None:
        states[first.run_id] = RunState(Status.DONE, "s", wall_s=wall_s, source="measured")
    return request_for(campaign, experiment, run, Estimates(campaign, states), failure)


def failed(cause: str, **asked: Any) -> dict[str, Any]:
    defaults = {"nodes": 2, "minutes": 11, "limit_s": 600.0, "mem_mb": 2048}
    return {"cause": cause, "asked": {**defaults, **asked}, "nodes": "node[1-2]"}


@pytest.mark.parametrize(
    ("failure", "wall_s", "expected"),
    [
        # The campaign's until something is known; not below a minute, never above the experiment's.
        (None, None, {"limit_s": 600, "minutes": 11, "mem_mb": 1536 + 128}),
        (None, 50, {"limit_s": 100, "minutes": 3}),
        (None, 2, {"limit_s": 60}),
        (None, 500, {"limit_s": 600}),
        # Twice what the line says that it had, however long its job was.
        (failed("TIMEOUT", limit_s=120.0, minutes=3), None, {"limit_s": 240}),
        (failed("TIMEOUT", limit_s=60.0, minutes=3), None, {"limit_s": 120}),
        # It was Slurm that ended it, after more than the program's limit.
        ({**failed("TIMEOUT", limit_s=6.0, minutes=3), "by_slurm": True}, None, {"limit_s": 240}),
        (failed("TIMEOUT"), None, {"limit_s": 1200}),
        (failed("TIMEOUT", limit_s=900.0), None, {"limit_s": 1200}),
        # What the last job was given is not taken back for another cause, or by a new estimate.
        (failed("NODE_FAIL", limit_s=900.0), 9, {"limit_s": 900}),
        (failed("TIMEOUT", mem_mb=4096), None, {"mem_mb": 4096}),
        (failed("OUT_OF_MEMORY"), None, {"mem_mb": 4096}),
        (failed("OUT_OF_MEMORY", mem_mb=6000), None, {"mem_mb": 8192}),
        # A hang gets no more time.
        (failed("HANG", limit_s=120.0, minutes=3), None, {"limit_s": 600, "exclude": ""}),
        (failed("HANG", limit_s=120.0, minutes=3), 70, {"limit_s": 140}),
    ],
)
def test_what_a_job_is_given(
    campaign: Campaign, failure: dict[str, Any] | None, wall_s: float | None, expected: Any
) -> None:
    asked = request(campaign, failure=failure, wall_s=wall_s)
    given = {**asdict(asked.shape), "limit_s": asked.limit_s}
    assert given.items() >= expected.items()


def test_only_runs_of_the_same_point_undercut_the_users_limit(campaign: Campaign) -> None:
    (experiment,) = campaign.experiments
    states = {run.run_id: RunState(Status.NEW) for run in experiment.runs}
    first, *_, last = experiment.runs
    states[first.run_id] = RunState(Status.DONE, "s", wall_s=9.0, source="measured")
    estimates = Estimates(campaign, states)
    assert estimates.estimate(experiment, last)[1] == "scaled by work"
    assert request_for(campaign, experiment, last, estimates).limit_s == 600
    # After a timeout too: the finished run says less than the one that was not done in 300 s.
    states[last.run_id] = RunState(Status.FAILED, "s", "TIMEOUT", given_s=300.0)
    point = [run for run in experiment.runs if run.point["ranks"] == last.point["ranks"]]
    states[point[0].run_id] = RunState(Status.DONE, "s", wall_s=9.0, source="measured")
    estimates = Estimates(campaign, states)
    assert estimates.seconds(experiment, last) == 300
    assert request_for(campaign, experiment, last, estimates).limit_s == 600


@pytest.mark.parametrize(
    ("cause", "asked", "attempt", "mends"),
    [
        ("TIMEOUT", {}, 1, True),
        ("TIMEOUT", {"limit_s": 1200.0}, 1, False),
        ("TIMEOUT", {"limit_s": None}, 1, False),
        ("OUT_OF_MEMORY", {}, 1, True),
        ("OUT_OF_MEMORY", {"mem_mb": 8192}, 1, False),
        ("OUT_OF_MEMORY", {"mem_mb": None}, 1, False),
        ("NODE_FAIL", {}, 2, True),
        ("HANG", {}, 1, True),  # once, as it was
        ("HANG", {}, 2, False),
        *((cause, {}, 1, True) for cause in ("PREEMPTED", "SUSPENDED")),
        *((c, {}, 1, False) for c in ("NON_ZERO_EXIT", "BAD_RESULT", "CANCELLED", "KILLED")),
    ],
)
def test_only_some_causes_are_tried_again(
    campaign: Campaign, cause: str, asked: dict[str, Any], attempt: int, mends: bool
) -> None:
    (experiment,) = campaign.experiments
    failure = failed(cause, **asked)
    assert may_mend(campaign, experiment, cause, failure["asked"], attempt) is mends
