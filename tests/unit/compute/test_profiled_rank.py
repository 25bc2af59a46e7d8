"""What starts a rank's program under Nsight Systems or TAU, and when it is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.commands.doctor import examine_programs
from scalesweep.config.campaign import Campaign
from scalesweep.core.paths import LAUNCHERS
from scalesweep.core.profilers import lacks, left_files
from scalesweep.jobs.missing_programs import missing_programs
from scalesweep.jobs.run_spec import PROFILED_RANK, run_spec
from tests.fakes import profilers

Load = Callable[[str], Campaign]
SCRIPT = LAUNCHERS / PROFILED_RANK
PROGRAM = "import os, sys; print(sys.argv[1:], os.environ.get('PROFILEDIR')); sys.exit({code})"


def start(
    kind: str, folder: Path, path: str, code: int = 0, rank: str = "3"
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": path, "OMPI_COMM_WORLD_RANK": rank}
    program = [sys.executable, "-c", PROGRAM.format(code=code), "a b", "--c"]
    words = [sys.executable, str(SCRIPT), kind, str(folder), *program]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["nsys", "tau"])
def test_a_rank_runs_as_it_is_under_its_profiler(tmp_path: Path, kind: str) -> None:
    path = f"{profilers.install(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}"
    folder = tmp_path / "attempt" / "profile"
    folder.mkdir(parents=True)
    done = start(kind, folder, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['a b', '--c']")
    files = left_files(kind, folder.parent)["files"]
    if kind == "nsys":
        assert files == ["profile/rank3.nsys-rep", "profile/rank3.sqlite"]
        assert not lacks(kind, files, {}) and "exported no rank" in lacks(kind, files[:1], {})
    else:
        assert str(folder) in done.stdout and files == ["profile/profile.3.0.0"]
        assert "pprof printed nothing" in lacks(kind, files, {})
        assert not lacks(kind, [*files, "profile/pprof.txt"], {})
    # A program that fails fails the run, whatever its profiler makes of it.
    assert start(kind, folder, path, code=7, rank="4").returncode == 7


def test_measured_runs_are_started_without_a_profiler(campaign_of: Load) -> None:
    campaign = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2\nprofile: nsys\n")
    experiment = campaign.experiments[0]
    bare = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2\n").experiments[0]
    assert experiment.runs == bare.runs
    measured = run_spec(campaign, experiment, experiment.runs[0])["argv"]
    profiled = run_spec(campaign, experiment, experiment.profiles[0])["argv"]
    wrapped = [campaign.site.python, str(SCRIPT), "nsys", "{out}/profile"]
    place = profiled.index(wrapped[1]) - 1
    assert profiled[place : place + 4] == wrapped
    assert [*profiled[:place], *profiled[place + 4 :]] == measured


def test_a_profiler_that_is_not_here_is_refused_before_anything_runs(
    tmp_path: Path, campaign_of: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_of("axes: {ranks: [1]}\nprofile: tau\n")
    experiment = campaign.experiments[0]
    point = experiment.profiles[0].point

    def missing(profile: str, here: bool = True) -> dict[str, str]:
        return missing_programs(campaign, experiment.benchmark, point, here, profile)

    monkeypatch.setenv("PATH", str(profilers.install(tmp_path / "some", ["tau_exec"])))
    assert "profile tau: 'pprof' is not on this machine" in missing("tau")["pprof"]
    assert "tau_exec" not in missing("tau") and "nsys" in missing("nsys")
    check = examine_programs(campaign, cluster=False)
    assert check.state == "failed" and "profile tau: 'pprof' is not on" in check.detail
    # Nothing is known here of a cluster's nodes; measured runs need none of it.
    assert not {"nsys", "pprof"} & {*missing("nsys", here=False), *missing("none")}
