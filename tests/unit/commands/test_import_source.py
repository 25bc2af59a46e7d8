"""Which commit an import is of, and what its words must be."""

import subprocess
from pathlib import Path

import pytest

from scalesweep.commands.import_source import _measured_commit, run
from scalesweep.commands.interface import read
from scalesweep.core.errors import UserError


def test_a_commit_is_digits_or_what_its_repository_knows(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "First"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    tagged = _measured_commit("v1", str(tmp_path))
    assert tagged is not None and len(tagged.commit) == 40
    assert tagged.repository == str(tmp_path.resolve())
    plain = _measured_commit(tagged.commit[:9].upper(), "")
    assert plain is not None and (plain.commit, plain.repository) == (tagged.commit[:9], "")
    assert _measured_commit("", "") is None
    for commit, repository, message in (
        ("v1", "", "--commit v1: not a commit's hexadecimal digits"),
        ("abc", "", "--commit abc: not a commit's"),
        ("v2", str(tmp_path), f"--commit v2: no commit of {tmp_path}"),
        ("", str(tmp_path), "--repository: is that of a commit; add --commit"),
        ("v1", str(tmp_path / "none"), f"--repository {tmp_path / 'none'}: no git repository"),
    ):
        with pytest.raises(UserError) as error:
            _measured_commit(commit, repository)
        assert str(error.value).startswith(message)


def test_a_history_is_no_results_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("FUNCTION SUMMARY")
    for words, message in (
        (["--baseline", "v1"], "--baseline: is of a history; add --history FOLDER"),
    ):
        _, args = read(["import", "a.txt", "--as", "profiles", "--results", "r", *words])
        with pytest.raises(UserError) as error:
            run(args)
        assert str(error.value).startswith(message)
