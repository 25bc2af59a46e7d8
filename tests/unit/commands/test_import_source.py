"""Which commit an import is of."""

import subprocess
from pathlib import Path

import pytest

from scalesweep.commands.import_source import measured_commit
from scalesweep.core.errors import UserError


def test_a_commit_is_digits_or_what_its_repository_knows(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "First"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    tagged = measured_commit("v1", str(tmp_path))
    assert tagged is not None and len(tagged.commit) == 40
    assert tagged.repository == str(tmp_path.resolve())
    assert measured_commit(tagged.commit[:9].upper(), str(tmp_path)) == tagged
    assert measured_commit("", "") is None
    for commit, repository, message in (
        ("v2", str(tmp_path), f"--commit v2: no commit of {tmp_path}"),
        ("v1", str(tmp_path / "none"), f"--repository {tmp_path / 'none'}: no git repository"),
    ):
        with pytest.raises(UserError) as error:
            measured_commit(commit, repository)
        assert str(error.value).startswith(message)
