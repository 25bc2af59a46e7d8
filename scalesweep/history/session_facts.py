"""What the rows of a history say of its sessions: commit, surroundings, and their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from scalesweep.history.series_head import KEY

# What is not of its key a series has as its newest session has it.
NEWEST = ["scaling", "scale", "workers", "label", "experiment", "unit", "better"]
# What sessions of before do not say.
ADDED = ["series", "ideal"]
_SESSION = ["commit", "dirty", "commit_time", "subject", "tags", "repository", "results"]
_SESSION += ["hosts", "launcher", "program", "facts"]
ROW = ["session", *KEY, *NEWEST, *ADDED, *_SESSION, "main", "started", "value", "run_id", "kind"]
_SHORT = 10  # digits of a commit
MOST_SESSIONS = 200  # of a series, the newest ones: those that are drawn


@dataclass(frozen=True)
class SessionFacts:
    """A session as one series knows it; ``facts`` is JSON."""

    session: str
    started: datetime
    commit: str
    dirty: bool
    commit_time: datetime | None
    subject: str
    tags: str
    repository: str
    results: str
    hosts: str
    launcher: str
    program: str
    facts: str

    @property
    def name(self) -> str:
        """The commit in short, else the program's digest, else the day."""
        if self.commit:
            return self.commit[:_SHORT] + ("+" if self.dirty else "")
        return f"program {self.program}" if self.program else f"{self.started:%Y-%m-%d %H:%M}"


def session_frame(rows: pa.Table) -> tuple[pd.DataFrame, list[SessionFacts]]:
    """The rows, whose column ``_facts`` is the place in the list of what is known of the session.

    The points of a session mostly share it: hundreds of thousands of rows have a few of them.
    """
    frame: pd.DataFrame = rows.select(ROW).to_pandas()
    columns = [frame["session"].cat.codes.to_numpy(np.int64)]
    for name in _SESSION:
        columns.append(pd.factorize(frame[name])[0].astype(np.int64))
    codes = np.zeros(len(frame), np.int64)
    for column in columns:
        codes = np.unique(
            codes * (int(column.max(initial=0)) + 2) + column + 1, return_inverse=True
        )[1]
    _, first = np.unique(codes, return_index=True)
    began = frame.groupby("session", observed=True)["started"].min()
    heads = frame.iloc[first][["session", *_SESSION]].to_dict("records")
    frame["_facts"] = codes
    return frame, [_session(head, began) for head in heads]


def _session(head: Mapping[Any, Any], began: "pd.Series[Any]") -> SessionFacts:
    """A session's facts without what pandas puts for a missing one."""
    time = head["commit_time"]
    plain: dict[str, Any] = {n: "" if pd.isna(v) else str(v) for n, v in head.items()}
    plain["dirty"] = bool(head["dirty"])
    plain["commit_time"] = None if pd.isna(time) else time.to_pydatetime()
    return SessionFacts(started=began[head["session"]].to_pydatetime(), **plain)


def in_order(infos: Sequence[SessionFacts]) -> list[int]:
    """By time of the commit, where that is known of all, else by start: what was measured late of
    an old commit belongs to that commit."""
    known = all(info.commit_time for info in infos)
    return sorted(
        range(len(infos)),
        key=lambda place: (
            infos[place].commit_time if known else infos[place].started,
            infos[place].started,
        ),
    )
