"""The points of a history in time: their series, what each shows, and what changed with it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from scalesweep.analysis.levels import Series, read_series
from scalesweep.analysis.step_account import FINEST
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
from scalesweep.history.components import Components
from scalesweep.history.series_head import KEY, POINT, SeriesHead
from scalesweep.history.session_facts import (
    ADDED,
    MOST_SESSIONS,
    NEWEST,
    ROW,
    SessionFacts,
    in_order,
    session_frame,
)
from scalesweep.history.settled import (
    Evidence,
    Settled,
    evidence_for,
    load_settled,
    with_evidence,
    with_newest,
)
from scalesweep.history.store import CANARY, LEDGER, METRIC, load


@dataclass(frozen=True)
class Judged(SeriesHead):
    """A point and metric over its sessions, oldest first.

    ``series``: what points of one scaling series share, JSON; ``ideal``: what of the metric becomes
    ideally as workers are added (``session.ideal_of``); both empty where no session says it.
    ``values[session]`` are the repeats' means, ``runs[session]`` their ids; ``shown``: levels,
    spikes and noise, None where a value is not positive. ``ledger``: term -> ms per step in base
    and new sessions. ``evidence``: what their commits have shown, measured alternately.
    """

    scale: str
    workers: int
    series: str
    ideal: str
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
    that were measured alternately, the newest first; ``components``: what makes up the points."""

    series: Sequence[Judged]
    sessions: int
    broken: Mapping[str, str]
    baseline: str
    settled: Sequence[Settled] = ()
    components: Components | None = None


def read_history(folder: Path, settings: HistorySettings | None = None) -> History:
    """Read a history and judge every point and metric in it.

    Raises UserError if it is none, or no session is of the named baseline.
    """
    settings = settings or HistorySettings(folder)
    loaded = load(folder, [*ROW, "judged"])
    rows = loaded.rows
    metrics = rows.filter(pc.and_(pc.equal(rows["kind"], METRIC), rows["judged"]))
    frame, facts = session_frame(metrics)
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
    canaries = _by_point(rows, CANARY) if changed else {}
    ledgers = _by_point(rows, LEDGER, "phase") if changed else {}
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
    newest = {s.session for series in judged for s in series.sessions[-MOST_SESSIONS:]}
    components = Components(rows, newest)
    return History(judged, sessions, broken, settings.baseline, settled, components)


def _series(part: pd.DataFrame, facts: Sequence[SessionFacts], settings: HistorySettings) -> Judged:
    """A point and metric over its sessions, judged, but for what is corrected over all of them.

    ``part``: its rows, whose column ``_facts`` is the place of the session in ``facts``.
    """
    codes = part["session"].cat.codes.to_numpy()
    order = np.argsort(codes, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    of_row = part["_facts"].to_numpy()
    infos = [facts[of_row[rows[0]]] for rows in places]
    turn = in_order(infos)
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
    own = {name: last[name] for name in [*KEY, *NEWEST]}
    own |= {name: int(own[name]) for name in ("version", "workers")}
    newest = [int(places[place][0]) for place in reversed(turn)]
    own |= {name: _last_said(part[name], newest) for name in ADDED}
    changed = along(infos, verdict)
    return Judged(
        **own, main=bool(last["main"]), margin=margin, sessions=infos, values=values, runs=runs,
        shown=shown, verdict=verdict, along=changed,
    )  # fmt: skip


def _last_said(column: "pd.Series[Any]", rows: Sequence[int]) -> str:
    """The first text that is known in these rows; empty where none is."""
    return next((str(text) for text in column.iloc[np.array(rows)] if not pd.isna(text)), "")


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


def _by_point(
    rows: pa.Table, kind: str, *more: str
) -> dict[tuple[Any, ...], dict[Any, dict[str, float]]]:
    """Point -> metric -> session -> mean, of the rows of a kind; with columns ``more``, what they
    hold and the metric in place of the metric."""
    names = [*POINT, *more, "metric", "session"]
    frame = rows.filter(pc.equal(rows["kind"], kind)).select([*names, "value"]).to_pandas()
    by_point: dict[tuple[Any, ...], dict[Any, dict[str, float]]] = {}
    if frame.empty:
        return by_point
    means = frame.groupby(names, observed=True, sort=False)["value"].mean()
    for (*key, metric, session), value in means.items():
        name = (*key[len(POINT) :], metric) if more else metric
        by_point.setdefault(tuple(key[: len(POINT)]), {}).setdefault(name, {})[session] = float(
            value
        )
    return by_point


def _with_ledger(series: Judged, terms: Mapping[tuple[str, str], Mapping[str, float]]) -> Judged:
    """With the ledgers of both sides, of a main metric: by steps, or else by what both sides have,
    since a term of a step and one of an epoch are no change."""
    by_form: dict[str, dict[str, tuple[float, float]]] = {}
    for (form, term), values in terms.items() if series.main else ():
        sides = [[values[name] for name in side if name in values] for side in _sides(series)]
        if all(sides):
            means = (float(np.mean(sides[0])), float(np.mean(sides[1])))
            by_form.setdefault(form, {})[term] = means
    finest = next((by_form[form] for form in FINEST if form in by_form), {})
    return replace(series, ledger=finest)
