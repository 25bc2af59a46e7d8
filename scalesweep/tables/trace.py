"""The table `trace`: where the time of a step goes in traces of TensorFlow's profiler, by part.

Of runs under ``profile: tensorflow``, from the files that their ranks left.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.trace_account import PARTS, TraceAccount, trace_account
from scalesweep.analysis.xplane import read_xplane
from scalesweep.core.errors import UserError
from scalesweep.core.files import read_regular
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.profilers import TENSORFLOW
from scalesweep.core.status import Status
from scalesweep.tables.cprofile import profile_files

MAX_RUNS = 12
MAX_RANKS = 8  # of a run, evenly
# A trace of 1 MB takes a third of a second.
MAX_BYTES = 16 << 20
_SUFFIX = ".xplane.pb"


def trace_column(name: str, axes: Sequence[str]) -> str:
    """Column of the table: its name, unless a varying parameter has it."""
    return f"trace_{name}" if name in axes else name


def trace_table(
    experiment: PlanExperiment, runs: Path, unread: list[str] | None = None
) -> pd.DataFrame | None:
    """A row per traced run and part of a step; None where no trace shows steps.

    ``experiment`` is an entry of plan.json, ``runs`` the folder of the site's runs; ``unread``
    takes the ids of those whose files cannot be read. Columns: ``run_id``, varying parameters,
    ``part`` (``trace_account.PARTS``), ``share`` of a step, mean over the ranks, with ``least`` and
    ``most`` of one rank, ``ms`` per step, ``steps`` (of a rank), ``traced_ranks``. What a trace
    does not show is missing. Of at most MAX_RUNS runs, MAX_RANKS ranks of each, and files of at
    most MAX_BYTES: larger ones are for a viewer.
    """
    unread = [] if unread is None else unread
    rows: list[dict[str, Any]] = []
    done = [run for run in experiment["profiles"] if run["kind"] == TENSORFLOW]
    for run in [run for run in done if run["status"] == Status.DONE][:MAX_RUNS]:
        try:
            accounts = _accounts(runs / run["run_id"])
        except (UserError, OSError, KeyError, TypeError, ValueError):
            unread.append(run["run_id"])
            continue
        if accounts:
            rows += _rows(run, accounts, experiment["axes"])
    if not rows:
        return None
    frame = pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in rows[0]})
    for name in ("share", "least", "most", "ms"):
        title = trace_column(name, experiment["axes"])
        frame[title] = frame[title].astype(np.float64)
    return frame


def _accounts(folder: Path) -> list[TraceAccount]:
    """The accounts of a run's ranks that show steps."""
    files = [path for path in profile_files(folder) if path.name.endswith(_SUFFIX)]
    places = np.linspace(0, len(files) - 1, min(len(files), MAX_RANKS)).round().astype(int)
    chosen = [files[place] for place in places.tolist()]
    read = [read_regular(path, MAX_BYTES) for path in chosen if path.stat().st_size <= MAX_BYTES]
    accounts = [trace_account(read_xplane(content)) for content in read]
    return [account for account in accounts if account is not None]


def _rows(
    run: Mapping[str, Any], accounts: Sequence[TraceAccount], axes: Sequence[str]
) -> list[dict[str, Any]]:
    rows = []
    for part in PARTS:
        shares = [account.shares[part] for account in accounts]
        known = np.array([share for share in shares if share is not None])
        # What the traces of some ranks do not show took none of their time; of none, nobody knows.
        every = np.array([share or 0.0 for share in shares]) if known.size else np.array([np.nan])
        ms = [a.step_s * 1e3 * (a.shares[part] or 0.0) for a in accounts] if known.size else np.nan
        own = {
            "part": part,
            "share": float(every.mean()),
            "least": float(every.min()),
            "most": float(every.max()),
            "ms": float(np.mean(ms)),
            "steps": min(account.steps for account in accounts),
            "traced_ranks": len(accounts),
        }
        point = {name: run["point"].get(name) for name in axes}
        named = {trace_column(name, axes): value for name, value in own.items()}
        rows.append({"run_id": run["run_id"], **point, **named})
    return rows
