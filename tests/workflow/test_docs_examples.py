"""The examples of the docs, as they are written there: from nothing to tables.

All of them are experiments of one campaign, so that Snakemake is called once. What the docs leave
to the reader (OSU's benchmark, which is not installed) is a script that prints the same.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from scalesweep.config.campaign import load_campaign
from tests.conftest import ROOT, Project, make_project

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "guide"
NATIVE = GUIDE / "benchmarks.md"
STEPS, EXAMPLES = GUIDE / "external_programs.md", ROOT / "docs/reference/external_examples.md"
OSU = """#!/bin/sh
[ "${HOROVOD_RANK:-0}" = 0 ] || exit 0
echo "# OSU MPI Allreduce Latency Test v7.3"
for size in 4 1024 1048576; do echo "$size      $size.5"; done
"""


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of a language on a page, without their indentation."""
    found = re.findall(rf"^( *)```{kind}\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def examples(page: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Text of each benchmark.yaml, and content of each campaign, by name."""
    texts = {yaml.safe_load(text).get("name"): text for text in blocks(page, "yaml")}
    contents = [yaml.safe_load(text) for text in blocks(page, "yaml")]
    return (
        {name: text for name, text in texts.items() if name},
        {content["campaign"]: content for content in contents if "campaign" in content},
    )


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which the examples have been followed, and all of it has run."""
    project = make_project(tmp_path_factory.mktemp("docs") / "project")
    campaign: dict[str, Any] = {"campaign": "docs", "site": "local", "programs": {}}
    campaign["experiments"] = {}
    for page in (STEPS, EXAMPLES, NATIVE):
        benchmarks, campaigns = examples(page)
        for name, text in benchmarks.items():
            folder = project.path / "workflow" / "benchmarks" / name
            folder.mkdir(exist_ok=True)
            (folder / "benchmark.yaml").write_text(text)
        for content in campaigns.values():
            assert content["site"] == "local"
            campaign["programs"] |= content.get("programs", {})
            for name, experiment in content["experiments"].items():
                campaign["experiments"][f"{experiment['benchmark']}_{name}"] = experiment
    (own,) = blocks(STEPS, "python")
    (project.path / "home" / "my_training").mkdir(parents=True)
    (project.path / "home" / "my_training" / "train.py").write_text(own)
    native, _metric = blocks(NATIVE, "python")
    (project.path / "workflow" / "benchmarks" / "my_benchmark" / "main.py").write_text(native)
    # OSU's allreduce has no campaign of its own: two ranks, as its defaults say.
    osu = project.write("osu_allreduce", OSU)
    osu.chmod(0o755)
    campaign["programs"]["osu_allreduce"] = str(osu)
    campaign["experiments"]["osu"] = {"benchmark": "osu_allreduce", "fixed": {"ranks_per_node": 2}}
    project.campaign(yaml.safe_dump(campaign, sort_keys=False), "tables")
    return project


def runs(project: Project, experiment: str) -> pd.DataFrame:
    frame = project.table(experiment, "runs")
    assert set(frame["status"]) == {"done"}
    # Each rank prints the total of its own clock.
    assert frame["warnings"].dropna().str.contains("2 ranks disagree").all()
    return frame


def test_the_step_by_step_example(reported: Project) -> None:
    frame = runs(reported, "my_training_batches")
    assert len(frame) == 4
    for name in ("images_per_second", "total_images_per_second", "loss"):
        assert (frame[f"{name}_mean_run"] > 0).all()
    assert frame["loss_mean_run"].round(3).unique().tolist() == [0.667]


def test_the_first_campaign_of_the_guide(tmp_path: Path) -> None:
    """Its runs of TensorFlow take minutes: it is read, and others like it run."""
    (tmp_path / "c.yaml").write_text(blocks(GUIDE / "campaigns.md", "yaml")[0])
    assert len(load_campaign(tmp_path / "c.yaml").unique_runs()) == 15


def test_osus_table(reported: Project) -> None:
    frame = runs(reported, "osu")
    assert frame["latency_1048576_mean_run"].tolist() == [1048576.5]


def test_a_native_program(reported: Project) -> None:
    frame = runs(reported, "my_benchmark_batches")
    assert len(frame) == 2 and (frame["images_per_second_mean_run"] > 0).all()
    assert (frame["total_throughput_mean_later"] > 0).all()
