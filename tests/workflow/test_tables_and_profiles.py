"""Published tables and profiles of other tools through the workflow, to their report."""

import csv
import json
import math
import shutil
from pathlib import Path

import pytest
import yaml

from scalesweep.config.yaml_loader import check_schema
from tests.conftest import Project
from tests.fakes import profiles as fake
from tests.recompute.imports import check_table
from tests.workflow.test_foreign import FOREIGN, SITE

pytestmark = pytest.mark.slow

TABLE = """gpus;std;count;images;synthetic
1;1,5;10;100,0;110,0
2;3,0;10;190,0;215,0
4;6,0;10;350,0;420,0
"""
RATE = {"unit": "images/s", "better": "higher", "scope": "total"}
MAP = {
    "name": "published",
    "parameters": {"ranks": {"column": "gpus"}, "batch_size": {"value": 64, "unit": "images"}},
    "scale": "gpus",
    "scaling": "weak",
    "metrics": {"images_per_second": RATE},
    "side_by_side": {
        "parameter": "input",
        "values": {
            "real": {"images_per_second": {"column": "images", "std": "std", "count": "count"}},
            "synthetic": {"images_per_second": "synthetic"},
        },
    },
}
PARTS = {"mpi": ["^MPI_"], "solver": ["solve"]}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_published_table(project: Project) -> None:
    project.write("my table.csv", TABLE)
    draft = project.scalesweep("import", "my table.csv")
    assert draft.returncode == 0, draft.stdout + draft.stderr
    written = project.path / "results" / "imported" / "my table.map.yaml"
    assert yaml.safe_load(written.read_text())["parameters"]["ranks"] == {"column": "gpus"}
    assert written.read_text() in draft.stdout
    again = "scalesweep import 'my table.csv' --map 'results/imported/my table.map.yaml'"
    assert draft.stdout.splitlines()[-1].endswith(again)

    project.write("map.yaml", yaml.safe_dump(MAP))
    done = project.scalesweep("import", "my table.csv", "--map", "map.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "imported: 6 runs, refused: 0" in done.stdout
    results = project.path / "results" / "imported"
    rows = {
        (row["input"], row["gpus"]): row
        for row in rows_of(results / "tables" / "published_scaling" / "scaling.csv")
    }
    real, bare = rows["real", "4"], rows["synthetic", "4"]
    assert float(real["images_per_second_eff_run"]) == 0.875
    assert real["stated"] == "images_per_second: n = 10" and not bare["stated"]
    # Student's t of 9 degrees of freedom, from the stated deviation and count.
    low = 350 * math.exp(-2.262157 * 6 / 10**0.5 / 350)
    assert float(real["images_per_second_low_run"]) == pytest.approx(low, rel=1e-6)
    assert 0.85 < float(real["images_per_second_eff_low_run"]) < 0.875
    assert not bare["images_per_second_low_run"] and {real["source"]} == {"imported"}
    assert len(check_table(results, TABLE)) == 4
    report = (results / "report.html").read_text()
    assert "<b>stated</b>: the interval is Student" in report and "1/1 stated" in report
    for path in sorted(results.glob("runs/imported/*/record.json")):
        check_schema(json.loads(path.read_text()), "record", path)


def test_profiles_of_other_tools(project: Project) -> None:
    folder = project.path / "workflow" / "benchmarks" / "solver"
    folder.mkdir()
    ranks = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks", "doc": "Ranks."}
    content = {
        "name": "solver", "version": 1, "summary": "A solver.", "parts": PARTS,
        "parameters": {"ranks": ranks, "ranks_per_node": ranks},
        "command": ["{program:solver}"], "result": "native",
    }  # fmt: skip
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(content))
    source = project.path / "profiles of mine"
    source.mkdir()
    (source / "two.txt").write_text(fake.tau((8.0, 7.0)))
    (source / "four.txt").write_text(fake.tau((6.0, 5.0, 5.5, 5.5)))
    (source / "cut.txt").write_text(fake.tau()[:900])
    (source / "timeline.json").write_text(fake.timeline())
    done = project.scalesweep("import", str(source), "--benchmark", "solver")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "imported: 5 runs, refused: 1" in done.stdout, done.stdout + done.stderr
    assert "cut.txt:" in done.stderr
    results = project.path / "results" / "imported"
    rows = {
        (row["ranks"], row["part"]): float(row["share"])
        for row in rows_of(results / "tables" / "solver_scaling" / "parts.csv")
    }
    assert rows["2", "mpi"] == pytest.approx(0.25) and rows["4", "mpi"] == pytest.approx(0.45)
    assert rows["4", "solver"] == pytest.approx(0.45) and rows["4", "other"] == pytest.approx(0.1)
    functions = rows_of(results / "tables" / "solver_scaling" / "functions.csv")
    waits = {row["ranks"]: row for row in functions if row["part"] == "mpi"}
    assert float(waits["4"]["share"]) == pytest.approx(0.45)
    assert "Functions of the profiles" in (results / "report.html").read_text()
    points = rows_of(results / "tables" / "solver_scaling" / "points.csv")
    found = [float(row["parallel_efficiency_mean_run"]) for row in points]
    assert found == pytest.approx([0.75, 0.55])
    (timelines,) = results.glob("tables/solver*/timeline.csv")
    shares = {row["phase"]: row["share"] for row in rows_of(timelines)}
    assert float(shares["reduction"]) == pytest.approx(0.051) and shares["queue"] == ""
    assert "Horovod's timeline" in (results / "report.html").read_text()
    figures = json.loads((results / "figures" / "index.json").read_text())
    assert ("solver_scaling", "parts-share") in {(f["experiment"], f["name"]) for f in figures}
    (messages,) = results.glob("tables/messages_*")
    sizes = {row["message_bytes"]: row for row in rows_of(messages / "points.csv")}
    assert float(sizes["4096.0"]["bus_bandwidth_mean_run"]) == pytest.approx(4096 / 310e-6 * 1.5)
    assert sizes["4096.0"]["stated"] == "call_time: n = 3"
    for path in sorted(results.glob("runs/imported/*/record.json")):
        check_schema(json.loads(path.read_text()), "record", path)


def test_learners_and_actors(project: Project) -> None:
    shutil.copytree(FOREIGN / "actors", project.path / "workflow" / "benchmarks" / "actors")
    project.write("config/sites/toy.yaml", SITE.format(launcher=FOREIGN / "launcher.py", words=""))
    program = project.path / "workflow" / "benchmarks" / "actors" / "actors.py"
    campaign = {
        "campaign": "roles", "site": "toy", "programs": {"actors": str(program)},
        "experiments": {"roles": {"benchmark": "actors", "axes": {"ranks": [2, 3, 4, 6]}}},
    }  # fmt: skip
    project.write("c.yaml", yaml.safe_dump(campaign))
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(project.path / "results" / "tables" / "roles" / "scaling.csv")
    learner = [float(row["utilisation_learner_mean_run"]) for row in rows]
    actor = [float(row["utilisation_actor_mean_run"]) for row in rows]
    # The learner saturates at 4 ranks: more actors only wait for it.
    assert learner == pytest.approx([0.3736, 0.7389, 0.9740, 0.9740])
    assert actor[0] == 1.0 and actor[3] < 0.6
    efficiency = [float(row["batches_per_second_eff_run"]) for row in rows]
    assert efficiency[1] > 0.6 and efficiency[3] == pytest.approx(
        64.935 / 6 / (24.907 / 2), rel=1e-3
    )
