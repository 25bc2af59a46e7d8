"""A program in a repository of its own, and a campaign that measures it."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scalesweep.config.campaign import Campaign, load_campaign

BENCHMARK = """\
name: tracked
version: 1
summary: A program in a repository of its own.
parameters:
  ranks: {type: integer, minimum: 1, default: 1, unit: ranks, doc: number of ranks}
  ranks_per_node: {type: integer, minimum: 1, default: 8, unit: ranks, doc: ranks on a node}
  size: {type: integer, default: 1, unit: null, doc: size}
command: ["{python}", "{program:tracked}"]
result:
  extract:
    - {metric: step_time, pattern: 'step: (\\S+) s', unit: s, better: lower, scope: rank}
"""
CAMPAIGN = """\
campaign: nightly
site: toy
programs: {tracked: PROGRAM}
experiments:
  steps: {benchmark: tracked, axes: {size: [1, 2]}, repeats: 4}
"""


def git(folder: Path, *words: str, **env: str) -> str:
    """Call git in a repository; what it prints."""
    user = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", "-C", folder, *user, *words], env={**os.environ, **env}, check=True,
        capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def commit(folder: Path, subject: str, **env: str) -> str:
    """Commit all that lies in a folder, a repository from now on; the commit."""
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", subject, **env)
    return git(folder, "rev-parse", "HEAD")


@dataclass
class Tracked:
    """The repository, its commits by number, and how to load the campaign."""

    folder: Path
    commits: list[str]
    load: Callable[..., Campaign]


def make_tracked(folder: Path) -> Tracked:
    """A repository of four commits, of which the second lacks the program; the last is tagged v1.
    ``folder`` has the folder ``benchmarks`` that a campaign's are found in."""
    repository = folder / "program"
    repository.mkdir()
    commits = []
    for number in range(4):
        # The second one lacks the program.
        program = repository / ("other.py" if number == 1 else "main.py")
        program.write_text(f"print('step: {number + 1} s')\n")
        commits.append(commit(repository, f"Change {number}"))
        program.unlink()
    git(repository, "checkout", "-q", ".")
    git(repository, "tag", "v1")
    (folder / "benchmarks" / "tracked").mkdir()
    (folder / "benchmarks" / "tracked" / "benchmark.yaml").write_text(BENCHMARK)

    def load(more: str = "", program: Path = repository / "main.py") -> Campaign:
        path = folder / "c.yaml"
        path.write_text(CAMPAIGN.replace("PROGRAM", str(program)) + more)
        return load_campaign(path)

    return Tracked(repository, commits, load)
