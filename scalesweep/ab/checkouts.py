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
from dataclasses import dataclass
from pathlib import Path

from scalesweep.ab.commits import SHORT, Repository, git
from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import last_lines

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


@dataclass(frozen=True, eq=False)
class Checkout:
    """A commit in a folder of its own; made again, it is another one."""

    commit: str
    folder: Path


class Checkouts:
    """The worktrees of one call. Use as a context, which removes them."""

    def __init__(
        self, repository: Repository, folder: Path, build: Sequence[str], prologue: Sequence[str]
    ) -> None:
        """``folder``: for the worktrees, of this call alone; ``build``: lines of shell, called in
        each after the site's ``prologue``."""
        self._repository, self._folder = repository, folder.resolve()
        self._lines = [*prologue, *build] if build else []
        self._there: dict[str, Checkout] = {}

    def __enter__(self) -> "Checkouts":
        """Remove what a call that was killed has left."""
        self._clear()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the worktrees."""
        self._clear()

    def make(self, side: str, commit: str, log: Path) -> Checkout:
        """A commit checked out and built for one side; that of another commit there is removed.

        ``side``: one letter, so that all paths are equally long. Raises BadCommitError, with the
        end of the ``log``.
        """
        known = self._there.get(side)
        if known and known.commit == commit:
            return known
        if known:
            self._remove(known.folder)
        folder = self._folder / f"{side}-{commit[:SHORT]}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Checkout(commit, folder)
        self._there[side] = made
        add = ("worktree", "add", "--force", "--detach", "--quiet")
        git(self._repository.top, *add, str(folder), commit)
        self._build(made, log)
        return made

    def _build(self, checkout: Checkout, log: Path) -> None:
        if not self._lines:
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        script = "\n".join(self._lines)
        with log.open("wb") as out:
            code = subprocess.run(
                ["bash", "-e", "-c", script], cwd=checkout.folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, check=False, preexec_fn=end_with_parent,
            ).returncode  # fmt: skip
        if code:
            said = [line.strip() for line in last_lines(log) if line.strip()]
            raise BadCommitError(
                checkout.commit,
                f"track.build failed (exit code {code})"
                + (f": {said[-1][:200]}" if said else "")
                + f"; see {log}",
            )

    def _clear(self) -> None:
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            if _MADE.fullmatch(folder.name):  # another may be a user's
                self._remove(folder)
        with contextlib.suppress(OSError):
            self._folder.rmdir()
        self._there.clear()

    def _remove(self, folder: Path) -> None:
        """Remove a worktree, whatever is left of it; of another repository's, its folder."""
        with contextlib.suppress(UserError):
            git(self._repository.top, "worktree", "remove", "--force", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)


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
