"""Profiled runs through Snakemake: beside the measured ones, and in no table of times."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import make_project
from tests.fakes import profilers

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: profiled
site: toy
experiments:
  e:
    benchmark: toy
    axes: {ranks: [1, 2]}
    fixed: {behaviour: trains}
    repeats: 2
"""


def test_profiles_are_runs_of_their_own(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    project.write("c.yaml", CAMPAIGN)
    assert project.snakemake("tables", "--configfile", "c.yaml").returncode == 0
    measured = project.records()
    tables = project.path / "results" / "tables" / "e"
    points = pd.read_parquet(tables / "points.parquet")

    plan = project.snakemake("plan", "--configfile", "c.yaml", "--config", "profile=cprofile")
    assert "profiled with cprofile: 2 runs more, 0 done, 0 failed, 2 new" in plan.stdout
    done = project.snakemake("--configfile", "c.yaml", "--config", "profile=cprofile")
    assert done.returncode == 0, done.stderr
    after = project.records()
    profiled = after.keys() - measured.keys()
    assert {name.partition(".")[2] for name in profiled} == {"cprofile"}
    assert len(profiled) == 2
    assert {name: after[name] for name in measured} == measured
    assert pd.read_parquet(tables / "points.parquet").equals(points)
    assert len(pd.read_parquet(tables / "runs.parquet")) == 4
    assert "iterencode" in " ".join(pd.read_parquet(tables / "functions.parquet")["function"])
    report = (project.path / "results" / "report.html").read_text()
    assert '.cprofile">files<' in report and "4 of 4 runs done" in report

    # Nothing is left to do, and the profiles stay in the report of a call that does not ask for
    # them: here for runs without exchange, one of each run.
    again = project.snakemake("--configfile", "c.yaml", "--config", "profile=cprofile")
    assert "Nothing to be done" in again.stdout + again.stderr
    done = project.snakemake("--configfile", "c.yaml", "--config", "profile=noexchange")
    assert done.returncode == 0, done.stderr
    alone = project.records()
    added = alone.keys() - after.keys()
    assert added == {f"{name}.noexchange" for name in measured}
    assert {name: alone[name] for name in after} == after
    assert pd.read_parquet(tables / "points.parquet").equals(points)
    exchange = pd.read_parquet(tables / "noexchange.parquet")
    assert exchange["pairs"].tolist() == [2, 2]
    # Ten steps of an epoch, of 1 and 1.01 s; alone they take 80 % of that.
    assert exchange["communication_ms"].tolist() == pytest.approx([20.1, 20.1])
    report = (project.path / "results" / "report.html").read_text()
    assert '.cprofile">files<' in report and "from runs without exchange" in report


def test_a_run_that_leaves_no_profile_has_failed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    unprofiled = CAMPAIGN.replace("trains", "unprofiled")
    project.write("c.yaml", unprofiled.replace("repeats: 2", "profile: cprofile"))
    done = project.snakemake("--until", "run", "--configfile", "c.yaml")
    assert done.returncode != 0 and len(project.records()) == 2
    assert "BAD_RESULT: profile cprofile: the run wrote no profile" in done.stderr


TOOLS = """
campaign: tools
site: toy
experiments:
  kernels: {benchmark: toy, axes: {ranks: [2]}, repeats: 1, profile: nsys}
  functions: {benchmark: toy, axes: {ranks: [2]}, fixed: {size: 2}, repeats: 1, profile: tau}
"""


def test_runs_under_nsight_systems_and_tau(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "project")
    project.write("c.yaml", TOOLS)
    # Not installed: refused before anything runs.
    refused = project.snakemake("--configfile", "c.yaml")
    assert refused.returncode != 0 and not project.records()
    assert "profile nsys: 'nsys' is not on this machine" in refused.stderr

    folder = profilers.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    done = project.snakemake("tables", "--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    kinds = sorted(name.partition(".")[2] for name in project.records())
    assert kinds == ["", "", "nsys", "tau"]
    tables = project.path / "results" / "tables"
    assert len(pd.read_parquet(tables / "kernels" / "runs.parquet")) == 1
    kernels = pd.read_parquet(tables / "kernels" / "functions.parquet")
    assert set(kernels["kind"]) == {"kernel", "copy"}
    assert set(kernels["part"]) == {"matrix", "collectives", "copies"}
    functions = pd.read_parquet(tables / "functions" / "functions.parquet")
    assert set(functions["part"]) == {"mpi", "other"} and set(functions["profiled_ranks"]) == {2}
