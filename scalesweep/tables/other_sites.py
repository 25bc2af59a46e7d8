"""The same runs on other sites: a run's id does not depend on where it ran."""

import logging
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.run_state import other_sites, scan
from scalesweep.state.stock import newer
from scalesweep.tables.summary import build_summary

_log = logging.getLogger(__name__)


def summaries_elsewhere(runs_folder: Path, run_ids: Iterable[str]) -> dict[str, pd.DataFrame]:
    """Summary of the finished ones of these runs by site, of every other site that has any.

    Runs whose files cannot be trusted are left out, with a line each.
    """
    wanted = list(run_ids)
    summaries = {}
    for folder in other_sites(runs_folder):
        here = [run_id for run_id in wanted if (folder / run_id).is_dir()]
        # Not remembered: another site's folder is left as it is.
        states = scan(folder, here, remember=False)
        done = [folder / run_id / RECORD for run_id in here if states[run_id].status == Status.DONE]
        broken = newer(states)
        if done:
            summaries[folder.name] = build_summary(done, broken=broken, unusable=broken)
        for run_id, why in broken.items():
            _log.warning("%s/%s: %s: left out", folder.name, run_id, why)
    return summaries
