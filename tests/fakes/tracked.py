"""A program in a repository of its own, and a campaign that measures it."""

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


@dataclass
class Tracked:
    """The repository, its commits by number, and how to load the campaign."""

    folder: Path
    commits: list[str]
    load: Callable[..., Campaign]


def make_tracked(folder: Path) -> Tracked:
    """A repository of four commits, of which the second lacks the program; the last is tagged v1.

    ``folder`` has the folder ``benchmarks`` that a campaign's are found in.
    """
    repository = folder / "program"
    repository.mkdir()
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    commits = []
    for number in range(4):
        # The second one lacks the program.
        name = "other.py" if number == 1 else "main.py"
        subprocess.run([*git, "rm", "-rqf", "--ignore-unmatch", "main.py", "other.py"], check=True)
        (repository / name).write_text(f"print('step: {number + 1} s')\n")
        subprocess.run([*git, "add", name], check=True)
        subprocess.run([*git, "commit", "-qm", f"Change {number}"], check=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True)
        commits.append(done.stdout.decode().strip())
    subprocess.run([*git, "tag", "v1"], check=True)
    (folder / "benchmarks" / "tracked").mkdir()
    (folder / "benchmarks" / "tracked" / "benchmark.yaml").write_text(BENCHMARK)

    def load(more: str = "", program: Path = repository / "main.py") -> Campaign:
        path = folder / "c.yaml"
        path.write_text(CAMPAIGN.replace("PROGRAM", str(program)) + more)
        return load_campaign(path)

    return Tracked(repository, commits, load)
