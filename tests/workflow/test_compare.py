"""`scalesweep compare` and `predict`: what is there, half of it pending, and another folder."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: now
site: toy
experiments:
  e:
    benchmark: toy
    axes: {ranks: [1, 2], size: [1, 3]}
    repeats: 2
"""


def test_compare_reads_what_is_there_and_runs_nothing(project: Project, tmp_path: Path) -> None:
    project.write("c.yaml", CAMPAIGN)
    campaign = ("--configfile", "c.yaml")
    # As far as another folder is needed: no tables, figures or report.
    done = project.snakemake("results/summary.parquet", *campaign)
    assert done.returncode == 0, done.stderr
    results = project.path / "results"
    moved = tmp_path / "made elsewhere"
    shutil.copytree(results, moved)
    shutil.rmtree(moved / "runs")
    pending = sorted((results / "runs" / "toy").glob("toy-r2-*"))
    for folder in pending:
        shutil.rmtree(folder)
    before = project.records()
    assert len(before) == len(pending) == 4

    done = project.scalesweep("compare", str(moved), "--campaign", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "comparison: results/compare.html" in done.stdout
    assert project.records() == before
    page = (results / "compare.html").read_text()
    assert "now against now" in page and "4 runs of both sides are the same" in page
    points = pd.read_csv(results / "compare" / "points.csv")
    verdicts = points.groupby("ranks")["verdict"].agg(set).to_dict()
    assert verdicts == {1: {"inconclusive"}, 2: {"only base"}}
    unmatched = pd.read_csv(results / "compare" / "unmatched.csv")
    assert unmatched["why"].tolist() == ["planned there: pending"] * 2

    # Predicting reads what is there and runs nothing too.
    text = (project.path / "c.yaml").read_text().replace("    axes", "    scaling: weak\n    axes")
    project.write("c.yaml", text)
    said = project.scalesweep("predict", "c.yaml", "--ranks", "8,16")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "1 count measured, and a prediction needs 3" in said.stdout
    assert project.records() == before
