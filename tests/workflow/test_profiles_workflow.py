"""Profiled runs through Snakemake: beside the measured ones, and in no table of times."""

import os
from pathlib import Path

import pytest

from tests.conftest import Project
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
TOOLS = """
  kernels: {benchmark: toy, axes: {ranks: [2]}, repeats: 1, profile: nsys}
  functions: {benchmark: toy, axes: {ranks: [2]}, fixed: {size: 2}, repeats: 1, profile: tau}
"""


def test_profiles_are_runs_of_their_own(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.campaign(CAMPAIGN, "tables", "--config", "profile=cprofile")
    first, points = project.records(), project.table("e", "points")
    kinds = sorted(name.partition(".")[2] for name in first)
    assert kinds == [""] * 4 + ["cprofile"] * 2
    assert len(project.table("e", "runs")) == 4
    assert "iterencode" in " ".join(project.table("e", "functions")["function"])

    # Runs without exchange, one of each run.
    project.campaign(CAMPAIGN, "tables", "--config", "profile=noexchange")
    alone = project.records()
    measured = {name for name in first if "." not in name}
    assert alone.keys() - first.keys() == {f"{name}.noexchange" for name in measured}
    assert {name: alone[name] for name in first} == first
    assert project.table("e", "points").equals(points)
    exchange = project.table("e", "noexchange")
    assert exchange["pairs"].tolist() == [2, 2]
    # Ten steps of an epoch, of 1 and 1.01 s; alone they take 80 % of that.
    assert exchange["communication_ms"].tolist() == pytest.approx([20.1, 20.1])

    # Under Nsight Systems and TAU: refused before anything runs where they are not installed.
    said = project.campaign(CAMPAIGN + TOOLS, code=1)
    assert "profile nsys: 'nsys' is not on this machine" in said and project.records() == alone
    folder = profilers.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    project.campaign(CAMPAIGN + TOOLS)
    added = project.records().keys() - alone.keys()
    assert sorted(name.partition(".")[2] for name in added) == ["", "", "nsys", "tau"]
    # The profiles stay in the report of a call that does not ask for them.
    page = project.report()
    assert '.cprofile">files<' in page and "from runs without exchange" in page
    assert "4 of 4 runs done" in page
    kernels = project.table("kernels", "functions")
    assert set(kernels["kind"]) == {"kernel", "copy"} and len(project.table("kernels", "runs")) == 1
    assert set(kernels["part"]) == {"matrix", "collectives", "copies"}
    functions = project.table("functions", "functions")
    assert set(functions["part"]) == {"mpi", "other"} and set(functions["profiled_ranks"]) == {2}
