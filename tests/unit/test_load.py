"""Frames for notebooks: what ``scalesweep.load`` hands out follows from the runs' samples."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import scalesweep
from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects.find import find
from scalesweep.core.errors import UserError
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.table import findings_table
from tests.conftest import ROOT
from tests.fakes.pages import bare, render
from tests.fakes.results import demo, make_results, studies_of
from tests.fakes.training import make_training, nt3


def with_findings(root: Path, studies: Mapping[str, ExperimentResults]) -> Path:
    tables = {name: {"findings": findings_table(it, find(it))} for name, it in studies.items()}
    write_tables(tables, root / "tables")
    return root


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    return with_findings(root, make_training(root, nt3()))


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
    with_findings(root, studies_of(root))
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
