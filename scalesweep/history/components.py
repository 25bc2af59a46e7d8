"""What a point is made of over its sessions: metrics, terms of its step, parts of its profiles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from scalesweep.analysis.stats import mean_bounds
from scalesweep.analysis.step_account import FINEST, STEP_WORDS, TERMS
from scalesweep.analysis.types import Floats
from scalesweep.history.series_head import POINT
from scalesweep.history.session_facts import SessionFacts, in_order, session_frame
from scalesweep.history.store import LEDGER, METRIC, PART

ELAPSED = "elapsed"  # of a ledger: what its terms add up to
# Terms that are never more of a step than this are left out.
_NOTABLE = 1e-3
_RUN = ["session", "run_id", "started"]


@dataclass(frozen=True)
class Component:
    """A metric, a term of the step or a part of a profile over the sessions of a point.

    ``values``, ``shares``: ``[3, session]``, mean over the repeats and the ends of its 95 %
    interval; NaN where a session does not show it, or one repeat leaves an interval open.
    ``shares``: of the step or of all parts; None for a metric.
    """

    name: str
    title: str
    kind: str
    unit: str
    better: str
    main: bool
    values: Floats
    shares: Floats | None


@dataclass(frozen=True)
class PointComponents:
    """The components of a point over its sessions, in their order."""

    sessions: Sequence[SessionFacts]
    components: Sequence[Component]

    def newest(self, most: int) -> "PointComponents":
        """With the newest sessions only, and the components that these have."""
        first = max(0, len(self.sessions) - most)
        cut = [
            replace(
                component,
                values=component.values[:, first:],
                shares=None if component.shares is None else component.shares[:, first:],
            )
            for component in self.components
        ]
        kept = [component for component in cut if np.isfinite(component.values[0]).any()]
        return PointComponents(self.sessions[first:], kept)


class Components:
    """The components of a history's points in some of its sessions."""

    def __init__(self, rows: pa.Table, sessions: set[str]) -> None:
        """``rows``: of the whole history, with the columns ``ROW`` and ``judged``; ``sessions``:
        those that are looked at, by id."""
        wanted = _has(rows["session"], sessions)
        kinds = _has(rows["kind"], {LEDGER, PART})
        judged = _has(rows["kind"], {METRIC}) & rows["judged"].to_numpy()
        self._frame, self._facts = session_frame(rows.filter(pa.array(wanted & (kinds | judged))))
        made = self._frame["kind"].isin([LEDGER, PART]).to_numpy()
        groups = self._frame.groupby([*POINT], sort=False, observed=True).indices
        # Of metrics alone the chart of one series says more.
        self._rows = {key: rows for key, rows in groups.items() if made[rows].any()}

    def of(self, point: tuple[Any, ...]) -> PointComponents | None:
        """The components of a point (``POINT``); None where it has metrics only."""
        if point not in self._rows:
            return None
        frame = self._frame.iloc[self._rows[point]]
        codes, first = np.unique(frame["session"].cat.codes.to_numpy(), return_index=True)
        infos = [self._facts[place] for place in frame["_facts"].to_numpy()[first]]
        turn = in_order(infos)
        place_of = {code: turn.index(place) for place, code in enumerate(codes.tolist())}
        frame = frame.assign(
            _place=frame["session"].cat.codes.map(place_of).to_numpy(),
            _run=frame.groupby(_RUN, observed=True, sort=False).ngroup().to_numpy(),
        )
        size = len(infos)
        components = [*_metrics(frame, size), *_terms(frame, size), *_parts(frame, size)]
        return PointComponents([infos[place] for place in turn], components)


