"""Which runs are not started because enough like them have failed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.compute.left_out import leave_none_out, leave_out, left_out
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.jobs.failure_groups import Enough, FailingKinds

Load = Callable[..., Campaign]
MODES = "axes: {behaviour: [good, exit3], size: [1, 2, 3, 4]}\nrepeats: 2"


def kinds_of(campaign: Campaign) -> FailingKinds:
    return FailingKinds(campaign.stop_after, campaign.unique_runs())


def fail(kinds: FailingKinds, *run_ids: str, detail: str = "exit code 3") -> Enough | None:
    return [kinds.failed(run_id, "NON_ZERO_EXIT", detail) for run_id in run_ids][-1]


def pick(campaign: Campaign, **values: object) -> list[str]:
    """Runs of points with these values."""
    runs = campaign.unique_runs().items()
    return [i for i, (_, run) in runs if values.items() <= dict(run.point).items()]


def test_three_that_failed_alike_stop_those_like_them(campaign_of: Load) -> None:
    campaign = campaign_of(MODES)
    kinds = kinds_of(campaign)
    wrong = pick(campaign, behaviour="exit3")
    # The same value in both repeats, another size: what they share is the mode.
    assert fail(kinds, *wrong[:2]) is None
    enough = fail(kinds, wrong[2])
    assert enough and enough.where == "e behaviour=exit3" and enough.failed == 3
    assert kinds.like(enough, campaign.unique_runs()) == wrong
    # Four points alike do not stop the others.
    assert not set(kinds.like(enough, pick(campaign, behaviour="good")))


def test_a_run_with_the_same_values_that_succeeds_stops_nothing(campaign_of: Load) -> None:
    campaign = campaign_of(MODES)
    kinds = kinds_of(campaign)
    kinds.succeeded(pick(campaign, behaviour="exit3", size=4)[0])
    wrong = [i for i in pick(campaign, behaviour="exit3") if i not in pick(campaign, size=4)]
    assert fail(kinds, *wrong[:3]) is None
    # But the point that failed three times, had it so many repeats.
    more = campaign_of("axes: {size: [1, 2]}\nrepeats: 5")
    kinds = kinds_of(more)
    kinds.succeeded(pick(more, size=2)[0])
    enough = fail(kinds, *pick(more, size=1)[:3])
    assert enough and enough.where == "e size=1"
    assert kinds.like(enough, more.unique_runs()) == pick(more, size=1)


def test_failures_of_other_kinds_and_causes_do_not_add_up(campaign_of: Load) -> None:
    campaign = campaign_of("repeats: 9")
    kinds = kinds_of(campaign)
    runs = list(campaign.unique_runs())
    assert fail(kinds, *runs[:2]) is None and fail(kinds, *runs[2:4], detail="other") is None
    assert fail(kinds, runs[0]) is None  # again, in another call
    for cause in ("NODE_FAIL", "PREEMPTED", "SUSPENDED", "CANCELLED", "NOT_SUBMITTED"):
        assert [kinds.failed(i, cause, "") for i in runs] == [None] * 9
    # Ranks, nodes, jobs and own paths do not tell kinds apart.
    details = [f"exit code 7: gone (rank {n} on node{n})" for n in range(3)]
    found = [kinds.failed(i, "NON_ZERO_EXIT", d) for i, d in zip(runs, details, strict=False)]
    assert found[:2] == [None, None] and found[2]


def test_never_and_by_default(campaign_of: Load) -> None:
    assert campaign_of("repeats: 2").stop_after == 3
    head = "campaign: test\nsite: toy\n"
    never = campaign_of("repeats: 5", f"{head}stop_after: never\n")
    assert never.stop_after is None and fail(kinds_of(never), *never.unique_runs()) is None
    with pytest.raises(UserError, match="stop_after: 0 is not a number of failures, 1 or more"):
        campaign_of("repeats: 5", f"{head}stop_after: 0\n")


def test_what_is_left_out_is_so_until_the_next_call(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert left_out(runs) == frozenset()
    leave_out(runs, ["b", "a"])
    leave_out(runs, ["c"])
    assert left_out(runs) == {"a", "b", "c"}
    leave_none_out(runs)
    leave_none_out(runs)
    assert left_out(runs) == frozenset()
