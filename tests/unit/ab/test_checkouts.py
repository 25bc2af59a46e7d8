"""Commits in folders of their own: built, removed whatever happens, the user's left alone."""

import subprocess
from pathlib import Path

import pytest

from scalesweep.ab.commits import BadCommitError, Checkouts, Repository, relocated, top_of
from scalesweep.core.errors import UserError
from scalesweep.history.tracked import git
from tests.fakes.tracked import Tracked


def state(folder: Path) -> tuple[str, str, str]:
    """All that a call could change of a repository: worktrees, files, the commit."""
    return (
        git(folder, "worktree", "list"),
        git(folder, "status", "--porcelain"),
        git(folder, "rev-parse", "HEAD"),
    )


def test_a_checkout_is_built_and_removed(tracked: Tracked, tmp_path: Path) -> None:
    (tracked.folder / "main.py").write_text("changed here\n")
    hook = tracked.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    before, repository = state(tracked.folder), Repository(tracked.folder)
    place = tmp_path / "checkouts"
    checkouts = Checkouts(repository, place, ["cat main.py > built"], ["export A=1"])
    first = checkouts.make("a", tracked.commits[0])
    assert first.name == f"a-{tracked.commits[0][:10]}"
    assert (first / "built").read_text() == "print('step: 1 s')\n"
    assert not (first / "hooked").exists()
    assert checkouts.make("a", tracked.commits[0]) == first
    second = checkouts.make("b", tracked.commits[0])
    assert second.is_dir() and second != first
    checkouts.make("a", tracked.commits[2])
    assert not first.exists()
    for _ in range(2):
        with pytest.raises(
            BadCommitError, match=r"^\w{10}: track.build failed \(exit code 1\): cat: "
        ):
            checkouts.make("b", tracked.commits[1])
    checkouts.clear()
    assert state(tracked.folder) == before and not place.exists()


def test_what_a_killed_call_left_is_removed(tracked: Tracked, tmp_path: Path) -> None:
    before = state(tracked.folder)
    checkouts = Checkouts(Repository(tracked.folder), tmp_path / "checkouts", [], [])
    folder = checkouts.make("a", tracked.commits[0])
    assert state(tracked.folder) != before
    checkouts.clear()
    assert state(tracked.folder) == before
    # Its folder alone is gone: git still knows the worktree.
    checkouts.make("a", tracked.commits[0])
    subprocess.run(["rm", "-r", str(folder)], check=True)
    assert (checkouts.make("a", tracked.commits[0]) / "main.py").is_file()
    checkouts.clear()
    assert state(tracked.folder) == before


def test_names_of_commits(tracked: Tracked) -> None:
    repository, commits = Repository(tracked.folder), tracked.commits
    for text, number in (("v1", 3), (commits[3][:8], 3), ("HEAD~2", 1)):
        assert repository.commit(text, "base") == commits[number]
    for bad in ("nope", "--help", "HEAD:main.py", "v1^{tree}"):
        with pytest.raises(UserError, match=r"^BASE .*: no commit of /"):
            repository.commit(bad, "BASE")
    assert repository.between(commits[0], commits[3]) == commits[1:]
    for pair in ((3, 0), (2, 2)):
        with pytest.raises(UserError, match=r"does not come before|are the same commit"):
            repository.between(*(commits[n] for n in pair))
    assert repository.subject(commits[2]) == "Change 2"
    assert top_of(tracked.folder / "gone" / "x") is None and top_of(Path("/proc")) is None


def test_paths_in_the_repository_are_relocated(tmp_path: Path) -> None:
    checkout = tmp_path / "a"
    (checkout / "lib").mkdir(parents=True)
    always = frozenset({"/src/p/main.py", "/src/p/folder"})

    def there(text: str) -> str:
        return relocated(text, ["/src/p"], checkout, always)

    assert there("/src/p/main.py") == f"{checkout}/main.py"  # there or not: it is the program
    assert there("/src/p/folder/main.py") == f"{checkout}/folder/main.py"
    assert there("--path=/src/p/lib:/src/p/lib/x") == f"--path={checkout}/lib:/src/p/lib/x"
    for same in ("/src/p/.venv/bin/python", "/src/program/lib", "/home/src/p/lib", "lib"):
        assert there(same) == same
