"""The soak, shortened: every kind of target once, in phases that a seed draws; and copies of what
it leaves."""

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.soak.campaign import Soaked, make_soaked
from tests.soak.kills import CHAIN, PROGRAM, SPARE, soak

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SOAK_SEED", "1"))


def short(seed: int) -> list[tuple[str, str]]:
    """Kills of all targets; last those that end a call of Snakemake."""
    draw = random.Random(seed)
    phases = draw.sample(PROGRAM, k=len(PROGRAM))
    kills = [
        *zip(("launcher", "mpirun", "rank 0", "rank 1"), phases[1:], strict=True),
        (draw.choice(SPARE), draw.choice(PROGRAM)),
        ("launcher", draw.choice(("start", "record"))),
    ]
    draw.shuffle(kills)
    kills += [("snakemake", phases[0]), ("snakemake", "parse")]
    return [*kills, (draw.choice(("script", "snakemake")), draw.choice([*CHAIN]))]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Soaked:
    project = make_soaked(tmp_path_factory.mktemp("soak") / "project", sizes=4, repeats=2)
    print(f"SOAK_SEED={SEED}")
    # As many runs as one call of Snakemake is to see: seven are hit, one is let through.
    made = soak(project, SEED, short(SEED), through=1)
    assert len(made.kills) == 9
    return project


def test_a_campaign_survives_kills(soaked: Soaked) -> None:
    soaked.check_tables()
    assert len(soaked.seen) == 8


@pytest.mark.parametrize("times", [True, False])
def test_copies_of_the_results_still_read(soaked: Soaked, tmp_path: Path, times: bool) -> None:
    copy = tmp_path / "some where" / "results of others"
    copy.parent.mkdir()
    shutil.copytree(
        soaked.path / "results", copy, copy_function=shutil.copy2 if times else shutil.copy
    )
    before = {path: path.stat().st_mtime_ns for path in copy.glob("runs/*/*/record.json")}
    # From another working folder, whose Snakemake knows nothing of these files.
    other = Project(tmp_path / "clone")
    shutil.copytree(
        soaked.path, other.path, ignore=shutil.ignore_patterns("results", ".snakemake", "home")
    )
    words = ["--configfile", "c.yaml", "--config", f"results={copy}"]
    first = other.snakemake(*words)
    assert first.returncode == 0, first.stderr
    # Other times are other files, as far as one can tell: the report is made again, nothing else.
    assert ("Nothing to be done" in first.stderr) == times
    assert "Running" not in first.stderr
    if not times:
        assert "Nothing to be done" in other.snakemake(*words).stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not list(copy.glob("runs/*/*/attempt-*/beside.txt"))
    report = (copy / "report.html").read_text()
    assert str(soaked.path) not in report and "runs/soak/steps-r2-" in report
