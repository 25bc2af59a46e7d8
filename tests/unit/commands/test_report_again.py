"""While a campaign runs its report is made again, if it asks for that."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.commands.interface import read
from scalesweep.commands.snakemake_call import report_again
from scalesweep.config.campaign import Campaign
from scalesweep.core.record import write_record
from scalesweep.smk.campaign_args import open_plan
from tests.fakes.records import make_record


def test_each_experiment_without_a_run_left_makes_a_report(
    campaign_of: Callable[..., Campaign], toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy)
    calls: list[Any] = []
    monkeypatch.setattr(subprocess, "run", lambda words, **_: calls.append(words))
    head = "campaign: c\nsite: toy\nresults: results\n"
    body = "axes: {size: [1, 2]}\n"
    campaign_of(body, head)
    _, args = read(["run", "campaign.yaml", "--profile", "sge"])
    assert report_again(args, open_plan(args)) is None
    campaign = campaign_of(body, head + "report_while_running: true\n")
    look = report_again(args, open_plan(args))
    assert look is not None
    for run_id, (_, run) in campaign.unique_runs().items():
        look()
        assert calls == []
        write_record(campaign.runs_folder / run_id, make_record(
            run_id, benchmark="toy", point=run.point, repeat=run.repeat, site="toy"
        ))  # fmt: skip
    look()
    look()
    ((_, _, *words),) = calls
    assert words[0] == "snakemake" and "report" in words and "campaign.yaml" in words
