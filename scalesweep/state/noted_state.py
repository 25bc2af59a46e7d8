"""``.state.json`` in a results folder: the state of the runs that plan and report are made of.

It is written only if that changes, so Snakemake makes plan, tables and report again if it is newer.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from scalesweep.config.campaign import Campaign
from scalesweep.core.code_digest import code_digest
from scalesweep.core.files import content_digest, digest_of, read_json, write_atomic
from scalesweep.state.run_state import RunState, lines_of

STATE = ".state.json"


def state_digest(campaign: Campaign, states: Mapping[str, RunState]) -> str:
    """Digest of all that tables and report are made from: campaign, every run's files, the code."""
    # As one text: as lists of strings, 100,000 runs take four times as long.
    here = content_digest("\n".join(lines_of(states)).encode())
    return digest_of([campaign.digest, here, code_digest()])


def shown_experiments(campaign: Campaign) -> list[str]:
    """The experiments of tables, figures and report: the parts of one are one."""
    return list(dict.fromkeys(each.part_of or each.name for each in campaign.experiments))


def note_state(campaign: Campaign, states: Mapping[str, RunState]) -> Path:
    """Write the file if the state is another, or what tables are made of is not noted; its path.

    Raises OSError.
    """
    path, state = campaign.results / STATE, state_digest(campaign, states)
    plans = (campaign.results / "plan" / f"{name}.json" for name in shown_experiments(campaign))
    if (read_json(path) or {}).get("state") != state or not all(map(Path.exists, plans)):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Snakemake takes a newer file of the same content for the same.
        text = json.dumps({"state": state, "noted": time.time_ns()})
        write_atomic(path, f"{text}\n", durable=False)
    return path
