"""The table `timeline`: where the time of a step goes in Horovod's timelines, by phase.

Of runs under ``profile: horovod_timeline``, from the file that they left, and of imported
timelines, from what the import noted in their records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from scalesweep.analysis.horovod_trace import read_trace
from scalesweep.analysis.timeline_account import NOTE, PHASES, TimelineAccount, timeline_account
from scalesweep.aspects.profiles.functions import IMPORTED, MAX_IMPORTED, profile_files
from scalesweep.core.errors import UserError
from scalesweep.core.files import read_regular
from scalesweep.core.profilers import HOROVOD_TIMELINE, TIMELINE
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs

MAX_RUNS = 12
MAX_BYTES = 1 << 28
# What Horovod prints (response_cache.cc, stall_inspector.cc), and the column that counts it.
SIGNS = {
    "evictions": "response has been evicted from cache",
    "stalls": "waiting for remainder of ranks for more than",
}
_NO_LOG: Mapping[str, int | None] = dict.fromkeys(SIGNS)
_LOGS = ("stderr.log", "stdout.log")


@dataclass(frozen=True, kw_only=True)
class TimelinePhase(DeclaredRow, table="timeline", leading=("run_id",)):
    """A phase of a step in a run with a timeline; what a run does not show is missing."""

    run_id: str = column("the run with a timeline")
    phase: str = column("what Horovod does: negotiation, queue, wait for data, copies, ... idle")
    share: float | None = column("share of a step", "1")
    ms: float | None = column("time per step", "ms")
    steps: int = column("steps of the whole run", "1")
    negotiations: int = column("negotiations of the whole run", "1")
    ticked: int = column("those that show when each rank was ready", "1")
    last_rank: int | None = column("the rank that came last in most of them")
    last: int | None = column("in how many it did", "1")
    late_ms: float | None = column("how far behind the median rank, mean over these", "ms")
    evictions: int | None = column("lines in the logs on responses evicted from the cache", "1")
    stalls: int | None = column("lines in the logs on ranks that were waited for", "1")


def timeline_rows(inputs: TableInputs) -> Iterator[TimelinePhase]:
    """A row per run with a timeline, of at most MAX_RUNS, and phase (``timeline_account.PHASES``).

    The site of imported runs has those that imports noted in records too.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    entries: list[Mapping[str, Any]] = [
        run
        for run in data.experiment["profiles"]
        if run["kind"] == HOROVOD_TIMELINE and run["status"] == Status.DONE
    ]
    for run in entries[:MAX_RUNS]:
        try:
            account, signs = _profiled(runs / run["run_id"])
        except (UserError, OSError, KeyError, TypeError, ValueError):
            data.unread.append(run["run_id"])
            continue
        if account is not None:
            yield from _rows(run, account, signs, data.axes)
    if runs.name == IMPORTED:
        done = [run for run in data.experiment["runs"] if run["status"] == Status.DONE]
        noted = ((run, _noted(runs / run["run_id"])) for run in done[:MAX_IMPORTED])
        known = ((run, account) for run, account in noted if account is not None)
        for run, account in islice(known, MAX_RUNS):
            yield from _rows(run, account, _NO_LOG, data.axes)


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
) -> Iterator[TimelinePhase]:
    last = max(account.last, key=lambda rank: account.last[rank], default=None)
    for phase in PHASES:
        share = account.shares[phase]
        yield TimelinePhase(
            point={name: run["point"].get(name) for name in axes},
            run_id=run["run_id"],
            phase=phase,
            share=share,
            ms=None if share is None else share * account.step_s * 1e3,
            steps=account.steps,
            negotiations=account.negotiations,
            ticked=account.ticked,
            last_rank=last,
            last=None if last is None else account.last[last],
            late_ms=None if account.late_s is None else account.late_s * 1e3,
            **signs,
        )
