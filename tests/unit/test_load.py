"""Frames for notebooks: what ``scalesweep.load`` hands out follows from the runs' samples."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import scalesweep
from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects.find import find
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.findings.table import findings_table
from tests.conftest import ROOT
from tests.fakes.pages import bare, render
from tests.fakes.results import demo, make_results
from tests.fakes.training import make_training, nt3


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    (study,) = make_training(root, nt3()).values()
    write_tables({study.name: {"findings": findings_table(study, find(study))}}, root / "tables")
    return root


# Where a table has the rates of later epochs, or what is made of them, by which column.
RATES = {
    "summary": ("summary.parquet", "run_id", "total_throughput_mean_later"),
    "points": ("tables/train/points.parquet", "ranks", "total_throughput_mean_later"),
    "scaling": ("tables/train/scaling.parquet", "ranks", "total_eff_later"),
    "comparisons": ("tables/train/comparisons.parquet", "ranks", "ratio"),
}


@pytest.mark.parametrize("table", RATES)
def test_a_number_of_each_table_follows_from_the_samples(results: Path, table: str) -> None:
    rows = []
    for file in results.glob("runs/*/*/samples.npz"):
        record = json.loads(file.with_name("record.json").read_text())
        rate = record["work"]["samples_per_epoch"] / np.load(file)["global_times"][1:]
        if rate.size:
            ranks = record["point"]["ranks"]
            rows.append({"run_id": file.parent.name, "ranks": ranks, "rate": rate.mean()})
    runs = pd.DataFrame(rows)
    rates = runs.groupby("ranks")["rate"].mean()
    speedups = rates / rates[1]
    expected = {"summary": runs.set_index("run_id")["rate"], "points": rates,
                "scaling": speedups / speedups.index, "comparisons": speedups.drop(1)}  # fmt: skip

    file, key, column = RATES[table]
    frame = pd.read_parquet(results / file)
    if table == "comparisons":
        frame = frame.query("quantity == 'speedup' and phase == 'later'")
        frame = frame[frame["metric"] == "total_throughput"]
    told = frame.set_index(key)[column].dropna().to_dict()
    assert told and told == pytest.approx(expected[table].to_dict())


def test_every_frame_names_its_experiment(results: Path) -> None:
    frames = scalesweep.load(results)
    for frame in (frames.points, frames.runs, frames.comparisons, frames.findings):
        assert set(frame["experiment"]) == {"train"} and frame.columns[0] == "experiment"
    assert frames.breakdown.empty or "term" in frames.breakdown
    assert isinstance(frames.findings["numbers"].iloc[0], list)


def test_samples_figures_and_predictions_are_at_hand(results: Path) -> None:
    study = scalesweep.load(results)
    assert study.points.attrs["units"]["total_throughput_mean_later"]["unit"] == "samples/s"
    run = study.runs.query("status == 'done'").iloc[0]
    assert study.samples(run["run_id"])["local_times"].shape[1] == run["ranks"]
    with pytest.raises(UserError, match=r"run 'x' has no samples\.npz"):
        study.samples("x")
    with pytest.raises(UserError, match=r"figure 'sun'; allowed: "):
        study.figure("sun")
    axes = study.figure("scaling").axes
    assert axes and axes[0].lines
    own = Figure().subplots(1, 2)
    assert study.figure("scaling", axes=own) is own[0].figure and own[0].lines
    predicted = study.predict([64])
    assert set(predicted["count" if "count" in predicted else "ranks"]) == {64}


def test_results_over_others_are_a_frame(results: Path) -> None:
    ratios = scalesweep.load(results).compare(results)
    assert set(ratios["ratio"].dropna().round(9)) == {1.0} and "verdict" in ratios


def test_without_tables_one_line_says_what_makes_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no tables; 'scalesweep report' makes them"):
        scalesweep.load(tmp_path)


def test_importing_scalesweep_imports_no_pandas() -> None:
    code = "import sys, scalesweep; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_page_on_python_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_results(tmp_path / "results", demo()[:1])
    (entry,) = read_plan(root / "plan.json")["experiments"]
    study = load_results(entry, root / "tables")
    write_tables({study.name: {"findings": findings_table(study, find(study))}}, root / "tables")
    for record in root.glob("runs/*/*/record.json"):
        np.savez(record.with_name("samples.npz"), local_times=np.ones((3, 1)))
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "guide" / "python.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    said = capsys.readouterr().out
    assert "io_weak_scaling" in said and (tmp_path / "scaling.pdf").stat().st_size > 10_000
    line = names["study"].summary.set_index("experiment").loc["io_weak_scaling"]  # type: ignore[attr-defined]
    shown = bare(render(root, figures=False))
    assert line["run_at"] and line["run_at"] in shown and line["efficiency"] in shown
