"""A study of one's own: its files before the shipped ones; what of it is in no commit."""

import subprocess
from pathlib import Path

import pytest

from scalesweep.config.site import load_site
from scalesweep.config.study import study_folder
from scalesweep.core.errors import UserError
from scalesweep.core.host import git_state
from scalesweep.core.paths import REPO
from scalesweep.smk.campaign_args import campaign_file, find_campaign


def test_outside_of_a_study_there_are_the_shipped_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study_folder() is None  # this repository
    monkeypatch.chdir(tmp_path)
    assert study_folder() is None
    assert campaign_file(None) == REPO / "config" / "config.yaml"
    with pytest.raises(UserError, match="no site 'here'; allowed: 7gforce, az_2xm60, "):
        load_site("here")
    (tmp_path / "config").mkdir()
    assert study_folder() == tmp_path
    own = tmp_path / "config" / "campaigns" / "nt3_small.yaml"
    own.parent.mkdir()
    own.touch()
    assert find_campaign("nt3_small") == own and find_campaign("nt3") != own


def test_a_study_with_files_in_no_commit_is_dirty(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e")
    own = ("config", "benchmarks")
    for name in own:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    dirty = []
    for added in ("config", "."):
        for words in (("init", "-q"), ("add", added), ("commit", "-q", "-m", "next")):
            subprocess.run([*git, *words], check=True)
        (tmp_path / "notes").touch()  # a result, a note: none of what runs are made of
        state = git_state(tmp_path, own)
        dirty.append(state and state["dirty"])
    assert dirty == [True, False]
