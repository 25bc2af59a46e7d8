"""What a history's page shows beside the series: components of points, and speedup; as tables."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import finite
from scalesweep.history.components import PointComponents
from scalesweep.history.judged import History, Judged
from scalesweep.history.series_head import POINT
from scalesweep.history.session_facts import MOST_SESSIONS, SessionFacts
from scalesweep.history.speedups import Speedup, speedups_of

MOST_VALUES = 100_000  # of a page, of components and of speedups: more would make it slow to open
_HEAD = ("site", "source", "benchmark", "version", "device", "scaling")
_COMPONENTS = (
    *_HEAD, "label", "workers", "session", "commit", "started", "kind", "component", "unit",
    "mean", "low", "high", "share", "share_low", "share_high",
)  # fmt: skip
_SPEEDUPS = (
    *_HEAD, "points", "metric", "phase", "scale", "base", "workers", "session", "commit",
    "started", "speedup", "low", "high", "efficiency",
)  # fmt: skip


@dataclass(frozen=True)
class Views:
    """Components of points and speedups, each with the series that it is drawn with.

    ``left_out``: how many points and speedups are more than a page holds.
    """

    points: Sequence[tuple[Judged, PointComponents]]
    speedups: Sequence[Speedup]
    left_out: int


def views_of(history: History, order: Sequence[Judged]) -> Views:
    """The components and speedups of the gravest series, as many as a page holds.

    ``order``: the history's series, the gravest first.
    """
    points: list[tuple[Judged, PointComponents]] = []
    left_out, left = 0, MOST_VALUES
    # A point is drawn where its main metric is.
    for series in _first_of_points(order):
        if left <= 0:
            left_out += 1
        elif history.components is not None and (parts := history.components.of(_point(series))):
            parts = parts.newest(MOST_SESSIONS)
            points.append((series, parts))
            left -= 6 * len(parts.sessions) * len(parts.components)
    speedups: list[Speedup] = []
    left = MOST_VALUES
    for speedup in speedups_of(order):
        if left > 0:
            speedups.append(speedup)
            left -= 3 * len(speedup.sessions) * len(speedup.counts)
        else:
            left_out += 1
    return Views(points, speedups, left_out)


def _first_of_points(order: Iterable[Judged]) -> Iterator[Judged]:
    """Of each point its main metric's series, or the gravest where it has none."""
    chosen: dict[tuple[Any, ...], Judged] = {}
    for series in order:
        key = _point(series)
        if key not in chosen or (series.main and not chosen[key].main):
            chosen[key] = series
    return iter(chosen.values())


def _point(series: Judged) -> tuple[Any, ...]:
    return tuple(getattr(series, name) for name in POINT)


def component_table(views: Views) -> pd.DataFrame:
    """A row per point, session and component of the page's charts."""
    rows = []
    for series, parts in views.points:
        for component in parts.components:
            for place, session in enumerate(parts.sessions):
                if not finite(component.values[0, place]):
                    continue
                shares = component.shares[:, place].tolist() if component.shares is not None else []
                rows.append(
                    [
                        *(getattr(series, name) for name in (*_HEAD, "label", "workers")),
                        *_session(session), component.kind, component.title, component.unit,
                        *_known(component.values[:, place].tolist()),
                        *_known(shares or [math.nan] * 3),
                    ]
                )  # fmt: skip
    return _table(_COMPONENTS, rows)


def speedup_table(views: Views) -> pd.DataFrame:
    """A row per scaling series, metric, count and session of the page's charts."""
    rows = []
    for speedup in views.speedups:
        series = speedup.main
        head = [getattr(series, name) for name in _HEAD]
        head += [speedup.title, series.metric, series.phase, speedup.scale, speedup.base]
        for count, ideal, values in zip(
            speedup.counts, speedup.ideals, speedup.values, strict=True
        ):
            for place, session in enumerate(speedup.sessions):
                mean, *ends = values[:, place].tolist()
                if finite(mean):
                    efficiency = mean / ideal if ideal else None
                    rows.append(
                        [*head, count, *_session(session), *_known([mean, *ends]), efficiency]
                    )
    return _table(_SPEEDUPS, rows)


def _session(session: SessionFacts) -> tuple[str, str, str]:
    return session.session, session.commit, session.started.isoformat()


def _known(values: Iterable[float]) -> list[float | None]:
    return [value if finite(value) else None for value in values]


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return pd.DataFrame(
        {name: typed_values([*column]) for name, column in zip(names, columns, strict=True)}
    )


def component_data(
    series: Judged, parts: PointComponents, places: Sequence[int]
) -> Mapping[str, Any]:
    """What the chart of a point's components needs (resources/history_several.js).

    ``places``: of its sessions in the page.
    """
    base = {series.sessions[place].session for place in series.verdict.base}
    return {
        "title": series.point,
        "sessions": places,
        "base": [n for n, session in enumerate(parts.sessions) if session.session in base],
        "components": [
            {
                "title": component.title, "kind": component.kind, "unit": component.unit,
                "better": component.better, "main": component.main,
                **_arrays(("mean", "low", "high"), component.values),
                **_arrays(("share", "shareLow", "shareHigh"), component.shares),
            }
            for component in parts.components
        ],
    }  # fmt: skip


def speedup_data(speedup: Speedup, places: Sequence[int]) -> Mapping[str, Any]:
    """What the chart of a scaling series needs."""
    series = speedup.main
    phase = "" if series.phase == "run" else f", {series.phase}"
    return {
        "title": ": ".join(filter(None, (speedup.title, f"{series.metric}{phase}"))),
        "scale": speedup.scale,
        "base": speedup.base,
        "sessions": places,
        "counts": [
            {"count": count, "ideal": ideal, **_arrays(("mean", "low", "high"), values)}
            for count, ideal, values in zip(
                speedup.counts, speedup.ideals, speedup.values, strict=True
            )
        ],
    }


def _arrays(names: Sequence[str], values: Floats | None) -> dict[str, list[float | None]]:
    """Arrays by name, those without a number left out but for the first."""
    if values is None:
        return {}
    return {
        name: [float(f"{value:.5g}") if finite(value) else None for value in row.tolist()]
        for place, (name, row) in enumerate(zip(names, values, strict=True))
        if place == 0 or any(map(finite, row.tolist()))
    }
