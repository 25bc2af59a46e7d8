"""Of which commit a run is: that of the repository of the program that was measured."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.core.errors import UserError
from scalesweep.core.host import git_state
from scalesweep.core.paths import BENCHMARKS, CHECKOUT
from scalesweep.core.record import MEASURED_COMMIT
from scalesweep.importers.write_records import IMPORTED


@dataclass(frozen=True)
class Tracked:
    """A commit of the measured program; empty where nothing is known of it.

    ``time``: when it was committed, ISO 8601; ``tags``: separated by spaces.
    """

    commit: str = ""
    dirty: bool = False
    time: str = ""
    subject: str = ""
    tags: str = ""
    repository: str = ""


UNTRACKED = Tracked()
_state = cache(git_state)  # git is asked once for each that is met


def tracked_of(record: Mapping[str, Any], benchmark: Benchmark, top: Path | None) -> Tracked:
    """The commit that a run measured: the one that its import named.

    Else of the repository that the campaign names (``top``): what the record says of a program that
    lies in it, or its commit now, unless it has moved to another one since the run began. Otherwise
    that of a foreign program's repository, of the study, or of scalesweep for a shipped benchmark.
    """
    notes = record.get("notes")
    named = notes.get(MEASURED_COMMIT) if isinstance(notes, Mapping) else None
    git: Mapping[str, Any] | None
    if record.get("source") == IMPORTED and isinstance(named, Mapping):
        git = {"commit": named.get("commit") or "", "dirty": False}
        place = Path(named["repository"]) if named.get("repository") else None
    else:
        git, place = _recorded(record, benchmark)
        if top is not None:
            top = top.resolve()
            if git is None or place is None or not place.resolve().is_relative_to(top):
                began = datetime.fromisoformat(record["started"]).timestamp()
                git = _state(top) if began >= _moved(top) else None
            place = top
    if git is None:
        return UNTRACKED
    commit = str(git["commit"])
    known = _described(place, commit) if place else ("", "", "")
    return Tracked(commit, bool(git["dirty"]), *known, str(place or ""))


def _recorded(
    record: Mapping[str, Any], benchmark: Benchmark
) -> tuple[Mapping[str, Any] | None, Path | None]:
    """State and place of the repository of the program, as the record says."""
    files = (record.get("program") or {}).get("files") or {}
    for file in files.values():
        if isinstance(file.get("git"), dict):
            return file["git"], Path(file["path"]).parent
    if benchmark.folder.resolve().is_relative_to(BENCHMARKS):
        return (None, None) if benchmark.extract else (record.get("git"), CHECKOUT)
    return record.get("study"), benchmark.folder


def git(folder: Path, *words: str) -> str:
    """What git prints in a folder; raises UserError with its first line of complaint.

    Without the lock for refreshing the index, and without the hooks of the repository's owner.
    """
    command = ["git", "--no-optional-locks", "-c", "core.hooksPath=/dev/null"]
    command += ["-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError("git: not found on this machine") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise UserError(f"{folder}: git {words[0]}: {said[0].removeprefix('fatal: ')}")
    return done.stdout.decode(errors="replace").strip()


def _git(folder: Path, *words: str) -> str:
    """The same; empty if it cannot tell."""
    try:
        return git(folder, *words)
    except UserError:
        return ""


@cache
def _described(folder: Path, commit: str) -> tuple[str, str, str]:
    """Time, subject and tags of a commit; empty where they are not known."""
    time, _, subject = _git(folder, "show", "-s", "--format=%cI%n%s", commit, "--").partition("\n")
    return time, subject, " ".join(_git(folder, "tag", "--points-at", commit).split())


@cache
def _moved(folder: Path) -> float:
    """When the checked-out commit was last another one, in Unix seconds; 0 if not known."""
    match = re.search(r"@\{(\d+)\}", _git(folder, "log", "-g", "-1", "--format=%gd", "--date=unix"))
    return float(match[1]) if match else 0.0
