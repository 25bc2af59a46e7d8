"""The control point from records to plan, tables, findings, figure and report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects.draw import draw
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import Campaign
from scalesweep.core.record import RECORD, write_record
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.report.page import render_report
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary

Load = Callable[..., Campaign]
HEAD = (
    "campaign: test\nsite: toy\n"
    "control: {{experiment: e, point: {{ranks: 1, size: 3}}, every: {every}}}\n"
)
GRID = "axes: {ranks: [1, 2], size: [1, 3, 5]}\nrepeats: 3"
BEGAN = datetime(2026, 3, 2, 8, tzinfo=UTC)


@dataclass
class Made:
    """A campaign whose runs have made-up results, with the plan and studies of them."""

    campaign: Campaign
    root: Path
    plan: dict[str, Any]
    summary: Any

    @property
    def studies(self) -> list[ExperimentResults]:
        return [load_results(entry, self.root / "tables") for entry in self.plan["experiments"]]


@pytest.fixture
def made(campaign_of: Load, tmp_path: Path) -> Callable[..., Made]:
    """Run a campaign in its order: ``speed`` of the run at each place, which takes ten minutes."""

    def make(
        speed: Callable[[int], float],
        every: int = 2,
        body: str = GRID,
        hosts: Sequence[str] = ("n1",),
        pause: int = 10**6,
    ) -> Made:
        campaign = campaign_of(body, HEAD.format(every=every))
        generator = np.random.default_rng(7)
        for run_id, place in campaign.positions().items():
            run = campaign.unique_runs()[run_id][1]
            started = BEGAN + timedelta(minutes=10 * place + (1200 if place > pause else 0))
            rate = speed(place) * float(np.exp(0.01 * generator.standard_normal()))
            where = [hosts[place % len(hosts)]] * run.point["ranks"]
            record = {
                "run_id": run_id, "benchmark": "toy", "version": 1, "point": run.point,
                "repeat": run.repeat, "site": "toy", "source": "measured",
                "started": started.isoformat(), "ended": started.isoformat(), "wall_s": 1.0,
                "attempt": 1, "phases": {}, "metrics": {"rate": {
                    "value": rate, "unit": "images/s", "better": "higher", "scope": "total"}},
                "work": {}, "resources": {"hosts": where, "slurm_nodes": []}, "environment": {},
                "notes": {}, "git": None, "command": [],
            }  # fmt: skip
            write_record(campaign.runs_folder / run_id, record)
        states = scan(campaign.runs_folder, campaign.unique_runs())
        plan = build_plan(campaign, states)
        records = [campaign.runs_folder / run_id / RECORD for run_id in states]
        summary = build_summary(records)
        write_tables(make_tables(summary, plan), tmp_path / "tables")
        return Made(campaign, tmp_path, plan, summary)

    return make


def drifts(study: ExperimentResults) -> list[Finding]:
    return [finding for finding in find(study) if finding.rule == "drift"]


@pytest.mark.parametrize(
    ("speed", "every", "body", "state", "said"),
    [
        (lambda _: 100.0, 2, GRID, "note",
         "Change of rate (whole run) at the control point over 3.833 h: "),
        (lambda place: 100.0 - place, 10, "axes: {size: [1, 3]}\nrepeats: 2", "open",
         "Too few control runs to see drift: 2, of 5 needed."),
    ],
)  # fmt: skip
def test_without_drift_there_is_no_warning(
    made: Callable[..., Made], speed: Any, every: int, body: str, state: str, said: str
) -> None:
    done = made(speed, every, body)
    source, control = done.studies
    assert drifts(source) == []
    (found,) = drifts(control)
    assert found.state == state and found.sentence.startswith(said)
    assert "the control point" in plan_text(done.plan)


def test_drift_is_told_with_its_interval(made: Callable[..., Made]) -> None:
    done = made(lambda place: 100 * np.exp(-0.2 * place / 24))
    source, control = done.studies
    (found,) = drifts(control)
    assert found.state == "attention"
    assert found.sentence.startswith("The control point drifts: rate (whole run) changes by -")
    assert "smaller than this" in found.next
    change = found.numbers[-1]
    assert change.low is not None and change.high is not None
    assert change.low < np.expm1(-0.2 * 23 / 24) < change.high < 0
    (also,) = drifts(source)
    assert also.state == "attention"
    assert also.sentence.startswith("Runs of the same points drift: ")
    # Every interval of the interleaved points holds the speed in the middle of the campaign.
    for row in source.points:
        assert row["rate_low_run"] < 100 * np.exp(-0.1) < row["rate_high_run"]


def test_a_jump_between_sessions_and_hosts(made: Callable[..., Made]) -> None:
    done = made(
        lambda place: 100.0 if place <= 22 else 85.0, every=1, hosts=("n1", "n2", "n3"), pause=22
    )
    (found,) = drifts(done.studies[1])
    assert found.state == "attention"
    assert found.sentence.startswith("The control point drifts: ")
    assert found.flags == ("3 sets of hosts",)
    (drawing,) = [d for d in draw(done.studies[1]) if d.name == "control"]
    (ax,) = drawing.figure.axes
    legend = ax.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert sorted(labels) == ["2026-03-03 07:50 UTC", "n1", "n2", "n3"]
    marks = sum(
        len(np.atleast_1d(line.get_xdata())) for line in ax.lines if line.get_linestyle() == "None"
    )
    assert marks == len(done.plan["experiments"][1]["runs"])


@pytest.mark.slow
def test_the_report_warns_and_ends_with_the_control(made: Callable[..., Made]) -> None:
    done = made(lambda place: 100.0 - 2 * place)
    tables, figures, out = (done.root / name for name in ("tables", "figures", "report.html"))
    runs = done.campaign.runs_folder
    page = render_report(done.plan, done.studies, done.summary, tables, figures, runs, out)
    warning = page.index('<p class="warn" role="note">The control point drifts')
    assert warning < page.index('<ul class="findings">')
    sections = [part.partition("</h2>")[0] for part in page.split("<h2>")[1:]]
    assert sections[:2] == ["e", "Control"]
    assert "in random order (seed 0)" in page
