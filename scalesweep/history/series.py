"""The lines of a history: a metric, term or part of a point over its sessions, and its verdict."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.types import Floats
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.history.evidence import Evidence, load_evidence, with_evidence
from scalesweep.history.session import WHOLE
from scalesweep.history.store import CANARY, METRIC, PART, TERM, load
from scalesweep.judge.change import (
    CHANGED,
    CONFOUNDED,
    TOO_EARLY,
    Change,
    corrected,
    estimates,
    welch,
)
from scalesweep.judge.facts import Difference, differences, machine_moved, other_hosts
from scalesweep.judge.over_time import Levels, judge, read_levels

# What distinguishes a point, and a line of its sessions.
POINT = ("site", "source", "benchmark", "version", "device", "identity")
KEY = (*POINT, "kind", "metric", "phase")
# What is not of its key a line has as its newest session has it.
_INFO = (
    "scaling",
    "scale",
    "workers",
    "label",
    "unit",
    "better",
    "main",
    "judged",
    "series",
    "ideal",
)
_SESSION = ("commit", "dirty", "commit_time", "subject", "tags", "results", "hosts", "launcher",
            "program", "facts")  # fmt: skip
_COLUMNS = ("session", *KEY, *_INFO, *_SESSION, "run_id", "started", "value")
SPEEDUP = "speedup"  # kind of the lines that are computed from those of two points
_SHORT = 10  # digits of a commit
MOST_SESSIONS = 400  # of a line, the newest ones


@dataclass(frozen=True)
class SessionFacts:
    """A session as the lines of one point know it; ``facts`` is JSON."""

    session: str
    started: datetime
    commit: str
    dirty: bool
    commit_time: datetime | None
    subject: str
    tags: str
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

    @cached_property
    def known(self) -> dict[str, str]:
        """Its facts by name, with the launcher."""
        facts: dict[str, str] = json.loads(self.facts) if self.facts else {}
        return facts | ({"launcher": self.launcher} if self.launcher else {})

    def is_baseline(self, text: str) -> bool:
        """Whether a text names its commit (four digits or more) or a tag of it."""
        commit = len(text) >= 4 and self.commit.startswith(text.lower())
        return commit or text in self.tags.split()


@dataclass(frozen=True)
class Line:
    """A metric, a term of the step, a part of a profile or a speedup of a point, oldest first.

    ``values[session]``: of each repeat, ``runs`` their ids; ``estimates``: ``[3, session]``, mean
    and ends of its 95 % interval, NaN where not known; ``shares[session]``: of the step, of all
    parts, or of the ideal speedup (None for a metric). ``others``: what else changed with a step.
    """

    site: str
    source: str
    benchmark: str
    version: int
    device: str
    identity: str
    kind: str
    metric: str
    phase: str
    scaling: str
    scale: str
    workers: int
    label: str
    unit: str
    better: str
    main: bool
    judged: bool
    series: str
    ideal: str
    sessions: Sequence[SessionFacts]
    values: Sequence[Floats]
    runs: Sequence[Sequence[str]]
    estimates: Floats
    shares: Floats | None = None
    margin: float = 0.0
    levels: Levels | None = None
    change: Change | None = None
    others: Sequence[Difference] = ()
    evidence: Evidence | None = None

    @property
    def point(self) -> tuple[Any, ...]:
        """What distinguishes its point from others."""
        return tuple(getattr(self, name) for name in POINT)

    @property
    def where(self) -> str:
        """What distinguishes the point in its campaign."""
        return self.label or "the only point"

    @property
    def since(self) -> str:
        """Between which commits the newest level begins; empty without a change."""
        change = self.change
        if self.evidence and self.evidence.counts:
            return f"{self.evidence.base[:_SHORT]}..{self.evidence.new[:_SHORT]}"
        if change is None or change.verdict not in (*CHANGED, CONFOUNDED):
            return ""
        return f"{self.sessions[change.base[-1]].name}..{self.sessions[change.new[0]].name}"


@dataclass(frozen=True)
class History:
    """All lines of a history; ``broken``: files that cannot be read, and why."""

    lines: Sequence[Line]
    sessions: int
    broken: Mapping[str, str]
    baseline: str
    evidence: Sequence[Evidence]

    @property
    def judged(self) -> list[Line]:
        """The lines that have a verdict."""
        return [line for line in self.lines if line.change is not None]


def read_history(settings: HistorySettings) -> History:
    """Read a history and judge every point and metric in it.

    Raises UserError if it is none, or no session is of the named baseline.
    """
    loaded = load(settings.folder, _COLUMNS)
    rows = loaded.rows
    lines = _lines(rows[rows["kind"] != CANARY])
    _check_baseline(lines, settings)
    judged = [_judged(line, settings) for line in lines]
    places = [place for place, line in enumerate(judged) if line.change is not None]
    canaries = _canaries(rows[rows["kind"] == CANARY])
    evidence = load_evidence(settings.folder)
    changes = corrected(line.change for place in places if (line := judged[place]).change)
    for place, change in zip(places, changes, strict=True):
        line = _attributed(replace(judged[place], change=change), canaries)
        judged[place] = _with_evidence(line, evidence)
    sessions = rows["session"].nunique()
    every = [*judged, *speedups(judged)]
    return History(every, sessions, loaded.broken, settings.baseline, evidence)


def _lines(rows: pd.DataFrame) -> list[Line]:
    """The lines of the rows: terms and parts with their shares of the step or profile."""
    rows = rows.reset_index(drop=True)
    heads = ["session", *_SESSION]
    codes = rows.groupby(heads, observed=True, sort=False, dropna=False).ngroup().to_numpy()
    began = rows.groupby("session", observed=True)["started"].min()
    firsts = np.unique(codes, return_index=True)[1]
    facts = [_session(row, began) for row in rows.loc[firsts, heads].to_dict("records")]
    groups: Any = rows.groupby(list(KEY), observed=True, sort=False).indices
    whole = _wholes(rows)
    columns = {name: rows[name].to_numpy() for name in ("value", "run_id")}
    sessions = rows["session"].cat.codes.to_numpy()
    lines = []
    for key, index in groups.items():
        kind = key[len(POINT)]
        order = index[np.argsort(sessions[index], kind="stable")]
        cuts = np.split(order, np.flatnonzero(np.diff(sessions[order])) + 1)
        known = [facts[codes[cut[0]]] for cut in cuts]
        turn = _in_order(known)[-MOST_SESSIONS:]
        totals = [
            whole.get((*key[: len(POINT)], kind, key[-1]), {}).get(known[n].session) for n in turn
        ]
        values = [columns["value"][cuts[n]].astype(float) for n in turn]
        shares = None
        if kind in (TERM, PART) and key[-2] != WHOLE:
            values = [_with_zeros(v, t, kind) for v, t in zip(values, totals, strict=True)]
            shares = np.array([v.mean() / t[1] if t and t[1] > 0 else math.nan
                               for v, t in zip(values, totals, strict=True)])  # fmt: skip
        head = rows.iloc[int(cuts[turn[-1]][0])]
        info = {name: _plain(head[name]) for name in (*KEY, *_INFO)}
        lines.append(Line(
            **info, sessions=[known[n] for n in turn], values=values,
            runs=[columns["run_id"][cuts[n]].tolist() for n in turn],
            estimates=estimates(values), shares=shares,
        ))  # fmt: skip
    return lines


def _plain(value: Any) -> Any:
    """A cell without pandas' types; a missing one is empty text."""
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    return "" if pd.isna(value) else value


