"""docs/guide/train_py.md: a script of one's own, from nothing to the breakdown of its steps."""

import csv
import re

import pytest
import yaml

from tests.conftest import ROOT, Project
from tests.fakes.torch_python import TORCH, needs_torch

PAGE = (ROOT / "docs" / "guide" / "train_py.md").read_text()


@pytest.mark.slow
@needs_torch
def test_a_script_gets_to_its_breakdown_by_the_tutorial(project: Project) -> None:
    script, changed, fault = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    imports, spans, ddp, loop = [line for line in changed.splitlines() if line]
    script = script.replace("import argparse", f"import argparse\nimport time\n{imports}")
    script = script.replace("optimizer = ", f"{spans}\n{ddp}\noptimizer = ")
    script = re.sub(r"^for images.*$", f"{loop}\n{fault.rstrip()}", script, flags=re.MULTILINE)
    project.write("train.py", script)
    project.write("scalesweep_spans.py", (ROOT / "resources/spans/scalesweep_spans.py").read_text())
    said = project.scalesweep("study", "my_study", "--from", "train.py", "--python", str(TORCH))
    assert said.returncode == 0, said.stderr
    assert "parameter batch_size: default 64" in said.stdout
    study = Project(project.path / "my_study")
    benchmark = study.path / "benchmarks" / "my_train" / "benchmark.yaml"
    content = yaml.safe_load(benchmark.read_text())
    assert content["parameters"]["batch_size"]["doc"] == "samples of a rank in a step"
    (result,) = [line for line in PAGE.splitlines() if line.startswith("result: ")]
    benchmark.write_text(yaml.safe_dump({**content, **yaml.safe_load(result)}))
    campaign = study.path / "config" / "config.yaml"
    campaign.write_text(campaign.read_text().replace("repeats: 3", "repeats: 1"))
    done = study.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    with (study.path / "results/tables/scaling/efficiency.csv").open() as file:
        terms = {(row["ranks"], row["term"]) for row in csv.DictReader(file)}
    assert {("1", "input"), ("1", "compute"), ("2", "transfer")} <= terms
