"""Commits of the measured program's repository, and worktrees of them: built, removed in the end.

The user's checkout stays as it is. A worktree is a folder below ``results/ab/checkouts`` and an
entry in the repository's ``.git/worktrees``; both are removed after success, failure and Ctrl-C,
and what a killed call has left is removed by the next.
"""

import contextlib
import functools
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import last_lines
from scalesweep.history.tracked import git

SHORT = 10  # digits of a commit that are shown
say = functools.partial(print, flush=True)  # of the progress of what takes long
# What may follow a folder in a word: the rest of a path, up to what parts paths in lists.
_REST = r"(?P<rest>/[^:,;\s\"']*)?(?=$|[/:,;\s\"'])"


def top_of(path: Path) -> Path | None:
    """Top folder of the repository that a file or folder lies in; None outside of one."""
    folder = path if path.is_dir() else path.parent
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel")).resolve()
    except UserError:
        return None


@dataclass(frozen=True)
class Repository:
    """A repository by its top folder."""

    top: Path

    def commit(self, text: str, where: str) -> str:
        """The commit that a name, tag or abbreviation means, in full. Raises UserError."""
        try:
            name = f"{text}^{{commit}}"
            return git(self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
        except UserError:
            raise UserError(
                f"{where} {text}: no commit of {self.top}; allowed: a commit, tag or branch that "
                "`git log` there knows (fetch it first if it is elsewhere)"
            ) from None

    def between(self, good: str, bad: str) -> list[str]:
        """Commits after ``good`` up to ``bad``, the oldest first, along the first parents. Raises
        UserError where ``good`` does not come before ``bad``."""
        try:
            git(self.top, "merge-base", "--is-ancestor", good, bad)
        except UserError:
            raise UserError(
                f"GOOD {good[:SHORT]}: does not come before BAD {bad[:SHORT]} in "
                f"{self.top}; allowed: a commit that BAD was made from"
            ) from None
        listed = git(self.top, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
        if not listed:
            raise UserError(f"GOOD and BAD are the same commit ({good[:SHORT]})")
        return listed.split()

    def subject(self, commit: str) -> str:
        """The first line of a commit's message."""
        return git(self.top, "show", "-s", "--format=%s", commit)

    def described(self, commit: str) -> str:
        """A commit in short, and its subject."""
        return f"{commit[:SHORT]} ({self.subject(commit)})"

    def say_local_changes(self) -> None:
        """Say that there are changes that are in no commit, and so in no measurement."""
        if changed := git(self.top, "status", "--porcelain", "--untracked-files=no").splitlines():
            say(
                f"note: {self.top} has {counted(len(changed), 'file')} with local changes, which "
                "are in no commit: they are left as they are, and not measured"
            )


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
