"""Imports of commits, through the command line (numbers: tests/acceptance/test_published.py)."""

import pandas as pd
import pytest

from tests.conftest import Project
from tests.fakes.tracked import commit

pytestmark = pytest.mark.slow


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
    repository.mkdir()
    for number, probe in enumerate((264_000, 528_000)):
        date = f"2026-01-0{number + 1}T12:00:00Z"  # else of the same second
        commit(repository, f"Change {number}", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        total = 1_569_000 + probe
        text = PPROF.format(own=total - probe, total=total, probe=probe, share=100 * probe / total)
        project.write("pprof.txt", text)
        words = ["--ranks", "8", "--commit", "HEAD", "--repository", "program"]
        words += ["--history", "kept"] if number else ["--no-report"]
        done = project.scalesweep("import", "pprof.txt", *words)
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
