"""`scalesweep sweep`: a command over a grid, as its user calls it."""

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

APP = """\
echo "took $(awk "BEGIN { print $2 / $1 }") s"
[ "$1" != "$FAILS" ] || { echo "out of luck" >&2; exit 3; }
"""
TIME = r"time s lower: took ([\d.]+) s"


def sweep(project: Project, ranks: str, time: str = TIME) -> tuple[int, str]:
    done = project.scalesweep(
        "sweep", "--ranks", ranks, "--param", "size=8,16", "--repeats", "1", "--metric", time,
        "--", "bash", "app.sh", "{ranks}", "{size}",
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_line_again_runs_what_is_left(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("app.sh", APP)
    made = Project(project.path / "sweep")
    monkeypatch.setenv("FAILS", "2")
    code, text = sweep(project, "1,2", TIME.replace("took", "takes"))
    assert code == 1 and not made.records(), text
    monkeypatch.setenv("FAILS", "")
    code, text = sweep(project, "1,2,4")
    assert code == 0 and len(made.records()) == 6, text
    assert "logs of 2 runs read again" in text  # what they printed is there
    points = made.table("sweep", "points")
    assert sorted(points["ranks"].astype(int)) == [1, 1, 2, 2, 4, 4]
    assert (points["time_mean_run"] == points["size"].astype(int) / points["ranks"]).all()
    assert ["4", "16", "1", "4.00"] in [line.split()[:4] for line in text.splitlines()]
    assert str(made.path / "results" / "report.html") in text
    # Another command's runs would count as this one's; what was edited is its owner's.
    done = project.scalesweep("sweep", "--", "bash", "app.sh", "1", "8")
    assert done.returncode == 1 and "name another folder" in done.stderr
    campaign = made.path / "config" / "config.yaml"
    campaign.write_text(campaign.read_text().replace("repeats: 1", "repeats: 3"))
    code, text = sweep(project, "1,2,4")
    assert code == 1 and "was edited; run `scalesweep run` in" in text
    assert len(made.records()) == 6