def _session(head: Mapping[Any, Any], began: "pd.Series[Any]") -> SessionFacts:
    plain: dict[str, Any] = {name: _plain(value) for name, value in head.items()}
    time = plain["commit_time"]
    plain["commit_time"] = time.to_pydatetime() if time else None
    return SessionFacts(started=began[plain["session"]].to_pydatetime(), **plain)


def _in_order(sessions: Sequence[SessionFacts]) -> list[int]:
    """By time of the commit, if it is known of all, else by start: what was measured late of an old
    commit belongs to that commit."""
    known = all(session.commit_time for session in sessions)
    return sorted(
        range(len(sessions)),
        key=lambda n: (
            sessions[n].commit_time if known else sessions[n].started, sessions[n].started,
        ),
    )  # fmt: skip


def _wholes(rows: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, tuple[int, float]]]:
    """Of each point, kind and phase by session: runs that have terms or parts, and what these add
    up to in a run, on average."""
    made = rows[rows["kind"].isin([TERM, PART]) & (rows["unit"] != "1")]
    term = (made["kind"] == TERM).to_numpy()
    counted = made[~term | (made["metric"] == WHOLE).to_numpy()]
    keys = [*POINT, "kind", "phase", "session"]
    wholes: dict[tuple[Any, ...], dict[str, tuple[int, float]]] = {}
    if counted.empty:
        return wholes
    grouped = counted.groupby(keys, observed=True, sort=False)
    frame = grouped.agg(runs=("run_id", "nunique"), total=("value", "sum"))
    for (*key, session), runs, total in frame.itertuples():
        wholes.setdefault(tuple(key), {})[session] = (int(runs), float(total) / int(runs))
    return wholes


