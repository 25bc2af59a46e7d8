"""Runs of a campaign that bench makes up."""

from pathlib import Path

from bench.lib import projects
from scalesweep.config.campaign import load_campaign


def test_ids_do_not_depend_on_how_many_repeats_are_asked_for(toy: Path, tmp_path: Path) -> None:
    name = projects.campaign(tmp_path, "c.yaml", points=100, repeats=3, site="toy")
    (experiment,) = load_campaign(tmp_path / name).experiments
    assert len({run.run_id for run in experiment.runs}) == 300
    for run in experiment.runs[::37]:
        assert run.run_id == experiment.benchmark.run_id(run.point, run.repeat)
