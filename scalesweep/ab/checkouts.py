"""Commits checked out in worktrees of their own, built, and removed in the end.

The user's checkout stays as it is. A worktree is a folder below ``results/ab/checkouts`` and an
entry in the repository's ``.git/worktrees``; both are removed after success, failure and Ctrl-C,
and what a killed call has left is removed by the next.
"""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from scalesweep.ab.commits import SHORT, Repository
from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import last_lines
from scalesweep.history.tracked import git

# What may follow a folder in a word: the rest of a path, up to what parts paths in lists.
_REST = r"(?P<rest>/[^:,;\s\"']*)?(?=$|[/:,;\s\"'])"


class BadCommitError(UserError):
    """A commit that cannot be built, lacks the program or fails: bisecting leaves it out."""

    def __init__(self, commit: str, message: str) -> None:
        """``commit``: in full; ``message``: what is wrong with it."""
        super().__init__(f"{commit[:SHORT]}: {message}")
        self.commit = commit


class Checkouts:
    """The worktrees of one call."""

    def __init__(
        self, repository: Repository, folder: Path, build: Sequence[str], prologue: Sequence[str]
    ) -> None:
        """``folder``: for the worktrees, of this call alone; ``build``: lines of shell, called in
        each after the site's ``prologue``."""
        self._repository, self._folder = repository, folder.resolve()
        self._script = "\n".join([*prologue, *build]) if build else ""

    def make(self, side: str, commit: str) -> Path:
        """The folder of a commit, checked out and built for one side; that of another commit there
        is removed.

        ``side``: one letter, so that all paths are equally long. Raises BadCommitError, with the
        end of what the build said.
        """
        folder = self._folder / f"{side}-{commit[:SHORT]}"
        if folder.exists():
            return folder
        self.clear(f"{side}-")
        self._folder.mkdir(parents=True, exist_ok=True)
        add = ("worktree", "add", "--force", "--detach", "--quiet")
        git(self._repository.top, *add, str(folder), commit)
        log = self._folder.parent / f"build-{commit[:SHORT]}.log"
        if self._script:
            with log.open("wb") as out:
                code = subprocess.run(
                    ["bash", "-e", "-c", self._script], cwd=folder, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=out, check=False, preexec_fn=end_with_parent,
                ).returncode  # fmt: skip
            if code:
                self.clear(f"{side}-")
                said = " ".join([line.strip() for line in last_lines(log) if line.strip()][-1:])
                why = f"track.build failed (exit code {code}): {said[:200]}; see {log}"
                raise BadCommitError(commit, why)
        return folder

    def clear(self, prefix: str = "") -> None:
        """Remove the worktrees whose names begin so, whatever is left of them."""
        for folder in self._folder.glob(f"{prefix}*"):
            with contextlib.suppress(UserError):
                words = ("worktree", "remove", "--force", "--force", str(folder))
                git(self._repository.top, *words)
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def relocated(text: str, tops: Sequence[str], checkout: Path, always: frozenset[str]) -> str:
    """A word of a command with paths in the repository replaced by those in a checkout.

    ``tops``: the repository's top folder, as it may be written. Replaced are those that the
    checkout has, and those in or below ``always`` (the programs) whatever it has; others, such as
    an interpreter in a folder that git ignores, stay.
    """

    def there(match: "re.Match[str]") -> str:
        path = f"{checkout}{match['rest'] or ''}"
        own = any(match[0] == folder or match[0].startswith(f"{folder}/") for folder in always)
        return path if own or Path(path).exists() else match[0]

    for top in tops:
        text = re.sub(rf"(?<![\w.-]){re.escape(top)}{_REST}", there, text)
    return text


def spellings(top: Path, paths: Iterable[str]) -> list[str]:
    """How the top folder of a repository is written in paths of files in it: as it is, and by way
    of symbolic links."""
    folders = {folder for path in paths for folder in Path(path).parents}
    names = {str(top), *(str(folder) for folder in folders if folder.resolve() == top)}
    return sorted(names, key=len, reverse=True)
