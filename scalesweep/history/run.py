"""The page of a history made and written, with its tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.analysis.verdicts import REGRESSION, worse
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.files import write_atomic
from scalesweep.history.judged import History, Judged, read_history
from scalesweep.history.page import ranked, render_history
from scalesweep.history.series_head import KEY
from scalesweep.history.settled import Commit, Settled, SettledPoint
from scalesweep.history.views import component_table, speedup_table, views_of
from scalesweep.state.results_folder import claim_folder

PAGE, TABLES = "history.html", "tables"
_NAMES = (
    *("site", "source", "benchmark", "version", "device", "scaling", "label", "workers"),
    *("metric", "phase", "unit", "better", "main", "margin"),
)
_OF_VERDICT = ("kind", "reason", "ratio", "low", "high", "p", "adjusted", "sessions", "repeats")


def write_history(settings: HistorySettings) -> History:
    """Read a history, judge it, and write ``history.html`` and ``tables/`` into its folder.

    Raises UserError if there is none, or it cannot be read.
    """
    history = read_history(settings.folder, settings)
    claim_folder(settings.folder, "history")
    views = views_of(history, ranked(history.series))
    tables = {
        "verdicts": verdict_table(history),
        "components": component_table(views),
        "speedups": speedup_table(views),
    }
    for name, table in tables.items():
        write_csv(table, settings.folder / TABLES / f"{name}.csv")
        write_parquet(table, settings.folder / TABLES / f"{name}.parquet", {})
    page = settings.folder / PAGE
    files = [f"./{TABLES}/{name}.csv" for name in tables]
    write_atomic(page, render_history(history, views, settings.folder, page, files))
    return history


def regressions(history: History) -> list[Judged]:
    """What became worse, by a step or steadily, the gravest first."""
    return [series for series in ranked(history.series) if worse(series.verdict, series.better)]


def settled_regressions(history: History) -> list[tuple[Settled, SettledPoint]]:
    """What became worse by commits that were measured alternately and that no session has yet.

    Of each point the newest measurement counts, until a session is of its commit or a later one:
    then the verdict of the series does.
    """
    series = {tuple(getattr(judged, name) for name in KEY): judged for judged in history.series}
    seen: set[tuple[object, ...]] = set()
    worsened = []
    for outcome in history.settled:
        for point in outcome.points:
            key = tuple(getattr(point, name) for name in KEY)
            if key in seen:
                continue
            seen.add(key)
            if point.kind == REGRESSION and not _overtaken(outcome.new, series.get(key)):
                worsened.append((outcome, point))
    return worsened


def _overtaken(new: Commit, series: Judged | None) -> bool:
    """Whether a session is of a commit or of a later one."""
    if series is None:
        return False
    time = datetime.fromisoformat(new.time) if new.time else None
    return any(
        session.commit == new.commit
        or (time is not None and session.commit_time is not None and session.commit_time > time)
        for session in series.sessions
    )


def verdict_table(history: History) -> pd.DataFrame:
    """A row per point and metric, the gravest verdicts first (columns: docs/guide/history.md)."""
    rows = [_row(series) for series in ranked(history.series)]
    names = rows[0] if rows else {}
    return pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in names})


def _row(series: Judged) -> Mapping[str, object]:
    verdict, shown = series.verdict, series.shown
    named = {"kind": "verdict", "sessions": "sessions_needed", "repeats": "repeats_needed"}
    row: dict[str, object] = {name: getattr(series, name) for name in _NAMES}
    row |= {named.get(name, name): getattr(verdict, name) for name in _OF_VERDICT}
    return row | {
        "sessions": len(series.sessions),
        "noise_repeats": shown.within if shown else None,
        "noise_sessions": shown.between if shown else None,
        "base": _names(series, verdict.base),
        "new": _names(series, verdict.new),
        "first": series.along.first,
        "last": series.along.last,
        "settled": series.evidence.point.kind if series.evidence else None,
        "settled_ratio": series.evidence.point.ratio if series.evidence else None,
    }


def _names(series: Judged, places: Sequence[int]) -> str:
    return " ".join(series.sessions[place].name for place in places)
