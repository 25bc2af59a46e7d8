"""A history as a frame, a row per line (metric, term, part, speedup) and session; its verdicts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.config.campaign_keys import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import PHASES, listed
from scalesweep.history.session import WHOLE
from scalesweep.history.store import KEY, PART, POINT, TERM, load, load_alternate
from scalesweep.judge.change import (
    CHANGED,
    CONFOUNDED,
    INCONCLUSIVE,
    NO_CHANGE,
    TOO_EARLY,
    Change,
    corrected,
    moments,
)
from scalesweep.judge.facts import Difference, differences, other_hosts
from scalesweep.judge.over_time import Levels, judge, levels_of, trimmed_means

# What is not of its key a line has as its newest session has it.
_INFO = ["scaling", "workers", "label", "unit", "better", "main", "judged", "low", "high", "share"]
_SESSION = ["session", "commit", "dirty", "commit_time", "subject", "tags", "results", "hosts",
            "launcher", "program", "facts"]  # fmt: skip
_SHORT = 10  # digits of a commit
MOST_SESSIONS = 400  # of a line, the newest ones


@dataclass(frozen=True, eq=False)
class Line:
    """A line that is judged: ``rows`` of its sessions, oldest first, and what they show.

    ``others``: what else changed with a step. ``alternate``: what commits of both sides have shown,
    measured alternately (a row of ``store.VERDICT``), which is where the verdict is from if it
    ``counts``.
    """

    rows: pd.DataFrame
    margin: float
    change: Change
    levels: Levels | None = None
    others: Sequence[Difference] = ()
    alternate: "pd.Series[Any] | None" = None
    counts: bool = False

    @property
    def head(self) -> Any:
        """Its newest row: what distinguishes the line, with unit and direction."""
        return self.rows.iloc[-1]

    @property
    def base(self) -> pd.DataFrame:
        """The sessions of its baseline."""
        return self.rows.iloc[list(self.change.base)]

    @property
    def new(self) -> pd.DataFrame:
        """The sessions of its newest level."""
        return self.rows.iloc[list(self.change.new)]

    @property
    def since(self) -> str:
        """Between which commits the newest level begins; empty without a change."""
        if self.alternate is not None and self.counts:
            return f"{self.alternate['base'][:_SHORT]}..{self.alternate['new'][:_SHORT]}"
        if self.change.verdict not in (*CHANGED, CONFOUNDED):
            return ""
        return f"{self.base['name'].iloc[-1]}..{self.new['name'].iloc[0]}"


@dataclass(frozen=True)
class History:
    """A history as read and judged.

    ``values``: a row per line and session, lines one after the other, oldest first: what
    distinguishes the line, with ``place``, ``where`` and ``title`` in words; its session (``name``:
    the commit in short, ``began``); repeats, mean with its interval, ``share`` (of the step, of all
    parts, or of the ideal speedup) and ``runs``.
    """

    values: pd.DataFrame
    judged: Sequence[Line]
    sessions: int
    baseline: str
    alternate: pd.DataFrame


def read_history(settings: HistorySettings) -> History:
    """Read a history and judge every point and metric in it.

    Raises UserError if it is none, or no session is of the named baseline.
    """
    rows = load(settings.folder, [*_SESSION, *KEY, *_INFO, "run_id", "started", "value"])
    values = _values(rows)
    of_baseline = _is_baseline(values, settings)
    lines = [
        _judged(own, of_baseline, settings)
        for _, own in values.groupby("line", sort=False) if own["judged"].iloc[-1]
    ]  # fmt: skip
    alternate = load_alternate(settings.folder)
    lines = [
        _with_alternate(_attributed(replace(line, change=change)), alternate)
        for line, change in zip(lines, corrected(line.change for line in lines), strict=True)
    ]
    return History(values, lines, int(rows["session"].nunique()), settings.baseline, alternate)


def _values(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per line and session, with the mean of its repeats."""
    began = rows.groupby("session", observed=True)["started"].min()
    rows = rows.assign(line=rows.groupby(KEY, observed=True, sort=False).ngroup())
    cell = ["line", "session"]
    values = rows.drop_duplicates(cell).drop(columns=["value", "started", "run_id"]).astype(
        dict.fromkeys(rows.select_dtypes("category").columns.difference(["run_id"]), object)
    )  # fmt: skip
    values = values.assign(began=values["session"].map(began))
    cells = moments(rows, cell).join(rows.groupby(cell, observed=True)["run_id"].agg(list))
    cells["centre"] = trimmed_means(rows, cell)
    values = values.merge(
        cells.rename(columns={"run_id": "runs"}).reset_index(), on=cell, suffixes=("_stated", "")
    )
    for end in ("low", "high"):
        values[end] = values[end].fillna(values[f"{end}_stated"])
    # By time of the commit, if it is known of all, else by start: what was measured late of an old
    # commit belongs to that commit.
    dated = values["commit_time"].notna().groupby(values["line"]).transform("all")
    values["when"] = values["commit_time"].where(dated, values["began"])
    values = values.sort_values(["line", "when", "began"]).groupby("line").tail(MOST_SESSIONS)
    text = values.select_dtypes(object).columns.difference(["runs"])
    values = values.assign(**{name: values[name].fillna("") for name in text})
    values["name"] = (values["commit"].str[:_SHORT] + np.where(values["dirty"], "+", "")).where(
        values["commit"] != "",
        ("program " + values["program"]).where(
            values["program"] != "", values["began"].dt.strftime("%Y-%m-%d %H:%M")
        ),
    )
    phase = values["phase"].where(values["phase"].isin(["init", "later"]))
    values["title"] = values["metric"] + (", " + phase.map(PHASES)).fillna("")
    values["where"] = values["label"].replace("", "the only point")
    source = (" (" + values["source"] + ")").mask(values["source"] == "measured", "")
    scaling = (", " + values["scaling"] + " scaling").mask(values["scaling"] == "none", "")
    device = (", " + values["device"].str.upper()).mask(values["device"] == "", "")
    values["place"] = values["benchmark"] + " on " + values["site"] + source + device + scaling
    return _with_shares(values)


