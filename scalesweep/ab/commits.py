"""What is asked of the measured program's repository. Nothing here changes it."""

import functools
from dataclasses import dataclass
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.history.tracked import git

SHORT = 10  # digits of a commit that are shown
say = functools.partial(print, flush=True)  # of the progress of what takes long


def top_of(path: Path) -> Path | None:
    """Top folder of the repository that a file or folder lies in; None outside of one."""
    folder = path if path.is_dir() else path.parent
    try:
        return (
            Path(git(folder, "rev-parse", "--show-toplevel")).resolve() if folder.is_dir() else None
        )
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
        """Commits after ``good`` up to ``bad``, the oldest first, along the first parents.

        Raises UserError where ``good`` does not come before ``bad``.
        """
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
        """The first line of a commit's message, without what would command a terminal."""
        text = git(self.top, "show", "-s", "--format=%s", commit)
        return "".join(letter if letter.isprintable() else "?" for letter in text)

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
