"""What a campaign asks of Slurm's daemons beyond submitting its jobs and starting their steps.

A campaign of short runs, a job each, on a Slurm of four nodes that this program boots. ``sdiag``
and ``sacctmgr show stats`` count the remote procedure calls by type before and after. Of these the
questions count: what jobs, steps, nodes, partitions and settings there are, whether a request would
be taken, and what the accounting has. Each submission, and what a job and its steps need to run at
all, is the same however they were submitted.

Questions of a call and looks at its queue do not grow with its jobs in the same way. Hence a
campaign of half as many jobs goes before, and the line through both says what a larger one takes
at most: looks become rarer the longer submitting takes (``--jobs 500`` measures them).
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run
from tests.slurm.cluster import Cluster
from tests.slurm.support import slurm_project

CAMPAIGN = """\
campaign: c
site: toy_cluster
experiments:
  e:
    benchmark: toy
    axes: {{size: {{from: 1, to: {jobs}, step: 1}}}}
    fixed: {{ranks: 1, ranks_per_node: 1}}
"""
_CALL = re.compile(r"^\s*((?:REQUEST|DBD|MESSAGE|PERSIST)\w*)\s*\(\s*\d+\)\s*count:(\d+)", re.M)
# Each srun asks for its job's allocation once; sdiag and sacctmgr ask for statistics here.
_QUESTION = re.compile(
    r"^REQUEST_(?!HET_JOB_ALLOC|STATS)\w*INFO|^REQUEST_JOB_WILL_RUN|^REQUEST_SHARE"
    r"|^DBD_GET_(?!STATS)"
)
PER = 500


def calls(cluster: Cluster) -> Counter[str]:
    """Calls of slurmctld and slurmdbd so far, by type."""
    said = cluster.run("sdiag").partition("statistics by user")[0]
    books = cluster.run("sacctmgr", "show", "stats").partition("by user")[0]
    counts: Counter[str] = Counter()
    for name, count in _CALL.findall(said + books):
        counts[name] += int(count)
    return counts


def questions(made: Counter[str]) -> Counter[str]:
    """Those of these calls that are questions."""
    return Counter({kind: count for kind, count in made.items() if _QUESTION.match(kind)})


def campaign(cluster: Cluster, folder: Path, jobs: int) -> tuple[Counter[str], int]:
    """Run a campaign of so many jobs; the calls that were made, and the lines that it printed."""
    project = slurm_project(folder, cluster)
    project.write("c.yaml", CAMPAIGN.format(jobs=jobs))
    before = calls(cluster)
    # As a user calls it: the tests look at the queue more often.
    words = ("--profile", "slurm", "--configfile", "c.yaml", "--until", "run")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *words], cwd=project.path, check=False,
        env=project.environment(), capture_output=True, text=True,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(said)
    return calls(cluster) - before, said.count("\n")


def measure(jobs: int = 100) -> Iterator[dict[str, Any]]:
    """Of campaigns of half as many jobs and of so many, at least 2."""
    sizes: tuple[int, int] = (jobs // 2, jobs)
    with tempfile.TemporaryDirectory(prefix="b-") as name, Cluster(f"{name}/c") as cluster:
        (few, few_lines), (made, lines) = (
            campaign(cluster, Path(name, str(size)), size) for size in sizes
        )
    few_asked, asked = questions(few), questions(made)

    def at(less: float, more: float) -> float:
        """What a campaign of ``PER`` jobs takes, on the line through both measured ones."""
        return more + (more - less) * ((PER - sizes[1]) / (sizes[1] - sizes[0]))

    books = [
        sum(n for kind, n in counts.items() if kind.startswith("DBD"))
        for counts in (few_asked, asked)
    ]
    total = at(few_asked.total(), asked.total())
    yield figure(f"questions to Slurm's daemons for {PER} jobs", total, "calls")
    yield figure("  of these to the accounting", at(*books), "calls")
    yield figure(f"  lines that a call prints for {PER} jobs", at(few_lines, lines), "lines")


if __name__ == "__main__":
    run(measure)
