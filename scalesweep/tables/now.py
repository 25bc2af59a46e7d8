"""A campaign as it is now: its plan, and the summary of what has finished; nothing is changed."""

import logging
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from scalesweep.config.campaign import Campaign
from scalesweep.core.plan_format import Plan
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import scan
from scalesweep.state.stock import take_stock, untrusted
from scalesweep.tables.derived import with_derived
from scalesweep.tables.summary import build_summary

_log = logging.getLogger(__name__)


def read_now(campaign: Campaign) -> tuple[Plan, pd.DataFrame]:
    """Plan and summary of the campaign as it is, whatever is pending."""
    states = take_stock(campaign, campaign.unique_runs())
    plan = build_plan(campaign, states)
    runs = [run for experiment in plan["experiments"] for run in experiment["runs"]]
    done = dict.fromkeys(run["run_id"] for run in runs if run["status"] == Status.DONE)
    return plan, with_derived(summary_of(campaign.runs_folder, done), plan["experiments"])


def summary_of(folder: Path, run_ids: Iterable[str]) -> pd.DataFrame:
    """Summary of the finished ones of these runs; others are left out with a warning."""
    states = scan(folder, run_ids)
    records = [
        folder / run_id / RECORD for run_id, state in states.items() if state.status == Status.DONE
    ]
    broken = untrusted(states)
    frame = build_summary(records, broken)
    for run_id, why in broken.items():
        _log.warning("%s/%s: %s: left out", folder.name, run_id, why)
    return frame
