"""Ceilings of another campaign of the site."""

from pathlib import Path

import pandas as pd
import pytest

from scalesweep.analysis.table_io import write_parquet
from scalesweep.core.plan_format import Plan, write_plan_file
from scalesweep.tables.machine import known_machine, machine_of
from tests.fakes.campaigns import Campaign


def probed(network: bool) -> tuple[pd.DataFrame, Plan]:
    made = Campaign().rates("files", "files", [2e9, 2.01e9], pattern="sequential")
    return (made.network(1e-3, 2e9, ranks_per_node=4) if network else made).done()


def test_what_a_campaign_did_not_measure_is_taken_from_where_the_site_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others, plan = probed(network=True)
    write_plan_file(tmp_path / "plan.json", plan)
    write_parquet(others, tmp_path / "summary.parquet", {})
    summary, own = probed(network=False)
    assert known_machine(summary, own) == machine_of(summary, own)
    own["ceilings"] = str(tmp_path)
    machine = known_machine(summary, own)
    assert [each.where for each in machine.networks] == [f"network of {tmp_path}"]
    assert {each.where for each in machine.rates} == {"files"}
    # Of another site, or not there: nothing, and a line.
    write_plan_file(tmp_path / "plan.json", {**plan, "site": "elsewhere"})
    assert known_machine(summary, own) == machine_of(summary, own)
    assert "of site elsewhere, not here: nothing is held against it" in caplog.text
    own["ceilings"] = str(tmp_path / "nowhere")
    assert known_machine(summary, own) == machine_of(summary, own)
    assert "No such file" in caplog.text