def _with_zeros(values: Floats, total: tuple[int, float] | None, kind: str) -> Floats:
    """A profile lists what took time: a part that a run of a session lacks took none in it. A term
    that is not in all runs is not known."""
    lacking = (total[0] if total else 0) - values.size
    if lacking <= 0:
        return values
    return np.append(values, np.zeros(lacking)) if kind == PART else np.full(values.size, np.nan)


def _check_baseline(lines: Sequence[Line], settings: HistorySettings) -> None:
    sessions = {s.session: s for line in lines for s in line.sessions}
    named = settings.baseline
    if named and not any(session.is_baseline(named) for session in sessions.values()):
        names = dict.fromkeys(s.name for _, s in sorted(sessions.items()) if s.commit)
        known = ", ".join([*names][-5:]) or "none is known"
        raise UserError(
            f"history: baseline {named!r}: no session of this commit or tag in {settings.folder}; "
            f"newest commits: {known}"
        )


def _judged(line: Line, settings: HistorySettings) -> Line:
    """With levels and, of what is judged, a verdict, but for what is corrected over all."""
    if not all(v.min() > 0 for v in line.values):
        change = Change(TOO_EARLY, "a value is not positive") if line.judged else None
        return replace(line, change=change)
    levels = read_levels([np.log(values) for values in line.values])
    line = replace(line, levels=levels, margin=settings.margin_of(line.metric))
    if not line.judged:
        return line
    base = None
    if settings.baseline:
        base = [n for n, s in enumerate(line.sessions) if s.is_baseline(settings.baseline)]
        if not base:
            return replace(line, change=Change(TOO_EARLY, "no session of the baseline"))
    return replace(line, change=judge(levels, line.better, line.margin, base))


_Rates = Mapping[tuple[Any, ...], Mapping[str, Mapping[str, float]]]


def _canaries(rows: pd.DataFrame) -> _Rates:
    """Point -> kind of canary -> session -> mean rate."""
    by_point: dict[tuple[Any, ...], dict[str, dict[str, float]]] = {}
    if rows.empty:
        return by_point
    means = rows.groupby([*POINT, "metric", "session"], observed=True, sort=False)["value"].mean()
    entries: Any = means.items()
    for (*point, kind, session), value in entries:
        by_point.setdefault(tuple(point), {}).setdefault(kind, {})[session] = float(value)
    return by_point


def _attributed(line: Line, canaries: _Rates) -> Line:
    """With what else changed; confounded if something else than the commit did."""
    change = line.change
    assert change is not None
    if change.verdict not in CHANGED:
        return line
    base, new = ([line.sessions[n] for n in side] for side in (change.base, change.new))
    others = [d for d in differences([s.known for s in base], [s.known for s in new]) if d.apart]
    if len({session.hosts for session in base}) == 1:  # on a cluster jobs go where there is room
        hosts = other_hosts(*[[set(s.hosts.split()) for s in side] for side in (base, new)])
        others += [hosts] if hosts else []
    speed = math.log(change.ratio) * (1 if line.better == "higher" else -1)
    for kind, rates in canaries.get(line.point, {}).items():
        old, now = ([rates[s.session] for s in side if s.session in rates] for side in (base, new))
        others += [moved] if (moved := machine_moved(kind, old, now, speed)) else []
    if reason := _confounds(base, new, others):
        change = replace(change, verdict=CONFOUNDED, reason=reason)
    return replace(line, change=change, others=others)