def _with_shares(values: pd.DataFrame) -> pd.DataFrame:
    """With the share of terms in the step, and of parts in all of a profile.

    A profile lists what took time: a part that a run of a session lacks took none in it. A term
    that is not in all runs is not known.
    """
    part = (values["kind"] == PART) & (values["unit"] != "1")
    of = values[part | (values["kind"] == TERM)]
    by = [of[name] for name in (*POINT, "kind", "phase", "session")]
    runs = of["repeats"].groupby(by).transform("max")
    lacking, part, whole = of["repeats"] < runs, of["kind"] == PART, of["metric"] == WHOLE
    mean = of["mean"].where(~lacking, (of["mean"] * of["repeats"] / runs).where(part))
    total = mean.where(part | whole).groupby(by).transform("sum")
    values.loc[of.index, "mean"] = mean
    values.loc[of.index[lacking], ["low", "high"]] = np.nan
    values.loc[of.index, "share"] = (mean / total).where(~whole & (total > 0))
    return values


def _is_baseline(values: pd.DataFrame, settings: HistorySettings) -> "pd.Series[bool]":
    """Which rows are of the named commit (four digits or more) or tag. Raises UserError."""
    named = settings.baseline
    of = values["tags"].str.split().map(lambda tags: named in tags)
    if len(named) >= 4:
        of |= values["commit"].str.startswith(named.lower())
    if named and not of.any():
        newest = listed([*dict.fromkeys(values.sort_values("began")["name"])][::-1])
        where = f"history: baseline {named!r}: no session of this commit or tag in"
        raise UserError(f"{where} {settings.folder}; the newest: {newest}")
    return of


