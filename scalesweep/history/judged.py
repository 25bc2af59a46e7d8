"""The points of a history in time: their series, what each shows, and what changed with it."""

import math
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
from scalesweep.history.changes import Along, Rates, along, machine_moved
from scalesweep.history.series_head import KEY, POINT, SeriesHead
from scalesweep.history.settled import (
    Evidence,
    Settled,
    evidence_for,
    load_settled,
    with_evidence,
    with_newest,
)
from scalesweep.history.store import CANARY, LEDGER, METRIC, load

# What is not of its key a series has as its newest session has it.
_NEWEST = ["scaling", "scale", "workers", "label", "experiment", "unit", "better"]
_SESSION = ["commit", "dirty", "commit_time", "subject", "tags", "repository", "results"]
_SESSION += ["hosts", "launcher", "program", "facts"]
_ROW = ["session", *KEY, *_NEWEST, *_SESSION, "main", "started", "value", "run_id"]
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
class Judged(SeriesHead):
    """A point and metric over its sessions, oldest first.

    ``values[session]`` are the repeats' means, ``runs[session]`` their ids; ``shown``: levels,
    spikes and noise, None where a value is not positive. ``ledger``: term -> ms per step in base
    and new sessions. ``evidence``: what their commits have shown, measured alternately.
    """

    scale: str
    workers: int
    experiment: str
    main: bool
    margin: float
    sessions: Sequence[SessionFacts]
    values: Sequence[Floats]
    runs: Sequence[Sequence[str]]
    shown: Series | None
    verdict: Verdict
    along: Along
    ledger: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    evidence: Evidence | None = None

    @property
    def point(self) -> str:
        """What distinguishes the point in its campaign."""
        return self.label or "the only point"


@dataclass(frozen=True)
class History:
    """All that a page of the history shows; ``broken``: damaged files and why; ``settled``: commits
    that were measured alternately, the newest first."""

    series: Sequence[Judged]
    sessions: int
    broken: Mapping[str, str]
    baseline: str
    settled: Sequence[Settled] = ()


def read_history(folder: Path, settings: HistorySettings | None = None) -> History:
    """Read a history and judge every point and metric in it.

    Raises UserError if it is none, or no session is of the named baseline.
    """
    settings = settings or HistorySettings(folder)
    loaded = load(folder, [*_ROW, "kind", "judged"])
    rows = loaded.rows
    metrics = rows.filter(pc.and_(pc.equal(rows["kind"], METRIC), rows["judged"]))
    frame, facts = _frame(metrics)
    parts = frame.groupby([*KEY], sort=False, observed=True)
    judgements = [_series(part, facts, settings) for _, part in parts]
    if settings.baseline and not any(
        _is_baseline(session, settings.baseline)
        for series in judgements
        for session in series.sessions
    ):
        commits = dict.fromkeys(
            s.name for series in judgements for s in series.sessions if s.commit
        )
        known = ", ".join([*commits][-5:]) or "none is known"
        raise UserError(
            f"history: baseline {settings.baseline!r}: no session of this commit or tag in "
            f"{folder}; newest commits: {known}"
        )
    verdicts = corrected(series.verdict for series in judgements)
    changed = any(verdict.kind in (REGRESSION, IMPROVEMENT) for verdict in verdicts)
    canaries, ledgers = (_by_point(rows, kind) if changed else {} for kind in (CANARY, LEDGER))
    settled, damaged = load_settled(folder)
    judged = [
        _with_ledger(
            _with_evidence(_attributed(series, verdict, canaries.get(_point(series), {})), settled),
            ledgers.get(_point(series), {}),
        )
        for series, verdict in zip(judgements, verdicts, strict=True)
    ]
    sessions = len(pc.unique(rows["session"]))
    broken = {**loaded.broken, **damaged}
    return History(judged, sessions, broken, settings.baseline, settled)


def _frame(rows: pa.Table) -> tuple[pd.DataFrame, list[SessionFacts]]:
    """The rows, whose column ``_facts`` is the place in the list of what is known of the session.

    The points of a session mostly share it: hundreds of thousands of rows have a few of them.
    """
    frame: pd.DataFrame = rows.select(_ROW).to_pandas()
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


