"""Calls of Snakemake after the first, with runs of PyTorch: what is done stays, what failed is a
hole with its cause and is tried again."""

import csv
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.benchmarks.programs import PYTORCH
from tests.conftest import Project, make_project
from tests.fakes.torch_python import TORCH, needs_torch
from tests.workflow.warm_site import write_python

pytestmark = [pytest.mark.slow, needs_torch]
DIVERGES = 1e30
FIXED = {
    "model": "mlp", "layers": 2, "width": 16, "batch_size": 4, "intra_threads": 1,
    "warmup_batches": 1, "batches": 3,
}  # fmt: skip


def call(project: Project, *rates: float) -> subprocess.CompletedProcess[str]:
    """Run a campaign with these learning rates."""
    experiment = {
        "benchmark": "torch_training",
        "fixed": FIXED,
        "axes": {"learning_rate": [*rates]},
    }
    head = {"campaign": "again", "site": "local", "results": "results"}
    project.write("c.yaml", yaml.safe_dump(head | {"experiments": {"rates": experiment}}))
    return project.snakemake("--configfile", "c.yaml")


def states(project: Project) -> dict[float, str]:
    """How the runs of the plan ended, by their learning rate."""
    with (project.path / "results" / "plan.csv").open(newline="") as file:
        return {float(row["learning_rate"]): row["status"] for row in csv.DictReader(file)}


def test_only_what_failed_or_is_new_runs_again(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    site = project.path / "config" / "sites" / "local.yaml"
    text = site.read_text()
    assert text.count(" .torch/bin/python") == 1
    python = write_python(project.path / "warm_torch", TORCH, PYTORCH)
    site.write_text(text.replace(" .torch/bin/python", f" {python}"))

    first = call(project, 0.01, DIVERGES)
    assert first.returncode != 0, first.stderr
    done = project.records()
    assert len(done) == 1
    points = pd.read_parquet(project.path / "results" / "tables" / "rates" / "points.parquet")
    assert points["learning_rate"].tolist() == [0.01, DIVERGES]
    assert points["samples_per_second_mean_run"].notna().tolist() == [True, False]
    page = (project.path / "results" / "report.html").read_text()
    assert "training diverged: the loss is" in page

    second = call(project, 0.01, DIVERGES, 0.02)
    assert second.returncode != 0, second.stderr
    started = re.findall(r"learning_rate=(\S+), repeat", second.stderr)
    assert len(set(started)) == 2 and "0.01" not in started, second.stderr
    assert done.items() < project.records().items() and len(project.records()) == 2
    assert list(states(project).values()).count("done") == 2, states(project)

    third = call(project, 0.01, 0.02)
    assert third.returncode == 0 and "Running " not in third.stderr, third.stderr
    assert states(project) == {0.01: "done", 0.02: "done"}
