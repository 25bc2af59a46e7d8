"""A budget spent in rounds: what is planned, what it may cost, and when it ends."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from scalesweep.adaptive.policy import look, plan_runs
from scalesweep.adaptive.spend_round import with_bill
from scalesweep.adaptive.spending import DECISIONS, Spending, held_hours
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.precision import spent
from scalesweep.jobs.run_spec import data_folder, run_spec
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.slurm.job_identity import logs_folder
from scalesweep.slurm.job_table import Collected
from scalesweep.state.stock import take_stock
from tests.fakes.records import write_unchecked

Load = Callable[..., Campaign]
BODY = """
scaling: weak
axes: {ranks: [1, 2, 4, 8, 16, 32, 64]}
fixed: {ranks_per_node: 16}
predict: {ranks: [512]}
time_limit_minutes: 2
"""
RATE = {"unit": "samples/s", "better": "higher", "scope": "total"}


@pytest.fixture
def load(campaign_of: Load, tmp_path: Path) -> Callable[..., Campaign]:
    def loaded(budget: str = "{node_hours: 0.25, adaptive: true}", body: str = BODY) -> Campaign:
        head = f"campaign: t\nsite: toy\nresults: {tmp_path / 'results'}\nbudget: {budget}\n"
        return campaign_of(body, head)

    return loaded


def planned(campaign: Campaign) -> list[int]:
    """Rank counts of the runs that are planned so far and have no result."""
    plan = plan_runs(campaign).campaign
    states = take_stock(plan, plan.unique_runs())
    runs = plan.unique_runs()
    return sorted(runs[i][1].point["ranks"] for i, s in states.items() if not s.settled)


def finish(campaign: Campaign, wall_s: float = 30.0) -> None:
    """Finish what is planned, each run below its time limit."""
    plan = plan_runs(campaign).campaign
    states = take_stock(plan, plan.unique_runs())
    for run_id, (one, run) in plan.unique_runs().items():
        if states[run_id].settled:
            continue
        assert wall_s < run_spec(plan, one, run)["time_limit_s"] <= 120
        ranks = run.point["ranks"]
        value = ranks / (1 + 0.02 * math.log2(ranks)) * (1 + 0.01 * run.repeat)
        write_unchecked(
            plan.runs_folder, run_id, benchmark="toy", repeat=run.repeat, point=dict(run.point),
            metrics={"speed": {"value": value, **RATE}}, work={"samples_per_epoch": None},
            resources={}, wall_s=wall_s,
        )  # fmt: skip


def account(campaign: Campaign) -> Spending:
    found = plan_runs(campaign).spending
    assert found is not None
    return found


def test_rounds_go_on_until_the_budget_is_spent(load: Callable[..., Campaign]) -> None:
    campaign = load()
    assert planned(campaign) == [1, 2, 4]
    assert not account(campaign).due and account(campaign).reserved == pytest.approx(0.1)
    finish(campaign)
    seen = []
    for _ in range(12):
        plan = look(campaign)
        found = plan.spending
        assert found is not None
        # Never over budget, whatever the planned runs will take.
        assert found.spent + found.reserved <= 0.25 and not found.due
        if found.ended:
            break
        seen.append(planned(campaign))
        # As after a kill: the next look decides nothing new while runs are waited for.
        assert planned(plan.campaign) == seen[-1] == planned(look(campaign).campaign)
        finish(plan.campaign)
    counts = [count for block in seen for count in block]
    assert re.fullmatch(
        r"no run that fits into what is left is expected to narrow it; 0\.1\d+ of 0\.25 "
        r"node-hours are left",
        found.ended,
    )
    assert len(seen) > 1 and max(counts) > 16
    decisions = found.kept.decisions
    assert [one.round for one in decisions] == sorted(one.round for one in decisions)
    assert decisions[-1].round == len(seen)
    assert plan.lines() == [f"{len(seen)} rounds decided on; {found.ended}"]
    assert {one.question for one in decisions} == {"e: at 512 ranks"}
    # What was measured is a part of the grid and what lies between, under its ids.
    assert found.spent == pytest.approx(
        sum(-(-count // 16) for count in [1, 2, 4, *counts]) * 30 / 3600
    )
    assert decisions[-1].now < decisions[0].now
    # Plan and report name every decision.
    states = take_stock(plan.campaign, plan.campaign.unique_runs())
    made = build_plan(plan.campaign, states)
    plan.enter(made)
    text = plan_text(made)
    assert (
        f"budget: {found.spent:.3g} of 0.25 node-hours spent, up to 0 more planned; ended: " in text
    )
    (entry,) = made["experiments"]
    said = [one.text for one in spent(ExperimentResults(entry, {}))]
    assert "of 0.25 node-hours are spent" in said[0] and "It ended: no run" in said[0]
    assert len(said) == 1 + len(decisions) == 1 + len(entry["spend"]["rounds"])
    for one in said[1:]:
        assert one.startswith("Round ") and "e: at 512 ranks from" in one and ", took 0.0" in one
        assert f"  r{one[1:-1]}\n" in text
    # Where the record of what was decided is lost, nothing that was measured is.
    (campaign.runs_folder / DECISIONS).unlink()
    assert account(campaign).spent > 0 and not planned(campaign)


def test_precision_ends_it_before_the_budget(load: Callable[..., Campaign]) -> None:
    campaign = load("{node_hours: 0.3, adaptive: true, until: 90 %, target: e ranks=64}")
    finish(campaign)
    found = look(campaign).spending
    assert found is not None and found.ended == "precise" and not planned(campaign)
    # A sharper goal goes on.
    found = look(load("{node_hours: 0.3, adaptive: true, until: 1 %, target: e ranks=64}")).spending
    assert found is not None and not found.ended and found.kept.decisions


def test_unclear_choices_get_repeats_in_rounds(load: Callable[..., Campaign]) -> None:
    body = "axes: {behaviour: [good, slow]}\nrepeats: 2\ntime_limit_minutes: 2"
    campaign = load("{node_hours: 0.3, adaptive: true}", body)
    assert len(planned(campaign)) == 4
    finish(campaign)
    plan = look(campaign)
    assert plan.spending is not None and not plan.spending.ended
    new = [run for run in plan.campaign.experiments[0].runs if run.repeat > 1]
    # Of both settings, with numbers of their own.
    for behaviour in ("good", "slow"):
        numbers = [run.repeat for run in new if run.point["behaviour"] == behaviour]
        assert numbers == list(range(2, 2 + len(new) // 2)) != []
    assert plan.spending.spent + plan.spending.reserved <= 0.3


@pytest.mark.slow
def test_a_point_that_failed_is_not_chosen_again(load: Callable[..., Campaign]) -> None:
    # All counts on one node: beyond its border a single count would be offered.
    body = BODY.replace("ranks_per_node: 16", "ranks_per_node: 64").replace("[512]", "[64]")
    campaign = load(body=body.replace("32, 64", "32"))
    finish(campaign)
    first = look(campaign).spending
    assert first is not None
    for one in first.kept.decisions:
        (run_id,) = (
            run.run_id for run in first.campaign.experiments[0].runs if run.point == one.point
        )
        (campaign.runs_folder / run_id / "attempt-1").mkdir(parents=True)
        failure = {"cause": "NON_ZERO_EXIT", "detail": "broken", "run_id": run_id}
        (campaign.runs_folder / run_id / "failure.json").write_text(json.dumps(failure))
    second = look(campaign).spending
    assert second is not None and len(second.kept.decisions) > len(first.kept.decisions)
    points = [dict(one.point) for one in second.kept.decisions]
    assert all(points.count(dict(one.point)) == 1 for one in first.kept.decisions)
    # The next call tries it once more, with a longer limit.
    assert {one.point["ranks"] for one in first.kept.decisions} <= set(planned(campaign))
    limits = second.campaign.limits
    assert max(limits.values()) > max(first.campaign.limits.values())
    assert second.spent + second.reserved <= 0.25


def test_failed_and_killed_attempts_count_with_their_limits(
    load: Callable[..., Campaign],
) -> None:
    campaign = load()
    first = plan_runs(campaign).campaign.experiments[0].runs[0]
    (campaign.runs_folder / first.run_id / "attempt-1").mkdir(parents=True)
    found = account(campaign)
    assert found.spent == pytest.approx(120 / 3600)
    assert found.reserved == pytest.approx(3 * 120 / 3600)
    # Until not even the first runs fit.
    for number in range(2, 6):
        (campaign.runs_folder / first.run_id / f"attempt-{number}").mkdir()
    assert planned(campaign) == [1, 2] and len(account(campaign).cut) == 1


def test_the_first_runs_have_to_fit(load: Callable[..., Campaign]) -> None:
    with pytest.raises(UserError, match=r"budget.node_hours: 0.01: not one run fits: the "
                       "first may take up to 0.0333 node-hours"):  # fmt: skip
        plan_runs(load("{node_hours: 0.01, adaptive: true}"))
    with pytest.raises(UserError, match=r"budget.until: must be above 0 %"):
        load("{node_hours: 1, adaptive: true, until: 0 %}")
    with pytest.raises(UserError, match=r"budget.target: 'f' is not an experiment .* allowed: e"):
        plan_runs(load("{node_hours: 1, adaptive: true, target: f}"))


def test_other_experiments_and_strong_scaling(load: Callable[..., Campaign]) -> None:
    body = BODY.replace("weak", "strong").replace("[1, 2, 4, 8, 16, 32, 64]", "[1, 64]")
    linked = ", ".join(f"{{ranks: {2**k}, size: {2 ** (6 - k)}}}" for k in range(7))
    body = body.replace("axes: {ranks: [1, 64]}", f"linked: [{linked}]")
    # The smallest count, and the two largest that can be paid with it.
    assert planned(load(body=body)) == [1, 32, 64]
    assert planned(load("{node_hours: 0.2, adaptive: true}", body)) == [1, 16, 32]
    # Small ones where larger ones may be left out, or none can be paid.
    stop = f"{body}stop: {{when: efficiency < 0.3}}\n"
    assert planned(load(body=stop)) == [1, 4, 16]
    assert planned(load("{node_hours: 0.07, adaptive: true}", body)) == [1, 4]
    # Only what the target names is chosen in rounds: the rest of the grid is the user's.
    campaign = load("{node_hours: 5, adaptive: true, target: e ranks=64}")
    other = replace(campaign.experiments[0], name="other")
    both = replace(campaign, experiments=(*campaign.experiments, other))
    assert len(plan_runs(both).campaign.experiments[1].runs) == 7


STOP = BODY.replace("predict:", "repeats: 2\nstop: {when: efficiency < 0.6}\npredict:")


def measure(campaign: Campaign, rate: Callable[[int], float]) -> list[int]:
    """Finish the runs that may begin, at such rates; their rank counts."""
    plan = plan_runs(campaign)
    runs = plan.campaign.unique_runs()
    states = take_stock(plan.campaign, runs)
    counts = []
    for run_id, (_, run) in runs.items():
        if not states[run_id].settled and run_id not in plan.held:
            counts.append(ranks := run.point["ranks"])
            value = rate(ranks) * (1 + 0.01 * run.repeat)
            write_unchecked(
                campaign.runs_folder, run_id, benchmark="toy", repeat=run.repeat,
                point=dict(run.point), metrics={"speed": {"value": value, **RATE}},
                work={"samples_per_epoch": None}, resources={}, wall_s=30.0,
            )  # fmt: skip
    return counts


@pytest.mark.parametrize(
    ("last", "ended"),
    [
        (4, "no run that fits into what is left is expected to narrow it; 0.25 of 0.3"),
        (2, "needs 3"),
    ],
)
def test_what_stop_leaves_out_is_neither_measured_nor_advised(
    load: Callable[..., Campaign], last: int, ended: str
) -> None:
    campaign = load("{node_hours: 0.3, adaptive: true}", STOP)
    # The smallest counts first, one after the other; reserved are all.
    assert account(campaign).reserved == pytest.approx(6 / 30)
    seen = []
    for _ in range(20):
        found = account(look(campaign).campaign)
        assert found.spent + found.reserved <= 0.3
        if found.ended:
            break
        block = measure(campaign, lambda ranks: ranks if ranks < last else 0.4 * ranks)
        assert len(set(block)) == 1 or found.kept.decisions
        seen += block
    assert set(seen) == {count for count in (1, 2, 4) if count <= last} and found.left > 0
    # All else is named with the reason, and neither counted nor asked for.
    why = f"efficiency < 0.6 at ranks {last}: efficiency 0.4"
    (one,) = plan_runs(campaign).campaign.experiments
    gone = {point["ranks"]: reason for point, reason in one.excluded}
    assert list(gone) == [count for count in (4, 8, 16, 32, 64) if count > last]
    assert all(reason.startswith(why) for reason in gone.values())
    assert found.reserved == 0 and not planned(campaign) and ended in found.ended
    assert (why in found.ended) is (last == 4)  # with two counts nothing is asked at all
    # An attempt at a point that is left out since has cost what it has cost.
    point = one.excluded[0][0]
    (campaign.runs_folder / one.benchmark.run_id(point, 0) / "attempt-1").mkdir(parents=True)
    again = account(campaign)
    assert again.spent == pytest.approx(found.spent + 2 * -(-point["ranks"] // 16) / 60)
    assert not planned(campaign)


@pytest.mark.slow
def test_a_count_that_was_advised_may_stop_its_series(load: Callable[..., Campaign]) -> None:
    campaign, seen = load("{node_hours: 0.5, adaptive: true}", STOP), []
    for _ in range(20):
        found = account(look(campaign).campaign)
        assert found.spent + found.reserved <= 0.5
        if found.ended:
            break
        seen += measure(campaign, lambda ranks: ranks if ranks <= 8 else 0.4 * ranks)
    # Of one run there is no interval, so there are two of it.
    last = max(seen)
    assert last > 8 and seen.count(last) >= 2 and sum(count > 8 for count in set(seen)) == 1
    assert f"efficiency < 0.6 at ranks {last}: efficiency 0.4" in found.ended


def test_no_count_waits_for_runs_that_do_not_fit(load: Callable[..., Campaign]) -> None:
    campaign = load("{node_hours: 0.11, adaptive: true, until: 50 %, target: e ranks=8}", STOP)
    blocks: list[int] = []
    for _ in range(20):
        found = account(look(campaign).campaign)
        assert found.spent + found.reserved <= 0.11
        if found.ended:
            break
        block = measure(campaign, float)
        assert block
        blocks += block
    # Of each of the first counts one run, and a second one once the first ones took less.
    assert blocks[0] == 1 and sorted(blocks)[:6] == [1, 1, 2, 2, 4, 4]


def test_what_is_not_chosen_in_rounds_counts_too(load: Callable[..., Campaign]) -> None:
    body = (
        "axes: {behaviour: [good]}\nrepeats: {min: 3, max: 40, until: 1 %}\ntime_limit_minutes: 2"
    )
    campaign = load("{node_hours: 0.2, adaptive: true}", body)
    for number in range(40):
        found = account(look(campaign).campaign)
        assert found.spent + found.reserved <= 0.2
        if not measure(campaign, partial(max, 1.0, 1.5 * (number % 2))):
            break
    runs = [run for one in found.campaign.experiments for run in one.runs]
    assert 3 < len(runs) < 40 and found.spent > 0.2 - 2 / 60
    # Profiled are the points that were chosen, and no others.
    campaign = load(body=f"{BODY}profile: cprofile\n")
    profiles = plan_runs(campaign).campaign.experiments[0].profiles
    assert [run.point["ranks"] for run in profiles] == [1, 2, 4]
    assert account(campaign).reserved == pytest.approx(6 / 30)


def test_with_slurm_the_accounting_says_what_runs_cost(
    campaign_of: Load, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = "site: toy\nnodes: 4\ncores_per_node: 16\nlaunch: {single: [], multi: []}\n"
    (toy / "sites" / "toy.yaml").write_text(f"{site}slurm: {{startup_minutes: 0.5}}\n")
    head = (
        f"campaign: t\nsite: toy\nresults: {toy / 'results'}\n"
        f"budget: {{node_hours: 2, adaptive: true}}\n"
    )
    campaign = campaign_of(BODY, head)
    # What each job asks for: two minutes and a half, rounded up.
    assert account(campaign).reserved == pytest.approx(3 * 3 / 60)
    finish(campaign)
    assert account(campaign).spent == pytest.approx(3 * 1 / 60)
    first, second, third = (run.run_id for run in account(campaign).campaign.experiments[0].runs)
    rows = [
        {"run_id": first, "state": "FAILED", "node_hours": 0.001},
        {"run_id": first, "state": "COMPLETED", "node_hours": 0.002},
        # A shared allocation; one that goes on; one that stages data.
        {"run_id": f"{second} {third}", "state": "COMPLETED", "node_hours": 0.006},
        {"run_id": third, "state": "RUNNING", "node_hours": 0.001},
        {"run_id": None, "state": "COMPLETED", "node_hours": 0.01},
    ]
    books = Collected([], ["no accounting data"])
    monkeypatch.setattr("scalesweep.adaptive.spend_round.spent_jobs", lambda *_: books)
    assert with_bill(account(campaign)) == account(campaign).kept
    books.notes, books.rows = [], rows
    found = account(look(campaign).campaign)
    assert found.kept.decisions and found.costs[first] == pytest.approx(0.003)
    assert found.costs[second] == pytest.approx(0.003)
    assert found.costs[third] == pytest.approx(1 / 60)  # by its record
    assert found.spent == pytest.approx(0.01 + 0.006 + 1 / 60)
    # One that is at work, or of whose end nothing is known, is reserved for, and has not failed.
    chosen = found.kept.decisions[0]
    (one,) = (run for run in found.campaign.experiments[0].runs if run.point == chosen.point)
    folder = campaign.runs_folder / one.run_id
    log = (
        logs_folder(folder.parent)
        / "rule_run"
        / f"runs_{folder.parent.name}_{one.run_id}"
        / "7.log"
    )
    log.parent.mkdir(parents=True)
    log.touch()
    (folder / "attempt-1").mkdir(parents=True)
    assert account(campaign).spent == found.spent
    assert account(campaign).reserved == found.reserved
    failure = {"cause": "NON_ZERO_EXIT", "detail": "broken", "run_id": one.run_id, "job_id": 7}
    (folder / "failure.json").write_text(json.dumps(failure))
    assert account(campaign).spent > found.spent
    log.with_name("8.log").touch()
    (folder / "attempt-2").mkdir()
    again = account(campaign)
    assert again.spent == pytest.approx(found.spent + held_hours(campaign, one.point, 60))
    # A run that was tried again since counts with its limits once more.
    (campaign.runs_folder / first / "attempt-1").mkdir()
    (campaign.runs_folder / first / "attempt-2").mkdir()
    assert account(campaign).costs[first] == pytest.approx(1 / 60)


def test_data_sets_to_come_are_a_part_of_it(
    campaign_of: Load, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = "site: toy\nnodes: 4\ncores_per_node: 16\nlaunch: {single: [], multi: []}\n"
    slurm = f"{site}slurm: {{startup_minutes: 0.5, staging: {{minutes: 6, memory_gib: 1}}}}\n"
    (toy / "sites" / "toy.yaml").write_text(f"{slurm}data: {toy / 'data'}\n")
    spec = toy / "benchmarks" / "toy" / "benchmark.yaml"
    data = "data: {name: d, program: main.py, parameters: [rate], files: {train: 2 * ranks}, "
    spec.write_text(f'{spec.read_text()}\n{data}bytes_per_file: "1"}}\n')
    head = (
        f"campaign: t\nsite: toy\nresults: {toy / 'results'}\n"
        f"budget: {{node_hours: 1, adaptive: true}}\n"
    )
    campaign = campaign_of(BODY, head)
    # One job makes the files of all three.
    assert account(campaign).reserved == pytest.approx(3 * 3 / 60 + 6 / 60)
    tight = replace(campaign, spend=replace(campaign.spend, budget=0.14))  # type: ignore[type-var]
    with pytest.raises(UserError, match=r"not one run fits: the first may take up to 0\.15"):
        account(tight)
    (one,) = campaign.experiments
    folder = Path(data_folder(campaign, one.benchmark, one.points[0]) or "")
    (folder / "train").mkdir(parents=True)
    for number in range(8):
        (folder / "train" / f"part-{number:06}.csv").touch()
    assert account(campaign).reserved == pytest.approx(3 * 3 / 60)
    finish(campaign)
    monkeypatch.setattr("scalesweep.adaptive.spend_round.spent_jobs", lambda *_: Collected([]))
    found = account(look(campaign).campaign)
    # Larger counts need more files, which one job makes for all of them.
    jobs = [held_hours(campaign, one.point, one.limit_s) for one in found.kept.decisions]
    assert found.reserved == pytest.approx(sum(jobs) + 0.1)
