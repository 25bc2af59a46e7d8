"""The control point from records to findings, figure and report."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import Campaign
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.parameters import control_figures
from scalesweep.findings.base import Finding
from scalesweep.planning.plan import build_plan
from scalesweep.planning.run_order import positions
from scalesweep.report.page import page_content, render_page
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary
from tests.fakes.records import write_run

HEAD = (
    "campaign: test\nsite: toy\n"
    "control: {{experiment: e, point: {{ranks: 1, size: 3}}, every: {every}}}\n"
)
GRID = "axes: {ranks: [1, 2], size: [1, 3, 5]}\nrepeats: 3"
BEGAN = datetime(2026, 3, 2, 8, tzinfo=UTC)
Measure = Callable[..., tuple[ExperimentResults, ExperimentResults, str]]


@pytest.fixture
def measure(campaign_of: Callable[..., Campaign], tmp_path: Path) -> Measure:
    """The experiment, its control point and the page after all runs of a campaign in its order:
    ``speed`` of the run at each place, ten minutes after the one before, on each host in turn."""

    def measured(speed: Any, every: int = 2, body: str = GRID, hosts: str = "a") -> Any:
        campaign = campaign_of(body, HEAD.format(every=every))
        generator, folder = np.random.default_rng(7), campaign.runs_folder
        runs, records = campaign.unique_runs(), []
        for run_id, place in positions(campaign).items():
            run, at = runs[run_id][1], (BEGAN + timedelta(minutes=10 * place)).isoformat()
            value = speed(place) * float(np.exp(0.01 * generator.standard_normal()))
            rate = {"value": value, "unit": "images/s", "better": "higher", "scope": "total"}
            ranks = [hosts[place % len(hosts)]] * run.point["ranks"]
            records.append(write_run(
                folder, run_id, {}, benchmark="toy", point=run.point, repeat=run.repeat, site="toy",
                started=at, ended=at, metrics={"rate": rate}, work={},
                resources={"hosts": ranks, "slurm_nodes": []},
            ))  # fmt: skip
        plan, summary = build_plan(campaign, scan(folder, runs)), build_summary(records)
        tables = tmp_path / "tables"
        write_tables(make_tables(summary, plan), tables)
        studies = [load_results(entry, tables) for entry in plan["experiments"]]
        paths = (tables, tmp_path / "figures", folder, tmp_path / "report.html")
        return *studies, render_page(page_content(plan, studies, summary, *paths))

    return measured


def drifts(study: ExperimentResults) -> list[Finding]:
    return [finding for finding in find(study) if finding.rule == "drift"]


@pytest.mark.parametrize(
    ("every", "body", "state", "said"),
    [
        (2, GRID, "note", "Change of rate (whole run) at the control point over 3.833 h: "),
        (10, "axes: {size: [1, 3]}\nrepeats: 2", "open", "Too few control runs to see drift: 2, "),
    ],
)  # fmt: skip
def test_no_drift(measure: Measure, every: int, body: str, state: str, said: str) -> None:
    source, control, _ = measure(lambda _: 100.0, every, body)
    assert drifts(source) == []
    (found,) = drifts(control)
    assert found.state == state and found.sentence.startswith(said)


@pytest.mark.slow
def test_drift_is_told_with_its_interval(measure: Measure) -> None:
    source, control, page = measure(lambda place: 100 * np.exp(-0.2 * place / 24))
    (found,), (also,) = drifts(control), drifts(source)
    assert found.state == also.state == "attention"
    assert found.sentence.startswith("The control point drifts: rate (whole run) changes by -")
    assert also.sentence.startswith("Runs of the same points drift: ")
    change: Any = found.numbers[-1]
    assert change.low < np.expm1(-0.2 * 23 / 24) < change.high < 0
    # Every interval of the interleaved points holds the speed in the middle of the campaign.
    for row in source.points:
        assert row["rate_low_run"] < 100 * np.exp(-0.1) < row["rate_high_run"]
    warning = page.index('<p class="warn" role="note">The control point drifts')
    assert warning < page.index('<ul class="findings">')
    sections = [part.partition("</h2>")[0] for part in page.split("<h2>")[1:]]
    assert sections[:2] == ["e", "Control"]


def test_a_jump_between_hosts(measure: Measure) -> None:
    _, control, _ = measure(lambda place: 100.0 if place <= 22 else 85.0, every=1, hosts="abc")
    (found,) = drifts(control)
    assert found.state == "attention" and found.flags == ("3 sets of hosts",)
    (drawing,) = control_figures(control)
    labels = drawing.figure.axes[0].get_legend_handles_labels()[1]
    assert sorted(labels) == ["a", "b", "c"]
