"""What is read and patched of Snakemake, against the Snakemake that is installed.

A failure here after an update of Snakemake means: look at ``scalesweep.smk.snakemake_facts`` again.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from scalesweep.core.errors import UserError
from scalesweep.smk import snakemake_facts as facts
from tests.conftest import ROOT

SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from scalesweep.smk import snakemake_facts as facts
if workflow.is_main_process:
    print("parsed", [str(p) for p in facts.configfiles(workflow)], facts.overrides(workflow),
          sorted(facts.default_resources(workflow)), file=sys.stderr)
rule all:
    input: "a.txt", "7.b"
rule one:
    output: touch("a.txt")
rule of_each:
    output: touch("{{n}}.b")
onstart:
    print("started", facts.only_reports(workflow), facts.executor(workflow),
          facts.rules_to_run(workflow), file=sys.stderr)
"""


@pytest.mark.slow
def test_what_is_read_of_a_workflow_is_there(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "c.yaml").write_text("a: 1\n")
    words = ["all", "-c1", "--configfile", "c.yaml", "--default-resources", "mine=1"]
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *words, "--config", "kk=v"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (parsed,) = (line for line in done.stderr.splitlines() if line.startswith("parsed"))
    assert "c.yaml'] {'kk': 'v'}" in parsed and "'mine'" in parsed
    (started,) = (line for line in done.stderr.splitlines() if line.startswith("started"))
    assert started.startswith("started False local {") and started.endswith("}")
    assert all(f"'{rule}'" in started for rule in ("all", "one", "of_each"))


@pytest.mark.parametrize("twice", [("--config", "-C"), ("--configfile=a.yaml", "--configfiles")])
def test_an_option_of_which_the_last_one_counts_is_refused_twice(
    monkeypatch: pytest.MonkeyPatch, twice: tuple[str, str]
) -> None:
    """`--config site=X --config results=Y` would measure the campaign's site, without a word."""
    workflow = SimpleNamespace(config_settings=SimpleNamespace(config={"results": "y"}))
    monkeypatch.setattr(sys, "argv", ["snakemake", twice[0], "site=x", twice[1], "results=y"])
    with pytest.raises(UserError, match=f"^{twice[0].partition('=')[0]}: is named twice, and"):
        facts.overrides(workflow)
    monkeypatch.setattr(sys, "argv", ["snakemake", twice[1], "results=y"])
    assert facts.overrides(workflow) == {"results": "y"}
