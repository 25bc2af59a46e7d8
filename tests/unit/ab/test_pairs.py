"""Which points are measured, in what order, with which orders, and what a call goes on with."""

import json
from pathlib import Path

import pytest

from scalesweep.ab.commits import Repository
from scalesweep.ab.pairs import (
    BASE,
    FIRST,
    NEW,
    SIDES,
    Pairs,
    Planned,
    Target,
    repository_of,
    targets_of,
)
from scalesweep.ab.session import AbSession
from scalesweep.compute.job_spec import read_order
from scalesweep.core.errors import UserError
from scalesweep.core.record import FAILURE, RECORD
from tests.fakes.tracked import Tracked


def measured(pairs: Pairs, side: str, target: Target, repeat: int) -> None:
    folder = pairs.run_folder(Planned(target, side, repeat))
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
        ("step", "", "", r"--points \(an experiment, steps, or .*unknown parameter 'step'"),
        ("size == 3", "", "", "no point of the campaign is of this kind"),
        ("size ==", "", "", "is not an expression"),
        ("", "speed", "", "'speed' is not a metric of benchmark tracked"),
        ("", "", "2", "--repeats 2: allowed: numbers from 3"),
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
    with pytest.raises(UserError, match="both commits would be the same"):
        pairs.order(pairs.schedule(targets)[0], tracked.folder)


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
            measured(pairs, side, first, repeat)
    measured(pairs, BASE, second, 0)  # a pair of which one run is missing is measured again
    left = [(1, side, None) for side in SIDES]
    assert shown() == [*left, *block(1, 0), *block(1, 2), *[(1, side, 4) for side in SIDES]]
    assert pairs.done(first) == [0, 1, 2, 3, 4] and pairs.done(second) == []
    more = targets_of(campaign, "size == 1", "", "6")
    assert [run.repeat for run in pairs.schedule(more)] == [None, None, 5, 5]


def test_an_order_starts_the_program_of_its_commit(tracked: Tracked, tmp_path: Path) -> None:
    campaign = tracked.load()
    (target,) = targets_of(campaign, "size == 2", "", "")
    pairs = Pairs(campaign, Repository(tracked.folder), tracked.commits[0], tracked.commits[3])
    checkouts = {}
    for side in SIDES:
        checkouts[side] = tmp_path / side
        checkouts[side].mkdir()
        (checkouts[side] / "main.py").touch()
    for planned in pairs.schedule([target])[:4]:
        path, _ = pairs.order(planned, checkouts[planned.side])
        order = read_order(path)
        assert order["argv"][-1] == str(checkouts[planned.side] / "main.py")
        assert list(order["program"]["files"].values()) == [order["argv"][-1]]
        assert order["folder"] == str(path.parent.resolve())
        assert (FIRST in path.parts) == (planned.repeat is None)
    failure = {"run_id": target.run_id(1), "cause": "NON_ZERO_EXIT", "detail": "exit code 3"}
    (pairs.run_folder(Planned(target, BASE, 0)) / FAILURE).write_text(json.dumps(failure))
    assert pairs.failure(target) == (BASE, "NON_ZERO_EXIT: exit code 3")


def test_another_setting_is_another_measurement(tracked: Tracked) -> None:
    places = set()
    path = tracked.folder.parent / "benchmarks" / "tracked" / "benchmark.yaml"
    text = path.read_text()
    for more, word in (("", ""), ("track: {build: [make]}\n", ""), ("", ', "-v"')):
        path.write_text(text.replace('"{program:tracked}"', f'"{{program:tracked}}"{word}'))
        campaign = tracked.load(more)
        pairs = Pairs(campaign, Repository(tracked.folder), "a" * 40, "b" * 40)
        places |= {pairs.place(target) for target in targets_of(campaign, "", "", "")}
    assert len(places) == 6


def test_on_slurm_commits_are_measured_in_one_allocation(
    tracked: Tracked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr("sys.argv", ["scalesweep", "ab", "v1", "HEAD"])
    site = tracked.folder.parent / "sites" / "toy.yaml"
    site.write_text(site.read_text().replace("oversubscribe: true", "slurm: {account: mine}"))
    session = AbSession(tracked.load(), {})
    call = r"sbatch --nodes=1 .*--account=mine .*--wrap 'scalesweep ab v1 HEAD'$"
    with pytest.raises(UserError, match=rf"in one allocation of Slurm: {call}"), session.open():
        pass
