"""Damaged results through Snakemake: named, set aside, left out, measured again, and nothing else.

One story, each call of Snakemake going on where the one before it has ended.
"""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.core.record import write_record
from tests.conftest import Project

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: toys
site: toy
experiments:
  sizes:
    benchmark: toy
    axes: {size: [1, 2]}
    repeats: 2
"""


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def numbers(project: Project) -> pd.DataFrame:
    return pd.read_parquet(project.path / "results" / "tables" / "sizes" / "points.parquet")


def reasons(project: Project) -> dict[str, str]:
    with (project.path / "results" / "plan.csv").open() as file:
        return {row["run_id"]: row["reason"] for row in csv.DictReader(file) if row["reason"]}


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {run_id for run_id in before | after if before.get(run_id) != after.get(run_id)}


def test_damaged_results(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN)
    results = project.path / "results"
    runs = results / "runs" / "toy"
    done = project.snakemake("--configfile", "c.yaml", "--until", "run")
    assert done.returncode == 0, done.stderr
    before = project.records()
    sizes = {
        i: json.loads((runs / i / "record.json").read_bytes())["point"]["size"] for i in before
    }
    first, third, second, _ = sorted(sizes, key=lambda run_id: (sizes[run_id], run_id))

    # A report of what is there goes on without what is damaged.
    text = (runs / second / "record.json").read_text()
    (runs / second / "record.json").write_text(text.replace('"repeat": ', '"repeat": 1'))
    (runs / ".index.json").unlink()  # as in a copy without times: nothing is known of the samples
    flip(runs / first / "samples.npz")
    done = project.snakemake("report", "--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    told = "warning: 1 record cannot be trusted and {} set aside: {} ({}"
    why = "the record was changed after it was written"
    assert told.format("will be", second, why) in done.stderr
    why = "samples.npz was changed: checksum differs"
    assert told.format("was", first, why) in done.stderr
    assert set(reasons(project)) == {first, second}
    assert numbers(project)["repeats"].sum() == 2
    report = (results / "report.html").read_text()
    assert "checksum differs" in report and "was changed after it was written" in report

    # They are measured again; what had been made of them is made anew.
    (results / "summary.parquet").write_bytes(b"PAR1")
    (results / "jobs.csv").write_text('"')
    (runs / ".index.json").write_text("{")
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    now = project.records()
    assert changed(before, now) == {first, second}
    assert numbers(project)["repeats"].tolist() == [2, 2]
    # The toy's times are 1.00 and 1.01 s, whenever it runs.
    assert numbers(project)["local_time_mean_later"].tolist() == pytest.approx([1.005, 1.005])

    # What was made of the runs is lost: it is to be made anew, and no run.
    shutil.rmtree(results / "tables" / "sizes")
    done = project.snakemake("--configfile", "c.yaml", "-n")
    jobs = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert {"experiment", "page"} <= jobs and "run" not in jobs

    # Found when samples are read, damaged or whole and of another shape: the call fails, its report
    # has the rest.
    flip(runs / third / "samples.npz")
    record = json.loads((runs / first / "record.json").read_bytes())
    np.savez(runs / "odd.npz", local_times=np.ones(3))
    write_record(runs / first, record, runs / "odd.npz")
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode != 0
    why = "local_times is float64 of shape (3,), not times[epoch, rank]"
    assert "error: 2 records cannot be trusted and were set aside: " in done.stderr
    assert f"{third} (samples.npz was changed" in done.stderr and f"{first} ({why})" in done.stderr
    assert "run snakemake again" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert reasons(project)[first] == why and "checksum differs" in reasons(project)[third]
    assert numbers(project)["repeats"].sum() == 2
    assert "BAD_RECORD" in (results / "report.html").read_text()
    assert {"record.json.broken", "samples.npz.broken"} <= {
        path.name for path in (runs / third).iterdir()
    }
    plan = project.snakemake("plan", "--configfile", "c.yaml")
    assert "2 done, 2 failed" in plan.stdout and "remaining time" in plan.stdout
