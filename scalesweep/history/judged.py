"""The points of a history in time: their series, what each shows, and what changed with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from scalesweep.analysis.levels import Series, read_series
from scalesweep.analysis.types import Floats
from scalesweep.analysis.verdicts import (
    CONFOUNDED,
    IMPROVEMENT,
    REGRESSION,
    TOO_EARLY,
    Verdict,
    corrected,
    judge,
)
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.history.changes import Along, along
from scalesweep.history.store import LEDGER, METRIC, load

# What a series is of; the rest of its columns is as its newest session has it.
_KEY = ["site", "source", "benchmark", "version", "device", "identity", "metric", "phase"]
_POINT = _KEY[:-2]
_NEWEST = ["scaling", "scale", "workers", "label", "experiment", "unit", "better"]
_SESSION = ["commit", "dirty", "commit_time", "subject", "tags", "repository", "results"]
_SESSION += ["hosts", "launcher", "program", "facts"]
_SHORT = 10  # digits of a commit


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


@dataclass(frozen=True)
class Judged:
    """A point and metric over its sessions, oldest first.

    ``values[session]`` are the repeats' means; ``shown``: levels, spikes and noise, None where a
    value is not positive. ``ledger``: term -> ms per step in base and new sessions.
    """

    site: str
    source: str
    benchmark: str
    version: int
    device: str
    identity: str
    metric: str
    phase: str
    scaling: str
    scale: str
    workers: int
    label: str
    experiment: str
    unit: str
    better: str
    main: bool
    margin: float
    sessions: Sequence[SessionFacts]
    values: Sequence[Floats]
    shown: Series | None
    verdict: Verdict
    along: Along
    ledger: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def point(self) -> str:
        """What distinguishes the point in its campaign."""
        return self.label or "the only point"


@dataclass(frozen=True)
class History:
    """All that a page of the history shows; ``broken``: damaged files and why."""

    series: Sequence[Judged]
    sessions: int
    broken: Mapping[str, str]
    baseline: str


def read_history(folder: Path, settings: HistorySettings | None = None) -> History:
    """Read a history and judge every point and metric in it.

    Raises UserError if it is none, or no session is of the named baseline.
    """
    settings = settings or HistorySettings(folder)
    loaded = load(folder)
    rows = loaded.rows
    metrics = rows.filter(pc.and_(pc.equal(rows["kind"], METRIC), rows["judged"]))
    frame = _frame(metrics)
    found = [_series(part, settings) for _, part in frame.groupby(_KEY, sort=False, observed=True)]
    if settings.baseline and not any(
        _is_baseline(session, settings.baseline) for one in found for session in one.sessions
    ):
        commits = dict.fromkeys(s.name for one in found for s in one.sessions if s.commit)
        known = ", ".join([*commits][-5:]) or "none is known"
        raise UserError(
            f"history: baseline {settings.baseline!r}: no session of this commit or tag in "
            f"{folder}; newest commits: {known}"
        )
    verdicts = corrected(one.verdict for one in found)
    judged = [_settled(one, verdict) for one, verdict in zip(found, verdicts, strict=True)]
    if any(one.verdict.kind in (REGRESSION, IMPROVEMENT, CONFOUNDED) for one in judged):
        judged = _with_ledgers(judged, rows)
    return History(judged, len(pc.unique(rows["session"])), loaded.broken, settings.baseline)


def _frame(rows: pa.Table) -> pd.DataFrame:
    names = ["session", *_KEY, *_NEWEST, *_SESSION, "main", "started", "value"]
    frame: pd.DataFrame = rows.select(names).to_pandas()
    return frame


def _series(part: pd.DataFrame, settings: HistorySettings) -> Judged:
    codes, names = pd.factorize(part["session"])
    order = np.argsort(codes, kind="stable")
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    places = np.split(order, cuts)
    started = part["started"].to_numpy()
    heads = part.iloc[[int(rows[0]) for rows in places]]
    infos = [
        SessionFacts(str(name), pd.Timestamp(started[rows].min()).to_pydatetime(), **_plain(head))
        for name, rows, head in zip(names, places, heads[_SESSION].to_dict("records"), strict=True)
    ]
    turn = _in_order(infos)
    infos = [infos[place] for place in turn]
    numbers = part["value"].to_numpy(np.float64)
    values = [numbers[places[place]] for place in turn]
    last = heads.iloc[turn[-1]]
    metric = str(last["metric"])
    margin = settings.margin_of(metric)
    if min(float(group.min()) for group in values) <= 0:
        shown, verdict = None, Verdict(TOO_EARLY, "a value is not positive")
    else:
        shown = read_series([np.log(group) for group in values])
        base = None
        if settings.baseline:
            base = [n for n, s in enumerate(infos) if _is_baseline(s, settings.baseline)]
        verdict = judge(shown, str(last["better"]), margin, base)
    own = {name: last[name] for name in [*_KEY, *_NEWEST]}
    own |= {name: int(own[name]) for name in ("version", "workers")}
    changed = along(infos, verdict)
    return Judged(
        **own, main=bool(last["main"]), margin=margin, sessions=infos, values=values, shown=shown,
        verdict=verdict, along=changed,
    )  # fmt: skip


def _plain(head: Mapping[Any, Any]) -> dict[str, Any]:
    """A session's facts without what pandas puts for a missing one."""
    time = head["commit_time"]
    texts = {name: "" if pd.isna(value) else str(value) for name, value in head.items()}
    return texts | {
        "dirty": head["dirty"] is True or bool(head["dirty"]),
        "commit_time": None if pd.isna(time) else time.to_pydatetime(),
    }