def _has(column: pa.ChunkedArray, texts: set[str]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Whether each text of a dictionary column is one of some."""
    coded = column.combine_chunks()
    known = np.array([text in texts for text in coded.dictionary.to_pylist()], dtype=bool)
    if not known.size:
        return np.zeros(len(column), dtype=bool)
    places: np.ndarray[Any, np.dtype[np.bool_]] = known[coded.indices.to_numpy()]
    return places


def estimates(groups: Sequence[Floats]) -> Floats:
    """``[3, group]``: mean of each group and the ends of its 95 % interval, NaN for what is not
    known."""
    made = np.full((3, len(groups)), np.nan)
    sizes = np.array([group.size for group in groups])
    for size in np.unique(sizes[sizes > 0]).tolist():
        places = np.flatnonzero(sizes == size)
        values = np.stack([groups[place] for place in places])
        made[0, places] = values.mean(axis=1)
        made[1:, places] = mean_bounds(values).T
    return made


def _by_session(places: Any, values: Floats, size: int) -> Floats:
    return estimates([values[places == place] for place in range(size)])


def _metrics(frame: pd.DataFrame, size: int) -> list[Component]:
    components = []
    metrics = frame[frame["kind"] == METRIC]
    for (name, phase), part in metrics.groupby(["metric", "phase"], observed=True, sort=False):
        last = part.iloc[-1]
        values = _by_session(part["_place"].to_numpy(), part["value"].to_numpy(), size)
        title = str(name) if phase == "run" else f"{name}, {phase}"
        main, unit, better = bool(part["main"].any()), str(last["unit"]), str(last["better"])
        components.append(Component(str(name), title, METRIC, unit, better, main, values, None))
    return sorted(components, key=lambda component: not component.main)


def _wide(part: pd.DataFrame) -> tuple[pd.DataFrame, "np.ndarray[Any, np.dtype[Any]]"]:
    """A row for each run, a column for each component; and the places of the runs' sessions."""
    table = part.pivot_table(index="_run", columns="metric", values="value", observed=True)
    places = part.groupby("_run")["_place"].first().loc[table.index].to_numpy()
    return table, places


def _terms(frame: pd.DataFrame, size: int) -> list[Component]:
    """Terms of the step, each form of account for itself: a term of a step and one of an epoch are
    different quantities. A term that is not in all runs of a session is not shown of it."""
    ledger = frame[frame["kind"] == LEDGER]
    forms = [form for form in FINEST if (ledger["phase"] == form).any()]
    components = []
    for form in forms:
        table, places = _wide(ledger[ledger["phase"] == form])
        if ELAPSED not in table:
            continue
        whole = table[ELAPSED].to_numpy()
        for name in [*TERMS, ELAPSED]:
            if name not in table:
                continue
            values = _whole_sessions(table[name].to_numpy(), places)
            known = np.isfinite(values) & (whole > 0)
            shares = _by_session(places[known], values[known] / whole[known], size)
            if np.nan_to_num(np.abs(shares[0])).max(initial=0.0) < _NOTABLE:
                continue
            title = f"one {STEP_WORDS[form]}" if name == ELAPSED else TERMS[name]
            title += f" (by {STEP_WORDS[form]})" if len(forms) > 1 and name != ELAPSED else ""
            times = _by_session(places[known], values[known], size)
            of = None if name == ELAPSED else shares
            components.append(Component(name, title, LEDGER, "ms", "lower", False, times, of))
    return components


def _whole_sessions(values: Floats, places: "np.ndarray[Any, np.dtype[Any]]") -> Floats:
    """Without the values of sessions in which a run has none."""
    broken = np.unique(places[~np.isfinite(values)])
    return np.where(np.isin(places, broken), np.nan, values)


def _parts(frame: pd.DataFrame, size: int) -> list[Component]:
    """Parts of profiles, each tool for itself. A profile lists what took time: within a session a
    part that a run lacks took none in it. Of a session none of whose runs has it nothing is shown:
    its functions may have another name there, or the patterns another part for them.

    Shares are those that a tool states (rows of unit 1), else of the sum of all parts.
    """
    rows = frame[frame["kind"] == PART]
    stated = (rows["unit"] == "1").to_numpy()
    times, shares = rows[~stated], rows[stated]
    components = []
    tools = times["phase"].unique().tolist()
    # Terms have names such as computation too.
    several = len(tools) > 1 or bool((frame["kind"] == LEDGER).any())
    for tool in tools:
        of_tool = times[times["phase"] == tool]
        table, places = _wide(of_tool)
        whole = table.sum(axis=1).to_numpy()
        share_table, share_places = _wide(shares[shares["phase"] == tool])
        for name in table.columns:
            values, there = _with_zeros(table[name].to_numpy(), places)
            if name in share_table:
                parts, known = _with_zeros(share_table[name].to_numpy(), share_places)
                of = _by_session(share_places[known], parts[known], size)
            else:
                timed = there & (whole > 0)
                of = _by_session(places[timed], values[timed] / whole[timed], size)
            # An interval of what cannot be below 0, nor a share above 1.
            seconds = np.maximum(_by_session(places[there], values[there], size), 0.0)
            title = f"{name} ({tool})" if several else str(name)
            unit, of = str(of_tool["unit"].iloc[-1]), np.clip(of, 0.0, 1.0)
            components.append(Component(str(name), title, PART, unit, "lower", False, seconds, of))
    return sorted(components, key=_largest, reverse=True)


def _with_zeros(
    values: Floats, places: "np.ndarray[Any, np.dtype[Any]]"
) -> tuple[Floats, "np.ndarray[Any, np.dtype[np.bool_]]"]:
    """The values of runs, 0 for one that lacks it, and whether any run of its session has it."""
    return np.nan_to_num(values), np.isin(places, np.unique(places[np.isfinite(values)]))


def _largest(component: Component) -> float:
    """The largest share of any session."""
    shares = component.shares
    return 0.0 if shares is None else float(np.nan_to_num(shares[0]).max(initial=0.0))