def _confounds(
    base: Sequence[SessionFacts], new: Sequence[SessionFacts], others: Sequence[Difference]
) -> str:
    """Why the commit alone cannot be held to have made a difference; empty if it can."""
    named = ", ".join(map(str, others[:2])) + (f" and {len(others) - 2} more" if others[2:] else "")
    for codes in (
        [{"" if s.dirty else s.commit for s in side} for side in (base, new)],
        [{s.program for s in side} for side in (base, new)],
    ):
        if "" in codes[0] | codes[1]:
            continue
        if codes[0] & codes[1]:
            return f"the program is the same{f', but {named} changed' if named else ''}"
        break
    return f"{named} changed at the same time" if named else ""


def _with_evidence(line: Line, among: Sequence[Evidence]) -> Line:
    """With what commits of both sides have shown, measured alternately, or the newest one."""
    change = line.change
    assert change is not None
    sides = [
        {line.sessions[n].commit for n in side if not line.sessions[n].dirty}
        for side in (change.base, change.new)
    ]
    newest = {line.sessions[-1].commit} - {""} if not line.sessions[-1].dirty else set()
    own = [entry for entry in among if entry.is_of(line)]
    of_step = next((e for e in own if e.base in sides[0] and e.new in sides[1]), None)
    of_newest = next((e for e in own if e.new in newest and e.change.verdict in CHANGED), None)
    evidence = of_step or (of_newest if change.verdict not in (*CHANGED, CONFOUNDED) else None)
    if evidence is None:
        return line
    judged = with_evidence(change, evidence.change)
    counts = judged.ratio == evidence.change.ratio
    return replace(line, change=judged, evidence=replace(evidence, counts=counts))


def speedups(lines: Iterable[Line]) -> list[Line]:
    """Lines of the speedup of each scaling series, against its smallest count in the same session.

    A base that changed from session to session would look like a change of scaling, so it is the
    smallest count of the newest session. ``shares`` are efficiencies.
    """
    groups: dict[tuple[Any, ...], dict[int, Line]] = {}
    for line in sorted(lines, key=lambda line: line.sessions[-1].started):
        if line.kind == METRIC and line.series and line.ideal:
            key = (line.site, line.source, line.benchmark, line.version, line.device, line.metric,
                   line.phase, line.scale, line.ideal, line.series)  # fmt: skip
            groups.setdefault(key, {})[line.workers] = line
    made = []
    for group in groups.values():
        newest = max(line.sessions[-1].started for line in group.values())
        base = min(n for n, line in group.items() if line.sessions[-1].started == newest)
        made += [_speedup(group[base], group[n]) for n in sorted(group) if n > base]
    return [line for line in made if line is not None]


def _speedup(base: Line, line: Line) -> Line | None:
    """The speedup of a point over the base in the sessions that have both."""
    bases = {s.session: v for s, v in zip(base.sessions, base.values, strict=True)}
    places = [n for n, s in enumerate(line.sessions) if s.session in bases]
    factor, scaling = line.workers / base.workers, json.loads(line.series)[0]
    timed = line.ideal == "time"
    # Of a metric that ideally stays the same the ratio is the efficiency.
    scale = factor if line.ideal == "rank" or (timed and scaling == "weak") else 1.0
    ratios = []
    for n in places:
        base_values, values = bases[line.sessions[n].session], line.values[n]
        if timed:
            base_values, values = values, base_values
        ratios.append(welch(base_values, values, "higher"))
    made = scale * np.array([[r.ratio, r.low, r.high] for r in ratios]).reshape(-1, 3).T
    known = np.flatnonzero(np.isfinite(made[0])) if places else np.array([], int)
    if not known.size:
        return None
    kept = [places[n] for n in known]
    return replace(
        line, kind=SPEEDUP, metric=f"speedup of {line.metric}, {line.scale} {base.workers} = 1",
        unit="1", better="higher", main=False, judged=False, change=None, levels=None, others=(),
        evidence=None, sessions=[line.sessions[n] for n in kept], runs=[line.runs[n] for n in kept],
        values=[made[:1, n] for n in known], estimates=made[:, known],
        shares=None if timed and scaling == "none" else made[0, known] / factor,
    )  # fmt: skip
