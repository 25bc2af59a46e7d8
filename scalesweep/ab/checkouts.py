"""Commits checked out in worktrees of their own, built, and removed in the end.

The user's checkout stays as it is. A worktree is a folder below ``results/ab/checkouts`` and an
entry in the repository's ``.git/worktrees``; both are removed after success, failure and Ctrl-C,
and what a killed call has left is removed by the next.
"""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.ab.commits import SHORT, Repository
from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import last_lines
from scalesweep.history.tracked import git

# What may follow a folder in a word: the rest of a path, up to what parts paths in lists.
_REST = r"(?P<rest>/[^:,;\s\"']*)?(?=$|[/:,;\s\"'])"
# The name of a worktree that ``make`` has made.
_MADE = re.compile(rf"[a-z]+-[0-9a-f]{{{SHORT}}}")


class BadCommitError(UserError):
    """A commit that cannot be built, lacks the program or fails: bisecting leaves it out."""

    def __init__(self, commit: str, message: str) -> None:
        """``commit``: in full; ``message``: what is wrong with it."""
        super().__init__(f"{commit[:SHORT]}: {message}")
        self.commit = commit


class Checkouts:
    """The worktrees of one call. Use as a context, which removes them."""

    def __init__(
        self, repository: Repository, folder: Path, build: Sequence[str], prologue: Sequence[str]
    ) -> None:
        """``folder``: for the worktrees, of this call alone; ``build``: lines of shell, called in
        each after the site's ``prologue``."""
        self._repository, self._folder = repository, folder.resolve()
        self._script = "\n".join([*prologue, *build]) if build else ""
        self._made: set[Path] = set()

    def __enter__(self) -> "Checkouts":
        """Remove what a call that was killed has left."""
        self._clear("")
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the worktrees."""
        self._clear("")

    def make(self, side: str, commit: str, log: Path) -> Path:
        """The folder of a commit, checked out and built for one side; that of another commit there
        is removed.

        ``side``: one letter, so that all paths are equally long. Raises BadCommitError, with the
        end of the ``log``.
        """
        folder = self._folder / f"{side}-{commit[:SHORT]}"
        if folder in self._made:
            return folder
        self._clear(f"{side}-")
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._made.add(folder)
        add = ("worktree", "add", "--force", "--detach", "--quiet")
        git(self._repository.top, *add, str(folder), commit)
        if self._script:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as out:
                code = subprocess.run(
                    ["bash", "-e", "-c", self._script], cwd=folder, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=out, check=False, preexec_fn=end_with_parent,
                ).returncode  # fmt: skip
            if code:
                said = [line.strip() for line in last_lines(log) if line.strip()]
                last = f": {said[-1][:200]}" if said else ""
                why = f"track.build failed (exit code {code}){last}; see {log}"
                raise BadCommitError(commit, why)
        return folder

    def _clear(self, prefix: str) -> None:
        """Remove worktrees, whatever is left of them; of another repository's, their folders."""
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            # Another folder may be a user's.
            if folder.name.startswith(prefix) and _MADE.fullmatch(folder.name):
                with contextlib.suppress(UserError):
                    words = ("worktree", "remove", "--force", "--force", str(folder))
                    git(self._repository.top, *words)
                shutil.rmtree(folder, ignore_errors=True)
                self._made.discard(folder)
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


def spellings(top: Path, paths: Mapping[str, str]) -> list[str]:
    """How the top folder of a repository is written in paths of files in it: as it is, and by way
    of symbolic links."""
    names = {str(top): None}
    for path in map(Path, paths.values()):
        inside = path.resolve()
        if inside.is_relative_to(top):
            rest = str(inside.relative_to(top))
            if rest != "." and str(path).endswith(f"/{rest}"):
                names[str(path)[: -len(rest) - 1]] = None
    return sorted(names, key=len, reverse=True)
