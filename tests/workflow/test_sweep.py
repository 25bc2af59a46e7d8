"""`scalesweep sweep`: a command over a grid, as its user calls it."""

import csv
from pathlib import Path

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

APP = """\
echo "took $(awk "BEGIN { print $2 / $1 }") s"
[ "$1" != "$FAILS" ] || { echo "out of luck" >&2; exit 3; }
"""
TIME = r"time s lower: took ([\d.]+) s"


def sweep(project: Project, ranks: str, *more: str) -> tuple[int, str]:
    done = project.scalesweep(
        "sweep", "--ranks", ranks, "--param", "size=8,16", "--repeats", "2", "--metric", TIME,
        *more, "--", "bash", "app.sh", "{ranks}", "{size}",
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def times(folder: Path) -> dict[str, int]:
    records = folder.glob("results/runs/here/*/record.json")
    return {path.parent.name: path.stat().st_mtime_ns for path in records}


def test_a_line_again_runs_what_failed_or_is_new(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("app.sh", APP)
    folder = project.path / "sweep"
    monkeypatch.setenv("FAILS", "2")
    code, text = sweep(project, "1,2")
    assert code == 1 and len(times(folder)) == 4, text
    monkeypatch.setenv("FAILS", "")
    first = times(folder)
    code, text = sweep(project, "1,2,4")
    assert code == 0 and len(times(folder)) == 12, text
    assert first.items() <= times(folder).items()
    with (folder / "results/tables/sweep/points.csv").open() as file:
        rows = {(row["ranks"], row["size"]): row["time_mean_run"] for row in csv.DictReader(file)}
    assert {key: float(value) for key, value in rows.items()} == {
        (str(ranks), str(size)): size / ranks for ranks in (1, 2, 4) for size in (8, 16)
    }
    assert ["4", "16", "2", "4.00"] in [line.split()[:4] for line in text.splitlines()]
    assert str(folder / "results" / "report.html") in text
    # Another command's runs would count as this one's; what was edited is its owner's.
    done = project.scalesweep("sweep", "--", "bash", "app.sh", "1", "8")
    assert done.returncode == 1 and "name another folder" in done.stderr
    campaign = folder / "config" / "config.yaml"
    campaign.write_text(campaign.read_text().replace("repeats: 2", "repeats: 3"))
    code, text = sweep(project, "1,2,4")
    assert code == 1 and "was edited; run `scalesweep run` in" in text
    assert len(times(folder)) == 12


def test_the_wall_time_is_measured_where_no_metric_is_named(project: Project) -> None:
    done = project.scalesweep(
        "sweep", "--param", "nap=0.2,0.1", "--out", "naps", "--", "sleep", "{nap}"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with (project.path / "naps/results/tables/sweep/points.csv").open() as file:
        rows = {row["nap"]: float(row["wall_time_mean_run"]) for row in csv.DictReader(file)}
    assert all(seconds >= float(nap) for nap, seconds in rows.items()) and len(rows) == 2