def _in_order(infos: Sequence[SessionFacts]) -> list[int]:
    """By time of the commit, where that is known of all, else by start: what was measured late of
    an old commit belongs to that commit."""
    known = all(one.commit_time for one in infos)
    return sorted(
        range(len(infos)),
        key=lambda place: (
            infos[place].commit_time if known else infos[place].started,
            infos[place].started,
        ),
    )


def _is_baseline(session: SessionFacts, baseline: str) -> bool:
    commit = len(baseline) >= 4 and session.commit.startswith(baseline.lower())
    return commit or baseline in session.tags.split()


def _settled(one: Judged, verdict: Verdict) -> Judged:
    """With the corrected verdict; confounded where something else than the commit changed too."""
    if verdict.kind in (REGRESSION, IMPROVEMENT) and one.along.confounds:
        verdict = replace(verdict, kind=CONFOUNDED, reason=one.along.reason)
    return replace(one, verdict=verdict)


def _with_ledgers(judged: Sequence[Judged], rows: pa.Table) -> list[Judged]:
    """With the ledgers of both sides of each change of a main metric."""
    wanted = [*_POINT, "session", "metric", "value"]
    ledger = rows.filter(pc.equal(rows["kind"], LEDGER)).select(wanted).to_pandas()
    if ledger.empty:
        return list(judged)
    means = ledger.groupby([*_POINT, "metric", "session"], observed=True, sort=False)[
        "value"
    ].mean()
    by_point: dict[tuple[Any, ...], dict[str, dict[str, float]]] = {}
    for (*point, metric, session), value in means.items():
        by_point.setdefault(tuple(point), {}).setdefault(metric, {})[session] = float(value)
    found = []
    for one in judged:
        terms = by_point.get(tuple(getattr(one, name) for name in _POINT), {})
        sides = [[one.sessions[n].session for n in s] for s in (one.verdict.base, one.verdict.new)]
        both = {}
        for term, values in terms.items():
            means_of = [[values[name] for name in side if name in values] for side in sides]
            if one.main and all(means_of):
                both[term] = (float(np.mean(means_of[0])), float(np.mean(means_of[1])))
        found.append(replace(one, ledger=both))
    return found