def _series(part: pd.DataFrame, facts: Sequence[SessionFacts], settings: HistorySettings) -> Judged:
    """A point and metric over its sessions, judged, but for what is corrected over all of them.

    ``part``: its rows, whose column ``_facts`` is the place of the session in ``facts``.
    """
    codes = part["session"].cat.codes.to_numpy()
    order = np.argsort(codes, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    of_row = part["_facts"].to_numpy()
    infos = [facts[of_row[rows[0]]] for rows in places]
    turn = _in_order(infos)
    infos = [infos[place] for place in turn]
    numbers = part["value"].to_numpy(np.float64)
    values = [numbers[places[place]] for place in turn]
    ids = part["run_id"].to_numpy()
    runs = [ids[places[place]].tolist() for place in turn]
    last = part.iloc[int(places[turn[-1]][0])]
    metric = str(last["metric"])
    margin = settings.margin_of(metric)
    if numbers.min() <= 0:
        shown, verdict = None, Verdict(TOO_EARLY, "a value is not positive")
    else:
        days = [session.started.weekday() for session in infos]
        shown = read_series([np.log(group) for group in values], days)
        base = None
        if settings.baseline:
            base = [n for n, s in enumerate(infos) if _is_baseline(s, settings.baseline)]
        verdict = judge(shown, str(last["better"]), margin, base)
    own = {name: last[name] for name in [*KEY, *_NEWEST]}
    own |= {name: int(own[name]) for name in ("version", "workers")}
    changed = along(infos, verdict)
    return Judged(
        **own, main=bool(last["main"]), margin=margin, sessions=infos, values=values, runs=runs,
        shown=shown, verdict=verdict, along=changed,
    )  # fmt: skip


def _in_order(infos: Sequence[SessionFacts]) -> list[int]:
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


def _is_baseline(session: SessionFacts, baseline: str) -> bool:
    commit = len(baseline) >= 4 and session.commit.startswith(baseline.lower())
    return commit or baseline in session.tags.split()


def _attributed(series: Judged, verdict: Verdict, rates: Rates) -> Judged:
    """With the corrected verdict; confounded where something else than the commit changed too."""
    if verdict.kind not in (REGRESSION, IMPROVEMENT):
        return replace(series, verdict=verdict)
    base, new = _sides(series)
    speed = math.log(verdict.ratio) * (1 if series.better == "higher" else -1)
    moved = machine_moved(rates, base, new, speed)
    changed = replace(series.along, others={**(series.along.others or {}), **moved})
    if changed.confounds:
        verdict = replace(verdict, kind=CONFOUNDED, reason=changed.reason)
    return replace(series, verdict=verdict, along=changed)


def _with_evidence(series: Judged, settled: Sequence[Settled]) -> Judged:
    """With what the commits of both sides have shown, measured alternately, if they were; else with
    what the newest commit has."""
    if not settled:
        return series
    key = {name: getattr(series, name) for name in KEY}
    base, new = (
        [series.sessions[n].commit for n in side if not series.sessions[n].dirty]
        for side in (series.verdict.base, series.verdict.new)
    )
    evidence = evidence_for(key, base, new, settled)
    if evidence is not None:
        return replace(series, evidence=evidence, verdict=with_evidence(series.verdict, evidence))
    newest = series.sessions[-1]
    if newest.commit and not newest.dirty:
        evidence = evidence_for(key, None, [newest.commit], settled)
    if evidence is None or (verdict := with_newest(series.verdict, evidence)) == series.verdict:
        return series
    return replace(series, evidence=evidence, verdict=verdict)


def _sides(series: Judged) -> tuple[list[str], list[str]]:
    """The sessions of both sides by id."""
    base, new = (
        [series.sessions[n].session for n in s] for s in (series.verdict.base, series.verdict.new)
    )
    return base, new


def _point(series: Judged) -> tuple[Any, ...]:
    return tuple(getattr(series, name) for name in POINT)


def _by_point(rows: pa.Table, kind: str) -> dict[tuple[Any, ...], dict[str, dict[str, float]]]:
    """Point -> metric -> session -> mean, of the rows of a kind."""
    names = [*POINT, "metric", "session"]
    frame = rows.filter(pc.equal(rows["kind"], kind)).select([*names, "value"]).to_pandas()
    by_point: dict[tuple[Any, ...], dict[str, dict[str, float]]] = {}
    if frame.empty:
        return by_point
    means = frame.groupby(names, observed=True, sort=False)["value"].mean()
    for (*point, metric, session), value in means.items():
        by_point.setdefault(tuple(point), {}).setdefault(metric, {})[session] = float(value)
    return by_point


def _with_ledger(series: Judged, terms: Mapping[str, Mapping[str, float]]) -> Judged:
    """With the ledgers of both sides, of a main metric."""
    both = {}
    for term, values in terms.items() if series.main else ():
        sides = [[values[name] for name in side if name in values] for side in _sides(series)]
        if all(sides):
            both[term] = (float(np.mean(sides[0])), float(np.mean(sides[1])))
    return replace(series, ledger=both)
