"""An import without Snakemake: its tables, no figures, no report."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scalesweep.config.campaign import load_campaign
from scalesweep.core.plan_format import PLAN, write_plan_file
from scalesweep.importers import cli
from scalesweep.planning.plan import build_plan
from scalesweep.report.export_tables import write_all
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary


def make_tables(results: Path) -> None:
    """Write plan and tables of an import, as the report's call of Snakemake does."""
    campaign = load_campaign(results / "campaign.yaml", "imported", str(results))
    runs = campaign.unique_runs()
    plan = build_plan(campaign, scan(campaign.runs_folder, runs, remember=False))
    finished = [run["run_id"] for entry in plan["experiments"] for run in entry["runs"]
                if run["status"] == "done"]  # fmt: skip
    records = [campaign.runs_folder / run_id / "record.json" for run_id in dict.fromkeys(finished)]
    write_plan_file(results / PLAN, plan)
    write_all(build_summary(records), plan, campaign.runs_folder, results / "tables")


def tables_only(patch: pytest.MonkeyPatch) -> None:
    """Let every import make tables in place of its report."""

    def run(command: Sequence[str], **_kept: Any) -> subprocess.CompletedProcess[str]:
        make_tables(Path(command[command.index("--configfile") + 1]).parent)
        return subprocess.CompletedProcess(command, 0, "", "")

    patch.setattr(cli, "subprocess", SimpleNamespace(run=run))
