"""Records are compared with what is planned: what disagrees is stale until the user decides."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.compute.launcher import launch
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import state_digest, take_stock, tell_stale
from scalesweep.tables.now import read_now
from tests.conftest import ROOT

Load = Callable[..., Campaign]


@pytest.fixture
def load(foreign: Path) -> Load:
    """A campaign of both benchmarks; ``head`` are more keys of the file."""

    def campaign(head: str = "") -> Campaign:
        path = foreign / "c.yaml"
        path.write_text(
            f"campaign: c\nsite: toy\nresults: {foreign}/results\n{head}\n"
            f"programs: {{speaker: {foreign}/speaker.py}}\nexperiments:\n"
            "  ours: {benchmark: toy}\n  theirs: {benchmark: foreign}\n"
        )
        return load_campaign(path)

    return campaign


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the results of the two runs are kept, once they have been made."""
    return tmp_path_factory.mktemp("kept") / "results"


@pytest.fixture
def measured(load: Load, results: Path) -> Load:
    """The same, after its two runs."""
    campaign = load()
    if results.exists():
        shutil.copytree(results, campaign.results)
    else:
        for experiment, run in campaign.unique_runs().values():
            assert launch(run_spec(campaign, experiment, run), ROOT) == 0
        shutil.copytree(campaign.results, results)
    assert [state.status for state in stock(campaign)] == ["done", "done"]
    return load


def stock(campaign: Campaign) -> list[RunState]:
    """States of the run of ``toy`` and of that of ``foreign``."""
    return list(take_stock(campaign, campaign.unique_runs()).values())


def edit(folder: Path, size: int = 4, **changes: Any) -> None:
    """Change keys of the foreign benchmark.yaml, and the default of its parameter ``size``."""
    path = folder / "benchmarks" / "foreign" / "benchmark.yaml"
    content = yaml.safe_load(path.read_text()) | changes
    content["parameters"]["size"]["default"] = size
    path.write_text(yaml.safe_dump(content))


def test_a_changed_default_is_stale_until_the_version_or_the_campaign_says_so(
    foreign: Path, measured: Load
) -> None:
    before = measured()
    digest = state_digest(before, take_stock(before, before.unique_runs()))
    edit(foreign, size=8)
    campaign = measured()
    runs = campaign.unique_runs()
    states = take_stock(campaign, runs)
    ours, theirs = states.values()
    assert (ours.status, theirs.status) == ("done", "stale")
    # The command follows the parameter: one difference, not two.
    assert (theirs.cause, theirs.detail) == ("changed", "size was 4, is 8")
    assert theirs.settled and state_digest(campaign, states) != digest
    line = tell_stale(campaign, runs, states)
    assert line.startswith("1 run of 2 is stale") and "\n" not in line
    assert "size was 4, is 8 (1 run)" in line and "'accept_stale: [theirs]'" in line
    assert f"`scalesweep run {campaign.file} --again theirs`" in line
    text = plan_text(build_plan(campaign, states))
    assert "2 runs, 1 done, 0 failed, 0 new, 1 stale" in text
    assert "remaining time" not in text
    # The two ways out.
    assert stock(measured("accept_stale: [ours]"))[1].status == "stale"
    accepted = stock(measured("accept_stale: [theirs]"))[1]
    assert (accepted.status, accepted.detail) == ("done", "accepted although size was 4, is 8")
    edit(foreign, size=8, version=2)
    assert [state.status for state in stock(measured())] == ["done", "new"]


def test_nothing_is_read_again_while_the_plan_stays(
    foreign: Path, measured: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(foreign, size=8)
    before = stock(measured())
    with monkeypatch.context() as patched:
        patched.setattr(
            "scalesweep.state.run_state.read_record", lambda path: pytest.fail("read again")
        )
        assert stock(measured()) == before
        # Neither comments nor what a record cannot disagree in.
        edit(foreign, size=8, summary="Another one.")
        assert stock(measured()) == before
        assert stock(measured("accept_stale: [theirs]"))[1].status == "done"
    edit(foreign)
    assert [state.status for state in stock(measured())] == ["done", "done"]


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        (
            {"command": ["{python}", "{program:speaker}", "--size={size}", "--out={out}", "-v"]},
            "the command changed",
        ),
        ({"env": {"SIZE": "size"}}, "its variables changed"),
        ({"launch": {"single": ["x"], "multi": []}}, "launch.single changed"),
    ],
)
def test_a_changed_command_is_stale(
    foreign: Path, measured: Load, changes: dict[str, Any], detail: str
) -> None:
    edit(foreign, **changes)
    state = stock(measured())[1]
    assert (state.status, state.cause, state.detail) == ("stale", "changed", detail)
    assert len(read_now(measured("accept_stale: [theirs]"))[1]) == 2


def test_what_other_patterns_alone_do_not_explain_is_measured_again(
    foreign: Path, measured: Load
) -> None:
    found = {"metric": "a", "pattern": "a (.*)", "unit": "s", "better": "lower", "scope": "total"}
    edit(foreign, size=8, result={"extract": [found]}, main_metric="a")
    campaign = measured()
    runs = campaign.unique_runs()
    line = tell_stale(campaign, runs, take_stock(campaign, runs))
    assert "`scalesweep reread" in line and "--again theirs`" in line and "accept_stale" in line


def test_a_changed_program_is_stale_and_code_of_ours_is_not(foreign: Path, measured: Load) -> None:
    for path in (foreign / "speaker.py", foreign / "benchmarks" / "toy" / "main.py"):
        path.write_text(path.read_text() + "# a comment\n")
    ours, theirs = stock(measured())
    assert (ours.status, theirs.status) == ("done", "stale")
    assert theirs.detail == f"{foreign}/speaker.py was edited since"
    # What cannot be looked at here is not compared, and a program that was moved is the same.
    text = (foreign / "speaker.py").read_text()
    (foreign / "speaker.py").unlink()
    assert stock(measured())[1].status == "done"
    (foreign / "speaker.py").write_text(text.removesuffix("# a comment\n"))
    assert stock(measured())[1].status == "done"
