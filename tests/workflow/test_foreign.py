"""Foreign programs through Snakemake itself: started once, read as often as the patterns change.

One campaign of all: what stands for tf_cnn_benchmarks, keras-multi-gpu and learners with actors.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, Project, make_project
from tests.fakes.foreign import FOREIGN, SITE

pytestmark = pytest.mark.slow

STUDIES = ROOT / "config" / "campaigns" / "studies"
PROGRAMS = {
    "speaker": "./speaker.py",
    "tf_cnn_benchmarks": "./fake_tf_cnn.py",
    "keras_multi_gpu": "./fake_keras_multi_gpu.py",
    "actors": "./actors/actors.py",
}
KERAS = {"model": ["resnet50"], "parameter_device": ["cpu"]}


def campaign() -> dict[str, Any]:
    tf_cnn, keras = (
        yaml.safe_load((STUDIES / f"{name}.yaml").read_text())["experiments"]
        for name in ("tf_cnn_benchmarks", "keras_multi_gpu")
    )
    methods = keras["methods"]
    assert methods["axes"]["method"] == ["kuza55", "avolkov1", "fchollet"]
    methods |= {"axes": methods["axes"] | KERAS, "linked": methods["linked"][:2]}
    for each in tf_cnn.values():
        each["axes"]["model"] = ["resnet20"]
    experiments = {
        "rates": {"benchmark": "foreign", "axes": {"ranks": [1, 2], "size": [4, 8]}},
        **{name: each | {"repeats": 1} for name, each in (tf_cnn | keras).items()},
        "roles": {"benchmark": "actors", "axes": {"ranks": [2, 4, 6]}},
    }
    return {
        "campaign": "strangers", "site": "toy", "programs": PROGRAMS, "experiments": experiments,
    }  # fmt: skip


ALL = campaign()
RATES = yaml.safe_dump(ALL | {"experiments": {"rates": ALL["experiments"]["rates"]}})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose campaign has run; tests leave it as it is."""
    project = make_project(tmp_path_factory.mktemp("foreign") / "project")
    benchmarks = project.path / "workflow" / "benchmarks"
    (benchmarks / "foreign").mkdir()
    shutil.copy(FOREIGN / "benchmark.yaml", benchmarks / "foreign")
    shutil.copytree(FOREIGN / "actors", benchmarks / "actors")
    shutil.copytree(FOREIGN, project.path, dirs_exist_ok=True)
    project.write("config/sites/toy.yaml", yaml.safe_dump(SITE))
    project.campaign(yaml.safe_dump(ALL), "tables")
    assert starts(project) == 6
    return project


@pytest.fixture
def finished(ran: Project, tmp_path: Path) -> Project:
    """A copy, with its times."""
    return Project(shutil.copytree(ran.path, tmp_path / "project", symlinks=True))


def starts(project: Project) -> int:
    """How many processes of the speaker were ever started."""
    return len((project.path / "started").read_text().split())


def records(project: Project, benchmark: str = "foreign") -> list[dict[str, Any]]:
    """The records of a benchmark, by ranks and work."""
    own = (record for record in project.results().values() if record["benchmark"] == benchmark)
    return sorted(
        own, key=lambda record: (record["point"]["ranks"], record["work"].get("samples_per_epoch"))
    )


def edit(project: Project, old: str, new: str) -> None:
    path = project.path / "workflow" / "benchmarks" / "foreign" / "benchmark.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_changed_patterns_read_again_and_run_nothing(finished: Project) -> None:
    before, old = finished.records(), records(finished)
    edit(finished, r"'total: (\S+)'", r"'step 0: (\S+)'")
    said = finished.campaign(RATES, "-n")
    assert "4 runs of 4 are stale" in said and "rule run:" not in said
    assert "to read their logs again, `scalesweep reread c.yaml`" in said
    done = finished.scalesweep("reread", "c.yaml")
    assert "logs of 4 runs read again, 0 failed; nothing was run" in done.stdout + done.stderr
    finished.campaign(RATES, "tables")
    new = records(finished)
    assert [each["metrics"]["total_rate"]["value"] for each in new] == [4, 8, 4, 8]
    for key in ("run_id", "started", "ended", "wall_s", "attempt", "git"):
        assert [each[key] for each in new] == [each[key] for each in old]
    assert finished.records().keys() == before.keys() and starts(finished) == 6
    assert sorted(finished.table("rates", "runs")["total_rate_mean_run"]) == [4, 4, 8, 8]


def test_stale_runs_are_neither_counted_nor_run_again(finished: Project) -> None:
    """A default and the program have changed, and nobody has raised the version."""
    before = finished.records()
    edit(finished, "default: [1, 2]", "default: [1, 3]")
    program = finished.path / "speaker.py"
    program.write_text(program.read_text() + "# more\n")
    why = f"sizes was [1, 2], is [1, 3]; {program} was edited since"

    said = finished.campaign(RATES)
    assert "4 runs of 4 are stale: their records are of something else" in said
    assert f"{why} (4 runs)" in said and "'accept_stale: [rates]' to c.yaml" in said
    rows = [(row["status"], row["cause"], row["reason"]) for row in finished.plan()]
    assert rows == [("stale", "changed", why)] * 4
    counts = finished.table("rates", "points")[["repeats", "stale"]]
    assert [*counts.itertuples(index=False, name=None)] == [(0, 1)] * 4
    assert all(text in finished.report() for text in ("4 stale", "Stale runs", "is [1, 3]"))
    assert finished.records() == before and starts(finished) == 6


def test_tf_cnn_benchmarks(ran: Project) -> None:
    found = records(ran, "tf_cnn_benchmarks")
    assert len(found) == 6
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


def test_keras_multi_gpu(ran: Project) -> None:
    """Each run sees as many GPUs as it trains on; the rate is the last of what is printed."""
    rows = ran.table("methods", "scaling")
    two = rows[rows["devices"] == 2].set_index("method")
    speedups = two["median_images_per_second_speedup_run"].round(2).to_dict()
    assert speedups == {"kuza55": 1.62, "avolkov1": 1.87, "fchollet": 1.62}
    assert set(two["env.CUDA_VISIBLE_DEVICES"]) == {"0,1"} and len(rows) == 6


def test_learners_with_actors(ran: Project) -> None:
    """Efficiency by role: the learner saturates at 4 ranks, more actors only wait for it."""
    rows = ran.table("roles", "scaling")
    learner = rows["utilisation_learner_mean_run"].tolist()
    assert learner == pytest.approx([0.3736, 0.9740, 0.9740], abs=5e-5)
    actor = rows["utilisation_actor_mean_run"].tolist()
    assert actor[0] == 1.0 and actor[-1] < 0.6
    efficiency = rows["batches_per_second_eff_run"].tolist()
    assert efficiency[-1] == pytest.approx(64.935 / 6 / (24.907 / 2), rel=1e-3)
