"""Each measurement is paid for once: only failed or new runs start, and run ids stay."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance import places
from tests.acceptance.made import Program
from tests.conftest import Project
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.support import slurm_project

pytestmark = pytest.mark.slow

COUNTED = Program(
    "counted", {"size": 1},
    {"rate": {"unit": "items/s", "better": "higher", "scope": "total"}},
    {"command": ["{python}", "{benchmark}/main.py", "{size}"],
     "work": {"scope": "rank", "samples": "size"}},
)  # fmt: skip
# It says that it was started, then a rate.
PROGRAM = """\
import sys
from pathlib import Path
size = sys.argv[1]
with Path("starts").open("a") as file:
    file.write(f"{size}\\n")
if size in Path("refused").read_text().split():
    sys.exit("error: refused")
print("rate", 100 + int(size))
"""
CAMPAIGN = """\
campaign: counted
site: {site}
experiments:
  sizes: {{benchmark: counted, axes: {{size: {sizes}}}}}
"""
# Another campaign and experiment, other words, another order: the same runs.
RENAMED = """\
# A comment.
campaign: of_another_name
description: Other words.
site: {site}
experiments:
  renamed: {{axes: {{size: [6, 5, 4, 3, 2, 1]}}, benchmark: counted, description: What it does.}}
"""
CAMPAIGNS = Path(__file__).resolve().parents[2] / "config" / "campaigns"
# Every benchmark is among them.
QUICK = (
    "ceilings_small", "input_bound_small", "input_pipeline_small", "keras_multi_gpu",
    "layouts_small", "limits_small", "nt3_small", "tf_cnn_benchmarks",
)  # fmt: skip
IDS = Path(__file__).with_name("run_ids.txt")

Call = Callable[..., tuple[int, str]]


def check(project: Project, call: Call, site: str) -> None:
    """Four points, two of which fail; then six: the program must have started for what it says."""
    results = project.path / "results"
    COUNTED.write(project)
    project.write("workflow/benchmarks/counted/main.py", PROGRAM)

    def called(text: str, *words: str, refused: str = "", exit_code: int = 0) -> list[str]:
        """Call Snakemake on this campaign; sizes of the runs that it started."""
        (project.path / "starts").write_text("")
        project.write("refused", refused)
        project.write("c.yaml", text)
        code, said = call(*words, "--configfile", "c.yaml")
        assert code == exit_code, said
        return sorted((project.path / "starts").read_text().split())

    four = CAMPAIGN.format(site=site, sizes="[1, 2, 3, 4]")
    assert called(four, places.TABLES_RULE, refused="3 4", exit_code=1) == ["1", "2", "3", "4"]
    status = {row["size"]: row["status"] for row in places.plan(results)}
    assert status == {"1": "done", "2": "done", "3": "failed", "4": "failed"}
    done = places.records(results)
    assert len(done) == 2

    six = CAMPAIGN.format(site=site, sizes="[1, 2, 3, 4, 5, 6]")
    assert called(six) == ["3", "4", "5", "6"]
    after = places.records(results)
    assert len(after) == 6 and {run_id: after[run_id] for run_id in done} == done

    assert called(RENAMED.format(site=site), places.TABLES_RULE) == []
    (results / places.REPORT).unlink()
    assert called(six) == [] and (results / places.REPORT).exists()
    assert places.records(results) == after


def test_two_failed_and_two_new_of_six_are_four_runs(project: Project) -> None:
    def call(*words: str) -> tuple[int, str]:
        done = project.snakemake(*words)
        return done.returncode, done.stderr

    check(project, call, "toy")


@pytest.mark.slurm
def test_two_failed_and_two_new_of_six_are_four_jobs(cluster: Cluster, tmp_path: Path) -> None:
    # One job a run and call, whatever the cause.
    project = slurm_project(tmp_path / "p", cluster, "{max_attempts: 1}")
    before = project.submitted()
    check(project, project.slurm, "toy_cluster")
    assert wait_until(lambda: project.submitted() >= before + 8, 60)
    assert project.submitted() == before + 8


def ids_of(project: Project, *campaigns: str) -> list[str]:
    """The lines in run_ids.txt of shipped campaigns, from one plan by `snakemake plan`."""
    results = f"planned_{campaigns[0]}"
    merged: dict[str, Any] = {"campaign": "merged", "results": results, "experiments": {}}
    for name in campaigns:
        (path,) = CAMPAIGNS.glob(f"*/{name}.yaml")
        content = yaml.safe_load(path.read_text())
        for title, experiment in content.pop("experiments").items():
            merged["experiments"][_title(name, title, campaigns)] = experiment
        merged = content | merged
    project.write("merged.yaml", yaml.safe_dump(merged, sort_keys=False))
    done = project.snakemake("plan", "--configfile", "merged.yaml")
    assert done.returncode == 0, done.stderr
    ids: dict[str, set[str]] = {name: set() for name in campaigns}
    for row in places.plan(project.path / results):
        ids[_campaign(row["experiment"], campaigns)].add(row["run_id"])
    return [line_of(name, sorted(ids[name] - {""})) for name in campaigns]


def _title(campaign: str, experiment: str, campaigns: tuple[str, ...]) -> str:
    """Other keys of a campaign may name its experiments: alone, they keep their names."""
    return f"{campaign}__{experiment}" if campaigns[1:] else experiment


def _campaign(title: str, campaigns: tuple[str, ...]) -> str:
    return title.split("__", maxsplit=1)[0] if campaigns[1:] else campaigns[0]


def line_of(campaign: str, ids: list[str]) -> str:
    return f"{campaign} {len(ids)} {hashlib.sha256(' '.join(ids).encode()).hexdigest()[:16]}"


def test_run_ids_of_the_shipped_campaigns(project: Project, whole: bool) -> None:
    names = sorted(path.stem for path in CAMPAIGNS.glob("*/*.yaml"))
    listed = {line.split()[0]: line for line in IDS.read_text().splitlines()}
    assert sorted(listed) == names
    # Of any site the ids are the same, so that those of `make test` are planned as one campaign.
    planned = [(name,) for name in names] if whole else [QUICK]
    # Who bumps the version of a benchmark puts these lines into run_ids.txt.
    lines = [line for some in planned for line in ids_of(project, *some)]
    assert lines == [listed[name] for some in planned for name in some]
