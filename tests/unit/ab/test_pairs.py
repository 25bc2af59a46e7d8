"""Which points are measured, in what order, with which orders, and what a call goes on with."""

import json
from pathlib import Path

import pytest

from scalesweep.ab.checkouts import BadCommitError, Checkout
from scalesweep.ab.commits import Repository
from scalesweep.ab.pairs import BASE, FIRST, NEW, SIDES, Pairs
from scalesweep.ab.targets import repository_of, targets_of
from scalesweep.compute.job_spec import read_order
from scalesweep.core.errors import UserError
from scalesweep.core.record import FAILURE, RECORD
from tests.fakes.tracked import Tracked


def measured(pairs: Pairs, side: str, run_id: str) -> None:
    folder = pairs.folder / side / run_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).touch()


def test_points_are_named_by_experiment_or_expression(tracked: Tracked) -> None:
    campaign = tracked.load()
    every = targets_of(campaign, "", "", "")
    assert [one.label for one in every] == ["steps: size 1", "steps: size 2"]
    assert [one.repeats for one in every] == [4, 4]
    assert targets_of(campaign, " steps ", "", "") == every
    (one,) = targets_of(campaign, "size == 2 and ranks < 4", "step_time", "7")
    assert (one.label, one.repeats, one.metric) == ("steps: size 2", 7, "step_time")
    for points, metric, repeats, wrong in (
        ("step", "", "", r"unknown parameter 'step'.*an experiment \(steps\) may be named instead"),
        ("size == 3", "", "", "no point of the campaign is of this kind"),
        ("size ==", "", "", "is not an expression"),
        ("", "speed", "", "'speed' is not a metric of benchmark tracked"),
        ("", "", "2", "--repeats 2: allowed: numbers from 3 to 1,000"),
        ("", "", "many", "--repeats many: allowed"),
    ):
        with pytest.raises(UserError, match=wrong):
            targets_of(campaign, points, metric, repeats)


def test_the_repository_is_that_of_the_program_or_the_one_named(tracked: Tracked) -> None:
    campaign = tracked.load()
    targets = targets_of(campaign, "", "", "")
    assert repository_of(campaign, targets).top == tracked.folder.resolve()
    elsewhere = tracked.folder.parent / "alone.py"
    elsewhere.touch()
    for more, wrong in (
        ("", "lie in none; add `track: {repository: PATH}`"),
        (f"track: {{repository: {tracked.folder.parent}}}", "no git repository"),
    ):
        campaign = tracked.load(more, elsewhere)
        with pytest.raises(UserError, match=wrong):
            repository_of(campaign, targets_of(campaign, "", "", ""))
    campaign = tracked.load(f"track: {{repository: {tracked.folder}}}", elsewhere)
    targets = targets_of(campaign, "", "", "")
    repository = repository_of(campaign, targets)
    pairs = Pairs(campaign, repository, tracked.commits[0], tracked.commits[3])
    here = Checkout(tracked.commits[0], tracked.folder)
    with pytest.raises(UserError, match="both commits would be the same"):
        pairs.order_all(pairs.schedule(targets), dict.fromkeys(SIDES, here), {})


def test_runs_alternate_and_a_call_goes_on(tracked: Tracked) -> None:
    campaign = tracked.load()
    targets = targets_of(campaign, "", "", "5")
    pairs = Pairs(campaign, Repository(tracked.folder), tracked.commits[0], tracked.commits[3])
    first, second = targets

    def shown() -> list[tuple[int, str, int | None]]:
        return [(targets.index(o.target), o.side, o.repeat) for o in pairs.schedule(targets)]

    def block(p: int, n: int) -> list[tuple[int, str, int | None]]:
        return [(p, BASE, n), (p, NEW, n), (p, NEW, n + 1), (p, BASE, n + 1)]

    whole: list[tuple[int, str, int | None]]
    whole = [(p, side, None) for p in (0, 1) for side in SIDES]
    whole += [*block(0, 0), *block(1, 0), *block(0, 2), *block(1, 2)]
    whole += [(p, side, 4) for p in (0, 1) for side in SIDES]
    assert shown() == whole
    for repeat in range(5):
        for side in SIDES:
            measured(pairs, side, first.run_id(repeat))
    measured(pairs, BASE, second.run_id(0))  # a pair of which one run is missing is measured again
    left = [(1, side, None) for side in SIDES]
    assert shown() == [*left, *block(1, 0), *block(1, 2), *[(1, side, 4) for side in SIDES]]
    assert pairs.done(first) == [0, 1, 2, 3, 4] and pairs.done(second) == []
    warm = {(BASE, second.run_id(0)), (NEW, first.run_id(0))}
    assert [o.side for o in pairs.schedule(targets, warm) if o.repeat is None] == [NEW]
    more = targets_of(campaign, "size == 1", "", "6")
    assert pairs.missing(more[0]) == [5]


def test_an_order_starts_the_program_of_its_commit(tracked: Tracked, tmp_path: Path) -> None:
    campaign = tracked.load()
    (target,) = targets_of(campaign, "size == 2", "", "")
    pairs = Pairs(campaign, Repository(tracked.folder), tracked.commits[0], tracked.commits[3])
    checkouts = {}
    for side, commit in zip(SIDES, (pairs.base, pairs.new), strict=True):
        checkouts[side] = Checkout(commit, tmp_path / side)
        checkouts[side].folder.mkdir()
        (checkouts[side].folder / "main.py").touch()
    stale = pairs.folder / BASE / target.run_id(0)
    measured(pairs, BASE, target.run_id(0))
    (stale / "notes.txt").write_text("mine")
    runs = pairs.order_all(pairs.schedule([target]), checkouts, {})
    assert not (stale / RECORD).exists() and (stale / "notes.txt").read_text() == "mine"
    assert {run.group for run in runs} == {target.run_id(0)}
    for path, digest, _ in runs:
        side = next(side for side in SIDES if f"/{side}/" in str(path))
        order = read_order(path)
        assert path.read_text().endswith(f'"{digest}"}}\n')
        assert order["argv"][-1] == str(checkouts[side].folder / "main.py")
        assert list(order["program"]["files"].values()) == [order["argv"][-1]]
        assert order["folder"] == str(path.parent.resolve())
    assert {run.order.relative_to(pairs.folder).parts[0] for run in runs[:2]} == {FIRST}
    (checkouts[NEW].folder / "main.py").unlink()
    with pytest.raises(BadCommitError, match=f"^{pairs.new[:10]}: has no main.py"):
        pairs.order_all(pairs.schedule([target]), checkouts, {})
    failure = {"run_id": target.run_id(1), "cause": "NON_ZERO_EXIT", "detail": "exit code 3"}
    (stale / FAILURE).write_text(json.dumps(failure))
    assert pairs.failure(target) == (BASE, "NON_ZERO_EXIT: exit code 3")


def test_another_setting_is_another_measurement(tracked: Tracked) -> None:
    folders = set()
    for more in ("", "track: {build: [make]}\n", "track: {build: [make -j2]}\n"):
        campaign = tracked.load(more)
        pairs = Pairs(campaign, Repository(tracked.folder), "a" * 40, "b" * 40)
        folders.add(pairs.folder)
    assert len(folders) == 3
    path = tracked.folder.parent / "benchmarks" / "tracked" / "benchmark.yaml"
    path.write_text(path.read_text().replace('"{program:tracked}"]', '"{program:tracked}", "-v"]'))
    campaign = tracked.load("track: {build: [make]}\n")
    pairs = Pairs(campaign, Repository(tracked.folder), "a" * 40, "b" * 40)
    assert pairs.folder not in folders
