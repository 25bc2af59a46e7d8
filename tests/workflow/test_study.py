"""A study of one's own: made, run, extended."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes.snakemake_calls import call

pytestmark = pytest.mark.slow

INCLUDED = (ROOT / "resources" / "study" / "Snakefile").read_text()
OWN = """

rule words:
    input:
        "results/report.html",
    output:
        "words.txt",
    shell:
        "wc -w {input} > {output}"
"""


def snakemake(
    cwd: Path, *words: str, module: str = "snakemake"
) -> "subprocess.CompletedProcess[str]":
    home = cwd / "home"
    home.mkdir(exist_ok=True)
    path = "" if module == "snakemake" else str(ROOT)
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": path}
    return call(module, words, cwd, env, seconds=300)


def git(folder: Path, *words: str) -> str:
    command = ("git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *words)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new study, committed, whose campaign has run as its README says."""
    folder = tmp_path_factory.mktemp("of") / "my study"
    words = (sys.executable, "-m", "scalesweep", "study", str(folder))
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.endswith(f"run it: cd '{folder}' && snakemake\n")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "A new study")):
        git(folder, *command)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_new_study_runs_to_its_report_at_once(study: Path) -> None:
    records = [json.loads(path.read_text()) for path in study.glob("results/runs/*/*/record.json")]
    assert len(records) == 6
    for record in records:
        assert record["study"] == {"commit": git(study, "rev-parse", "HEAD"), "dirty": False}
        assert record["git"] is None or record["git"]["commit"] != record["study"]["commit"]
        assert record["command"][-2] == str(study / "benchmarks" / "monte_carlo" / "monte_carlo.py")
        assert record["metrics"]["points_per_second"]["value"] > 0
    assert "git commit of the study" in (study / "results" / "report.html").read_text()
    assert git(study, "status", "--porcelain") == ""  # results are not committed


def test_rules_of_its_own_work_beside_ours(study: Path, tmp_path: Path) -> None:
    deployed = shutil.copytree(study, tmp_path / "deployed", symlinks=True)
    # What snakedeploy copies too: sites have the names of those that are shipped, and are the same.
    shutil.copytree(ROOT / "config" / "sites", deployed / "config" / "sites", dirs_exist_ok=True)
    (deployed / "Snakefile").write_text(INCLUDED + OWN)
    lost = next(deployed.glob("results/runs/my_machine/monte_carlo-r1-*"))
    shutil.rmtree(lost)
    done = snakemake(deployed, "words", "all")
    assert done.returncode == 0, done.stderr
    assert (lost / "record.json").is_file()
    assert "runs: 1 of 1 done" in done.stderr  # from a handler
    assert int((deployed / "words.txt").read_text().split()[0]) > 100


def test_a_second_file_of_a_name_is_one_line(study: Path) -> None:
    site = study / "config" / "sites" / "local.yaml"
    site.write_text("site: local\nnodes: 1\n")
    try:
        done = snakemake(study, "plan", "--config", "site=local")
    finally:
        site.unlink()
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert (
        f"error: config/sites/local.yaml: {ROOT}/config/sites/local.yaml has this name too; rename"
        in done.stderr
    )
    shipped = ("--config", "campaign=nt3_small", "site=local")
    plan = snakemake(study, "plan", *shipped, "results=other")
    assert "campaign nt3_small on site local" in plan.stdout
    # The command prints the same call, and becomes it.
    words = ("plan", "nt3_small", "--site", "local", "--results", "007")
    again = snakemake(study, *words, module="scalesweep")
    line = "+ snakemake plan --config campaign=nt3_small site=local"
    assert again.stderr.startswith(f"{line} 'results= \"007\" '\n")
    assert again.stdout == plan.stdout.replace("other/", "007/")


def test_the_doctor_ends_with_an_exit_code_and_no_traceback(study: Path) -> None:
    site = study / "config" / "sites" / "bare.yaml"
    site.write_text(
        "site: bare\nnodes: 1\npython: no-such-python\nlaunch: {single: [], multi: [no-such-run]}\n"
    )
    words = ("--site", "bare", "--results", "of_doctor")
    done = snakemake(study, "doctor", *words, module="scalesweep")
    site.unlink()
    assert done.returncode == 1
    assert "error: the doctor found 2 check(s) failed on site bare" in done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("failed")]
    whats = {line.removeprefix("failed").partition(":")[0].strip(): line for line in failed}
    assert set(whats) == {"programs", "launcher"}
    assert "python, prologue or env in config/sites/bare.yaml" in whats["launcher"]
    for noise in ("Traceback", "Error in rule", "WorkflowError"):
        assert noise not in done.stdout + done.stderr
