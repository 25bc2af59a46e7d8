"""The table `timeline`: where the time of a step goes in Horovod's timelines, by phase.

Of runs under ``profile: horovod_timeline``, from the file that they left, and of imported
timelines, from what the import noted in their records.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.horovod_trace import read_trace
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.timeline_account import NOTE, PHASES, TimelineAccount, timeline_account
from scalesweep.core.errors import UserError
from scalesweep.core.files import read_regular
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.profilers import HOROVOD_TIMELINE, TIMELINE
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record
from scalesweep.tables.cprofile import profile_files

MAX_RUNS = 12
MAX_BYTES = 1 << 28
MAX_IMPORTED = 200  # records of imported runs that are looked at
IMPORTED = "imported"  # the site of imported runs
# What Horovod prints (response_cache.cc, stall_inspector.cc), and the column that counts it.
SIGNS = {
    "evictions": "response has been evicted from cache",
    "stalls": "waiting for remainder of ranks for more than",
}
_NO_LOG: Mapping[str, int | None] = dict.fromkeys(SIGNS)
_LOGS = ("stderr.log", "stdout.log")


def timeline_table(
    experiment: PlanExperiment, runs: Path, unread: list[str] | None = None
) -> pd.DataFrame | None:
    """A row per run with a timeline and phase; None where no run has one.

    ``experiment`` is an entry of plan.json, ``runs`` the folder of the site's runs; ``unread``
    takes the ids of those whose files cannot be read. Columns: ``run_id``, varying parameters,
    ``phase`` (``timeline_account.PHASES``), ``share`` of a step, ``ms`` per step, and of the whole
    run ``steps``, ``negotiations``, ``ticked`` (those that show when each rank was ready),
    ``last_rank`` (that came last in most of them), ``last`` (in how many), ``late_ms`` (behind the
    median rank), ``evictions`` and ``stalls`` (lines in its logs). What a run does not show is
    missing. Of at most MAX_RUNS runs.
    """
    entries: list[Mapping[str, Any]] = [
        run
        for run in experiment["profiles"]
        if run["kind"] == HOROVOD_TIMELINE and run["status"] == Status.DONE
    ]
    unread = [] if unread is None else unread
    profiled = []
    for run in entries[:MAX_RUNS]:
        try:
            profiled.append((run, *_profiled(runs / run["run_id"])))
        except (UserError, OSError, KeyError, TypeError, ValueError):
            unread.append(run["run_id"])
    if runs.name == IMPORTED:
        done = [run for run in experiment["runs"] if run["status"] == Status.DONE]
        noted = ((run, _noted(runs / run["run_id"]), _NO_LOG) for run in done[:MAX_IMPORTED])
        profiled += [entry for entry in noted if entry[1] is not None][:MAX_RUNS]
    rows = [
        row
        for run, account, signs in profiled
        if account is not None
        for row in _rows(run, account, signs, experiment["axes"])
    ]
    if not rows:
        return None
    return pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in rows[0]})


def _noted(folder: Path) -> TimelineAccount | None:
    """The account that an import noted in a record; None where there is none."""
    try:
        return TimelineAccount.from_json((read_record(folder / RECORD).get("notes") or {})[NOTE])
    except (UserError, OSError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _profiled(folder: Path) -> tuple[TimelineAccount | None, Mapping[str, int | None]]:
    """The account of a profiled run, None where its timeline shows no steps; signs in its logs.

    Raises UserError, OSError or ValueError where it cannot be read.
    """
    files = [path for path in profile_files(folder) if path.name == TIMELINE]
    if not files:
        raise UserError(f"{folder.name}: no timeline")
    text = read_regular(files[0], MAX_BYTES).decode()
    return timeline_account(read_trace(text)), _signs(files[0].parent.parent)


def _signs(attempt: Path) -> dict[str, int | None]:
    """How many lines of the logs say each of SIGNS; None where there is no log."""
    texts = []
    for name in _LOGS:
        try:
            texts.append(read_regular(attempt / name, MAX_BYTES).decode("utf-8", "replace"))
        except (OSError, UserError):
            continue
    return {name: sum(text.count(words) for text in texts) if texts else None
            for name, words in SIGNS.items()}  # fmt: skip


def _rows(
    run: Mapping[str, Any],
    account: TimelineAccount,
    signs: Mapping[str, int | None],
    axes: Sequence[str],
) -> list[dict[str, Any]]:
    last = max(account.last, key=lambda rank: account.last[rank], default=None)
    whole = {
        "steps": account.steps,
        "negotiations": account.negotiations,
        "ticked": account.ticked,
        "last_rank": last,
        "last": None if last is None else account.last[last],
        "late_ms": None if account.late_s is None else account.late_s * 1e3,
        **signs,
    }
    rows = []
    for phase in PHASES:
        share = account.shares[phase]
        ms = np.nan if share is None else share * account.step_s * 1e3
        own = {"phase": phase, "share": np.nan if share is None else share, "ms": ms, **whole}
        point = {name: run["point"].get(name) for name in axes if name not in own}
        rows.append({"run_id": run["run_id"], **point, **own})
    return rows
