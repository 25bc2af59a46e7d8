"""Published results through the workflow: imported, labelled, in the same tables."""

import csv
import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import Project
from tests.fakes.published import LOCAL, TOTAL, write_result

pytestmark = pytest.mark.slow


def run_import(project: Project, source: Path) -> "subprocess.CompletedProcess[str]":
    return project.scalesweep("import", str(source))


def test_published_results_become_tables(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "published results"
    write_result(source / "gpu-n2-inter2-intra12", 2, LOCAL, TOTAL)
    one = [[150.2], [6.45], [6.5], [6.4], [6.6]]
    write_result(source / "gpu-n1-inter2-intra12", 1, one, one)
    done = run_import(project, source)
    assert done.returncode == 0, done.stdout + done.stderr
    results = project.path / "results" / "imported"
    with (results / "tables" / "data_loading" / "scaling.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["ranks"] == "2")
    expected = {
        "total_time_mean_init": 156.493430, "total_time_std_init": 0.021490,
        "local_throughput_mean_init": 2.086113, "local_throughput_std_init": 0.040744,
        "total_throughput_mean_init": 4.089629, "total_throughput_std_init": 0.000562,
        "total_time_mean_later": 6.636029, "total_time_std_later": 0.571867,
        "local_throughput_mean_later": 48.843115, "local_throughput_std_later": 3.702922,
        "total_throughput_mean_later": 97.100322, "total_throughput_std_later": 7.626039,
        "samples": 640,
    }  # fmt: skip
    for name, value in expected.items():
        assert round(float(row[name]), 6) == value, name
    assert row["source"] == "imported"
    assert "imported" in (results / "report.html").read_text()
    record = json.loads(next(results.glob("runs/imported/*-r2-*/record.json")).read_text())
    assert record["source"] == "imported" and record["wall_s"] is None

    before = {p: p.stat().st_mtime_ns for p in results.glob("runs/imported/*/record.json")}
    assert run_import(project, source).returncode == 0  # a second time changes nothing
    assert before == {p: p.stat().st_mtime_ns for p in results.glob("runs/imported/*/record.json")}


def test_what_cannot_be_trusted_is_refused_and_the_rest_imported(
    project: Project, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_result(source / "gpu-n2-inter2-intra12", 2, LOCAL, TOTAL)
    write_result(source / "gpu-n4-inter2-intra12", 4, np.ones((5, 4)).tolist(), TOTAL)
    cut = source / "another time" / "gpu-n2-inter2-intra12"
    write_result(cut, 2, LOCAL, TOTAL)
    history = cut / "data_benchmark_history.csv"
    history.write_text(history.read_text().replace("7.4706745\n 7.60186", "7.47 ... 7.6"))
    done = run_import(project, source)
    assert done.returncode == 0, done.stdout  # as of every importer: what could be trusted is in
    assert "imported: 1 runs, refused: 2" in done.stdout
    refused = [line for line in done.stderr.splitlines() if line.startswith("refused:")]
    assert any("..." in line and str(history) in line for line in refused)
    report = (project.path / "results" / "imported" / "report.html").read_text()
    assert "Refused on import" in report and str(history.relative_to(source)) in report
    assert "2 more runs <a" in report
    assert "date unknown" in report  # the files' age is no date of their runs


# The form of what pprof prints (exalearn/EXARL issue 84), its numbers rounded.
PPROF = """FUNCTION SUMMARY (mean):
---------------------------------------------------------------------------------------
%Time    Exclusive    Inclusive       #Call      #Subrs  Inclusive Name
              msec   total msec                          usec/call
---------------------------------------------------------------------------------------
100.0 {own:12d} {total:12d}           1           1 {total:9d}000 .TAU application
{share:5.1f} {probe:12d} {probe:12d}           1           0 {probe:9d}000 MPI_Probe()
"""


def test_a_profile_of_each_commit_is_a_session(project: Project) -> None:
    """% MPI and run time by commit: the plot of exalearn/EXARL issue 84."""
    repository = project.path / "program"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for number, probe in enumerate((264_000, 528_000)):
        subprocess.run(
            [*git, "commit", "-q", "--allow-empty", "-m", f"Change {number}"], check=True
        )
        total = 1_569_000 + probe
        text = PPROF.format(own=total - probe, total=total, probe=probe, share=100 * probe / total)
        project.write("pprof.txt", text)
        done = project.scalesweep("import", "pprof.txt", "--ranks", "8", "--history", "kept",
                                  "--commit", "HEAD", "--repository", "program")  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("history: kept/history.html\n")
    table = pd.read_csv(project.path / "kept" / "tables" / "values.csv")
    mpi = table[table["metric"] == "mpi"]
    assert mpi["share"].tolist() == pytest.approx([264 / 1833, 528 / 2097], rel=1e-3)
    assert mpi["commit"].nunique() == 2 and mpi["low"].isna().all()  # one profile each
    assert table.query("metric == 'runtime'")["mean"].tolist() == [1833.0, 2097.0]
    verdicts = pd.read_csv(project.path / "kept" / "tables" / "verdicts.csv")
    assert set(verdicts["verdict"]) == {"cannot judge yet"} and "mpi" not in set(verdicts["metric"])
    campaign = (project.path / "results" / "imported" / "campaign.yaml").read_text()
    assert campaign.count("benchmark: profile_tau") == 2  # not repeats of one another
    # The same file as one of another commit.
    done = project.scalesweep("import", "pprof.txt", "--ranks", "8", "--history", "kept",
                              "--commit", "HEAD~1", "--repository", "program")  # fmt: skip
    assert done.returncode == 1 and "as a run of commit" in done.stderr