def _judged(rows: pd.DataFrame, of_baseline: "pd.Series[bool]", settings: HistorySettings) -> Line:
    """A line with its verdict, but for what is corrected over all."""
    head = rows.iloc[-1]
    margin = settings.margin
    if not rows["least"].gt(0).all():
        return Line(rows, margin, Change(TOO_EARLY, "a value is not positive"))
    levels, base = levels_of(rows["centre"].to_numpy()), None
    if settings.baseline:
        base = np.flatnonzero(of_baseline[rows.index]).tolist()
        if not base:
            return Line(rows, margin, Change(TOO_EARLY, "no session of the baseline"), levels)
    return Line(rows, margin, judge(levels, head["better"], margin, base), levels)


def _attributed(line: Line) -> Line:
    """With what else changed; confounded if something else than the commit did."""
    change = line.change
    if change.verdict not in CHANGED:
        return line
    base, new = line.base, line.new
    others = [d for d in differences(facts_of(base), facts_of(new)) if d.apart]
    hosts = [[set(text.split()) for text in side["hosts"]] for side in (base, new)]
    if base["hosts"].nunique() == 1:  # on a cluster jobs go where there is room
        others += [moved] if (moved := other_hosts(*hosts)) else []
    if reason := _confounds(base, new, others):
        change = replace(change, verdict=CONFOUNDED, reason=reason)
    return replace(line, change=change, others=others)


def facts_of(sessions: pd.DataFrame) -> list[dict[str, str]]:
    """The recorded facts of some sessions, with the launcher."""
    return [
        (json.loads(facts) if facts else {}) | ({"launcher": launcher} if launcher else {})
        for facts, launcher in zip(sessions["facts"], sessions["launcher"], strict=True)
    ]


def _confounds(base: pd.DataFrame, new: pd.DataFrame, others: Sequence[Difference]) -> str:
    """Why the commit alone cannot be held to have made a difference; empty if it can."""
    named = ", ".join(map(str, others[:2])) + (f" and {len(others) - 2} more" if others[2:] else "")
    for codes in (
        [set(side["commit"].mask(side["dirty"].astype(bool), "")) for side in (base, new)],
        [set(side["program"]) for side in (base, new)],
    ):
        if "" in codes[0] | codes[1]:
            continue
        if codes[0] & codes[1]:
            return f"the program is the same{f', but {named} changed' if named else ''}"
        break
    return f"{named} changed at the same time" if named else ""


def _with_alternate(line: Line, among: pd.DataFrame) -> Line:
    """With what commits of both sides have shown, measured alternately, or the newest one.

    Sessions differ in more than their commits, alternate runs do not: what these show counts. A
    change that they do not show is confounded. One that they show no longer is. What was open gets
    their ratio.
    """
    change = line.change
    base, new, newest = (
        set(side["commit"].mask(side["dirty"].astype(bool), "")) - {""}
        for side in (line.base, line.new, line.rows.tail(1))
    )
    own = among[(among[KEY] == line.head[KEY]).all(axis=1)]
    chosen = own[own["base"].isin(base) & own["new"].isin(new)]
    changed = change.verdict in (*CHANGED, CONFOUNDED)
    if chosen.empty and not changed:
        chosen = own[own["new"].isin(newest) & own["verdict"].isin(CHANGED)]
    if chosen.empty:
        return line
    shown = chosen.iloc[0]
    verdict, counts = shown["verdict"], False
    if changed and verdict == NO_CHANGE:
        why = "the commits measured alternately show no change"
        change = replace(change, verdict=CONFOUNDED, reason=why)
    elif changed and verdict in CHANGED and (shown["ratio"] > 1) == (change.ratio > 1):
        change = replace(change, verdict=verdict, reason="")
    elif not changed and (
        verdict in CHANGED or (change.verdict, verdict) == (INCONCLUSIVE, NO_CHANGE)
    ):
        counts = True
        change = replace(
            change, verdict=verdict, reason="", needed=None, ratio=float(shown["ratio"]),
            low=float(shown["low"]), high=float(shown["high"]),
        )  # fmt: skip
    return replace(line, change=change, alternate=shown, counts=counts)
