"""Many runs in one Slurm job of the user's: side by side on nodes of their own, none lost."""

import contextlib
import itertools
import shlex
import sys
from functools import partial
from pathlib import Path

import psutil

from scalesweep.core.rank_columns import machine_names
from tests.conftest import ROOT
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm, submit
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: many
site: toy_cluster
experiments:
  e: {benchmark: toy, axes: {size: [1, 2, 3, 4, 5]}, fixed: {ranks_per_node: 1}, repeats: 3}
"""


def at_work(folder: Path) -> bool:
    """Whether a process works in this folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(process.cwd()) == folder:
                return True
    return False


def test_one_allocation_many_runs(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(tmp_path / "p", cluster)
    site = project.path / "config" / "sites" / "toy_cluster.yaml"
    slow = """sh, -c, 'sleep 2; exec "$0" "$@"']"""  # in the step, which is what holds nodes
    site.write_text(site.read_text().replace('rank}"]', f'rank}}", {slow}'))
    project.write("c.yaml", CAMPAIGN)
    words = [sys.executable, "-m", "snakemake", "--configfile", "c.yaml", "--cores", "4"]
    words += ["--resources", "nodes=4", "--until", "run"]
    script = f"cd {project.path} && PYTHONPATH={ROOT / 'plugins'} {shlex.join(words)}"
    job = partial(submit, cluster, script, "--nodes=4", "--exclusive", "--time=10")
    first = job()
    assert wait_until(lambda: len(project.records()) >= 5, 90)
    cluster.run("scancel", first)  # which ends it as its time limit would
    assert wait_until(lambda: cluster.run("squeue", "-h") == "", 120)
    out = (cluster.folder / f"job-{first}.out").read_text()
    assert wait_until(lambda: not at_work(project.path), 180)  # linuxproc is not strict
    before = project.records()
    assert 5 <= len(before) < 15, out

    second = job()
    assert wait_until(lambda: cluster.run("squeue", "-h") == "", 120)
    out = (cluster.folder / f"job-{second}.out").read_text()
    after = project.records()
    assert len(after) == 15 and {i: after[i] for i in before} == before, out
    for run_id in before:
        assert not list(project.path.glob(f"results/runs/*/{run_id}/attempt-2")), run_id
    records = project.results().values()
    together = [
        {*machine_names(a["resources"])}.isdisjoint(machine_names(b["resources"]))
        for a, b in itertools.combinations(records, 2)
        if a["started"] < b["ended"] and b["started"] < a["ended"]
    ]
    assert together and all(together), out
