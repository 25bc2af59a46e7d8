"""A study of one's own: made, run, extended."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Project
from tests.fakes.tracked import commit, git

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


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A new study, committed, whose campaign has run as its README says."""
    folder = tmp_path_factory.mktemp("of") / "my study"
    words = (sys.executable, "-m", "scalesweep", "study", str(folder))
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.endswith(f"run it: cd '{folder}' && snakemake\n")
    commit(folder, "A new study")
    done = Project(folder).snakemake()
    assert done.returncode == 0, done.stderr
    return Project(folder)


def test_a_new_study_runs_to_its_report_at_once(study: Project) -> None:
    records = study.results().values()
    assert len(records) == 6
    head = git(study.path, "rev-parse", "HEAD")
    for record in records:
        assert record["study"] == {"commit": head, "dirty": False}
        assert record["git"] is None or record["git"]["commit"] != head
        program = study.path / "benchmarks" / "monte_carlo" / "monte_carlo.py"
        assert record["command"][-2] == str(program)
        assert record["metrics"]["points_per_second"]["value"] > 0
    assert "git commit of the study" in study.report()
    assert git(study.path, "status", "--porcelain") == ""  # results are not committed


def test_rules_of_its_own_work_beside_ours(study: Project, tmp_path: Path) -> None:
    deployed = Project(shutil.copytree(study.path, tmp_path / "deployed", symlinks=True))
    # What snakedeploy copies too: sites have the names of those that are shipped.
    shutil.copytree(ROOT / "config" / "sites", deployed.path / "config/sites", dirs_exist_ok=True)
    deployed.write("Snakefile", INCLUDED + OWN)
    lost = next(deployed.path.glob("results/runs/my_machine/monte_carlo-r1-*"))
    shutil.rmtree(lost)
    done = deployed.snakemake("words", "all")
    assert done.returncode == 0, done.stderr
    assert (lost / "record.json").is_file()
    assert "runs: 1 of 1 done" in done.stderr  # from a handler
    assert int((deployed.path / "words.txt").read_text().split()[0]) > 100


def test_shipped_files_are_there_by_name(study: Project) -> None:
    plan = study.scalesweep("plan", "nt3_small", "--site", "local", "--results", "007")
    # The command prints its call of Snakemake, and becomes it.
    line = "+ snakemake plan --config campaign=nt3_small site=local 'results= \"007\" '\n"
    assert plan.stderr.startswith(line)
    assert "campaign nt3_small on site local" in plan.stdout and "007/" in plan.stdout


def test_the_doctor_ends_with_an_exit_code_and_no_traceback(study: Project) -> None:
    site = study.write(
        "config/sites/bare.yaml",
        "site: bare\nnodes: 1\npython: no-such-python\n"
        "launch: {single: [], multi: [no-such-run]}\n",
    )
    done = study.scalesweep("doctor", "--site", "bare", "--results", "of_doctor")
    site.unlink()
    assert done.returncode == 1 and "2 failed on site bare" in done.stderr
    failed = dict(re.findall(r"^failed +([^:]+): (.*)$", done.stdout, re.M))
    assert [*failed] == ["programs", "launcher"]
    assert "python, prologue or env in config/sites/bare.yaml" in failed["launcher"]
    assert not re.search("Traceback|Error in rule|WorkflowError", done.stdout + done.stderr)
