"""scalesweep installed from its wheel without TensorFlow, by a user with an empty home."""

import csv
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes.tracked import commit

pytestmark = pytest.mark.slow

UV = ROOT / ".tools" / "bin" / "uv"
SHIPPED = ("Snakefile", "workflow", "profiles", "resources", "config")
NO_NETWORK = ("error sending request", "dns error", "Failed to fetch", "Could not connect")

Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `uv build` makes it of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    python = ROOT / ".venv" / "bin" / "python"  # which has the build backend
    words = [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", python]
    subprocess.run([*words, "--out-dir", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def call(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Calls a program of an environment that has the wheel and what it asks for, and no more."""
    venv, home = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("home")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, venv], check=True)
    words = [UV, "pip", "install", "--system-certs", "--quiet", "--python", venv, wheel]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if any(text in done.stderr for text in NO_NETWORK):
        pytest.skip(f"no network to install from: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    # As in a user's repository, whose commit is not that of scalesweep.
    (venv / ".gitignore").write_text("*")
    commit(venv, "first")

    def call(cwd: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        env = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
        return subprocess.run(
            [venv / "bin" / words[0], *words[1:]], cwd=cwd, env=env, timeout=600,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return call


def test_the_wheel_has_every_file_of_the_checkout(wheel: Path) -> None:
    words = ("git", "ls-files", "-co", "--exclude-standard", "scalesweep", "plugins", *SHIPPED)
    files = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {f"scalesweep/shipped/{n}" if n.startswith(SHIPPED) else n for n in files.splitlines()}
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert inside == {name.removeprefix("plugins/") for name in names}


def test_a_study_of_an_external_program(call: Call, tmp_path: Path) -> None:
    made, study = call(tmp_path, "scalesweep", "study", "mine"), tmp_path / "mine"
    assert (made.returncode, made.stderr) == (0, "")
    done = call(study, "snakemake")
    assert done.returncode == 0, done.stderr
    records = [json.loads(p.read_text()) for p in study.glob("results/runs/*/*/record.json")]
    assert [record["git"] for record in records] == [None] * 6
    assert (study / "results" / "report.html").stat().st_size > 100_000
    with (study / "results" / "tables" / "weak_scaling" / "scaling.csv").open() as file:
        assert [row["ranks"] for row in csv.DictReader(file)] == ["1", "2"]
    # Its executor is found, and its profile.
    plan = call(study, "snakemake", "plan", "--profile", "slurm", "--config", "site=piz_daint")
    assert plan.returncode == 0 and "sbatch --nodes=1 --ntasks=2" in plan.stdout, plan.stderr
    doctor = call(study, "scalesweep", "doctor")
    assert doctor.returncode == 0 and "2 ranks on" in doctor.stdout, doctor.stdout
