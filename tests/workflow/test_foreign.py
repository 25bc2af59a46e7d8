"""Foreign programs through Snakemake itself: started once, read as often as the patterns change."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.conftest import ROOT, Project, make_project

pytestmark = pytest.mark.slow

FOREIGN = ROOT / "tests" / "foreign"
CAMPAIGN = """
campaign: strangers
site: toy
programs: {speaker: ./speaker.py}
experiments:
  rates:
    benchmark: foreign
    axes: {ranks: [1, 2], size: [4, 8]}
"""
SITE = """
site: toy
nodes: 4
cores_per_node: 2
oversubscribe: true
launch: {{single: [], multi: ["{{python}}", "{launcher}", "{{ranks}}"]}}
"""


def foreign_project(path: Path) -> Project:
    project = make_project(path)
    folder = path / "workflow" / "benchmarks" / "foreign"
    folder.mkdir()
    shutil.copy(FOREIGN / "benchmark.yaml", folder)
    for name in ("speaker.py", "fake_tf_cnn.py", "fake_keras_multi_gpu.py"):
        shutil.copy(FOREIGN / name, path)
    project.write("config/sites/toy.yaml", SITE.format(launcher=FOREIGN / "launcher.py"))
    project.write("c.yaml", CAMPAIGN)
    return project


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = foreign_project(tmp_path_factory.mktemp("foreign") / "project")
    done = project.snakemake("tables", "--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(project.records()) == 4 and starts(project) == 6
    return project


@pytest.fixture
def finished(finished_once: Project, tmp_path: Path) -> Project:
    """A copy, with its times, of a project whose campaign has run."""
    return Project(shutil.copytree(finished_once.path, tmp_path / "project", symlinks=True))


def starts(project: Project) -> int:
    """How many processes of the program were ever started."""
    path = project.path / "started"
    return len(path.read_text().split()) if path.exists() else 0


def records(project: Project) -> list[dict[str, Any]]:
    paths = project.path.glob("results/runs/toy/*/record.json")
    found = [json.loads(path.read_text()) for path in paths]
    return sorted(
        found, key=lambda record: (record["point"]["ranks"], record["work"]["samples_per_epoch"])
    )


def totals(project: Project) -> list[float]:
    return [record["metrics"]["total_rate"]["value"] for record in records(project)]


def edit(project: Project, old: str, new: str) -> None:
    path = project.path / "workflow" / "benchmarks" / "foreign" / "benchmark.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_changed_patterns_read_again_and_run_nothing(finished: Project) -> None:
    before = finished.records()
    old = records(finished)
    edit(finished, r"'total: (\S+)'", r"'step 0: (\S+)'")
    stale = finished.snakemake("tables", "--configfile", "c.yaml")
    assert stale.returncode == 0 and "4 runs of 4 are stale" in stale.stderr
    assert "to read their logs again, `scalesweep reread c.yaml`" in stale.stderr
    assert finished.records() == before and starts(finished) == 6
    done = finished.scalesweep("reread", "c.yaml")
    assert "logs of 4 runs read again, 0 failed; nothing was run" in done.stdout + done.stderr
    done = finished.snakemake("tables", "--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert totals(finished) == [4, 8, 4, 8] and starts(finished) == 6
    for record, past in zip(records(finished), old, strict=True):
        for key in ("run_id", "started", "ended", "wall_s", "attempt", "git"):
            assert record[key] == past[key]
    with (finished.path / "results" / "tables" / "rates" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(float(row["total_rate_mean_run"]) for row in rows) == [4, 4, 8, 8]


def reasons(project: Project) -> set[tuple[str, str, str]]:
    with (project.path / "results" / "plan.csv").open() as file:
        return {(row["status"], row["cause"], row["reason"]) for row in csv.DictReader(file)}


def counts(project: Project) -> list[tuple[str, str]]:
    with (project.path / "results" / "tables" / "rates" / "points.csv").open() as file:
        return [(row["repeats"], row["stale"]) for row in csv.DictReader(file)]


def test_stale_runs_are_neither_counted_nor_run_again(finished: Project) -> None:
    """A default and the program have changed, and nobody has raised the version."""
    before = finished.records()
    edit(finished, "default: [1, 2]", "default: [1, 3]")
    program = finished.path / "speaker.py"
    program.write_text(program.read_text() + "# more\n")
    dry = finished.snakemake("-n", "--configfile", "c.yaml")
    assert dry.returncode == 0 and finished.records() == before
    why = f"sizes was [1, 2], is [1, 3]; {program} was edited since"
    assert (
        "4 runs of 4 are stale: their records are of something else than is planned" in dry.stderr
    )
    assert f"{why} (4 runs)" in dry.stderr
    assert "'accept_stale: [rates]' to c.yaml" in dry.stderr
    assert "rule run:" not in dry.stdout
    for call in range(2):
        done = finished.snakemake("--configfile", "c.yaml")
        assert done.returncode == 0 and "Traceback" not in done.stderr
        assert ("Nothing to be done" in done.stdout + done.stderr) == bool(call)
        assert "4 runs of 4 are stale" in done.stderr
    assert finished.records() == before and starts(finished) == 6
    assert reasons(finished) == {("stale", "changed", why)}
    assert counts(finished) == [("0", "1")] * 4
    report = (finished.path / "results" / "report.html").read_text()
    assert "4 stale" in report and "Stale runs" in report and "is [1, 3]" in report
    plan = finished.snakemake("plan", "--configfile", "c.yaml")
    assert plan.returncode == 0 and "4 runs, 0 done, 0 failed, 0 new, 4 stale" in plan.stdout
    finished.write("c.yaml", f"accept_stale: [rates]\n{CAMPAIGN}")
    done = finished.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert finished.records() == before and starts(finished) == 6
    assert reasons(finished) == {("done", "", f"accepted although {why}")}
    assert counts(finished) == [("1", "0")] * 4
    assert "Accepted runs" in (finished.path / "results" / "report.html").read_text()


def test_the_campaign_of_tf_cnn_benchmarks(tmp_path: Path) -> None:
    project = foreign_project(tmp_path / "project")
    path = "config/campaigns/studies/tf_cnn_benchmarks.yaml"
    words = ("--configfile", path, "--config", "site=toy", "results=results")
    done = project.snakemake(*words)
    assert (
        "error: config/campaigns/studies/tf_cnn_benchmarks.yaml: experiments.devices: "
        in done.stderr
    )
    assert "programs: {tf_cnn_benchmarks: /path}" in done.stderr
    text = (project.path / path).read_text().replace("repeats: 2", "repeats: 1")
    project.write(path, f"programs: {{tf_cnn_benchmarks: ./fake_tf_cnn.py}}\n{text}")
    done = project.snakemake("--until", "run", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = records(project)
    assert len(found) == 12
    two = next(record for record in found if record["point"]["ranks"] == 2)
    assert {name: m["value"] for name, m in two["metrics"].items()} == pytest.approx(
        {
            "total_images_per_second": 260, "images_per_second": 130.5,
            "images_per_second_uncertainty": 0.7, "images_per_second_jitter": 1.05,
            "final_loss": 7.6,
        }
    )  # fmt: skip
    # Both ranks print a total of their own, two images in 260 apart: no warning.
    assert not [n for n in two["notes"]["extract"]["metrics"].values() if "warning" in n]


def test_the_campaign_of_keras_multi_gpu_and_learners_with_actors(tmp_path: Path) -> None:
    """Each run sees as many GPUs as it trains on; the rate is the last of what is printed.
    Efficiency by role: the learner saturates at 4 ranks, more actors only wait for it."""
    project = foreign_project(tmp_path / "project")
    content = yaml.safe_load(
        (project.path / "config/campaigns/studies/keras_multi_gpu.yaml").read_text()
    )
    experiment = content["experiments"]["methods"]
    assert experiment["axes"]["method"] == ["kuza55", "avolkov1", "fchollet"]
    experiment["axes"] |= {"model": ["resnet50"], "parameter_device": ["cpu"]}
    experiment |= {"repeats": 1, "linked": experiment["linked"][:2]}
    content["experiments"]["roles"] = {"benchmark": "actors", "axes": {"ranks": [2, 4, 6]}}
    actors = project.path / "workflow" / "benchmarks" / "actors"
    shutil.copytree(FOREIGN / "actors", actors)
    programs = {"keras_multi_gpu": "./fake_keras_multi_gpu.py", "actors": f"{actors}/actors.py"}
    content |= {"programs": programs, "site": "toy", "results": "results"}
    project.write("c.yaml", yaml.safe_dump(content))
    done = project.snakemake("tables", "--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pd.read_parquet(project.path / "results/tables/methods/scaling.parquet")
    two = rows[rows["devices"] == 2].set_index("method")
    speedups = two["median_images_per_second_speedup_run"].round(2).to_dict()
    assert speedups == {"kuza55": 1.62, "avolkov1": 1.87, "fchollet": 1.62}
    assert set(two["env.CUDA_VISIBLE_DEVICES"]) == {"0,1"} and len(rows) == 6
    rows = pd.read_parquet(project.path / "results/tables/roles/scaling.parquet")
    learner = rows["utilisation_learner_mean_run"].tolist()
    assert learner == pytest.approx([0.3736, 0.9740, 0.9740], abs=5e-5)
    actor = rows["utilisation_actor_mean_run"].tolist()
    assert actor[0] == 1.0 and actor[-1] < 0.6
    efficiency = rows["batches_per_second_eff_run"].tolist()
    assert efficiency[-1] == pytest.approx(64.935 / 6 / (24.907 / 2), rel=1e-3)
