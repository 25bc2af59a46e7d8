"""A study of one's own: what the working folder has is found first, and names mean one file."""

import shutil
import subprocess
from pathlib import Path

import pytest

from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.site import load_site
from scalesweep.config.study import default_campaign, find_campaign, study_folder
from scalesweep.core.errors import UserError
from scalesweep.core.host import git_state
from scalesweep.core.paths import BENCHMARKS, REPO, SITES
from scalesweep.jobs.run_spec import run_spec
from tests.conftest import ROOT

SITE = "site: here\nnodes: 1\nlaunch: {single: [], multi: []}\n"
CAMPAIGN = "campaign: c\nsite: here\nexperiments:\n  e: {benchmark: toy}\n"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study with a benchmark, a site and campaigns, which is the working folder."""
    shutil.copytree(ROOT / "tests" / "toy", tmp_path / "benchmarks" / "toy")
    for folder, name, text in (
        ("sites", "here", SITE),
        ("campaigns", "mine", CAMPAIGN),
        (".", "config", CAMPAIGN),
    ):
        path = tmp_path / "config" / folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_the_study_has_is_found_next_to_what_is_shipped(study: Path) -> None:
    assert study_folder() == study
    campaign = load_campaign(default_campaign())
    assert campaign.file == study / "config" / "config.yaml"
    (experiment,) = campaign.experiments
    assert experiment.benchmark.folder == study / "benchmarks" / "toy"
    assert str(campaign.site.file) == "config/sites/here.yaml"
    assert load_benchmark("nt3").folder == BENCHMARKS / "nt3"
    assert load_site("piz_daint").file == SITES / "piz_daint.yaml"
    assert find_campaign("mine") == study / "config" / "campaigns" / "mine.yaml"
    assert find_campaign("nt3_small") == REPO / "config" / "campaigns" / "small" / "nt3_small.yaml"
    run = next(iter(campaign.unique_runs().values()))[1]
    assert run_spec(campaign, experiment, run)["study"] == str(study)


def test_outside_of_a_study_there_are_the_shipped_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study_folder() is None  # this repository
    monkeypatch.chdir(tmp_path)
    assert study_folder() is None
    assert default_campaign() == REPO / "config" / "config.yaml"
    with pytest.raises(UserError, match="no site 'here'; allowed: 7gforce, az_2xm60, "):
        load_site("here")


def test_a_study_with_files_in_no_commit_is_dirty(study: Path) -> None:
    assert git_state(study) is None
    git = ("git", "-C", str(study), "-c", "user.name=n", "-c", "user.email=e")
    own = ("config", "benchmarks")
    dirty = []
    for added in ("config", "."):
        for words in (("init", "-q"), ("add", added), ("commit", "-q", "-m", "next")):
            subprocess.run([*git, *words], check=True)
        (study / "notes").touch()  # a result, a note: none of what runs are made of
        state = git_state(study, own)
        dirty.append(state and state["dirty"])
    assert dirty == [True, False]
