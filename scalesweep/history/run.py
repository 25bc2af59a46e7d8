"""The page of a history made and written, with its tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.analysis.verdicts import REGRESSION, worse
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.own_files import publish
from scalesweep.history.judged import History, Judged, read_history
from scalesweep.history.page import ranked, render_history
from scalesweep.history.series_head import KEY
from scalesweep.history.settled import Commit, Settled, SettledPoint
from scalesweep.planning.results_folder import claim_folder

PAGE, TABLES, VERDICTS = "history.html", "tables", "verdicts"
_NAMES = (
    *("site", "source", "benchmark", "version", "device", "scaling", "label", "workers"),
    *("metric", "phase", "unit", "better", "main", "margin"),
)
_OF_VERDICT = ("kind", "reason", "ratio", "low", "high", "p", "adjusted", "sessions", "repeats")


def write_history(settings: HistorySettings) -> History:
    """Read a history, judge it, and write ``history.html`` and ``tables/verdicts`` into its folder.

    Raises UserError if there is none, or it cannot be read.
    """
    history = read_history(settings.folder, settings)
    claim_folder(settings.folder, "history")
    table, stem = verdict_table(history), settings.folder / TABLES / VERDICTS
    write_csv(table, stem.with_suffix(".csv"))
    write_parquet(table, stem.with_suffix(".parquet"), {})
    page = settings.folder / PAGE
    files = [f"./{TABLES}/{VERDICTS}.csv"]
    publish(page, render_history(history, settings.folder, page, files))
    return history


def regressions(history: History) -> list[Judged]:
    """What became worse, by a step or steadily, the gravest first."""
    return [one for one in ranked(history.series) if worse(one.verdict, one.better)]


def settled_regressions(history: History) -> list[tuple[Settled, SettledPoint]]:
    """What became worse by commits that were measured alternately and that no session has yet.

    Of each point the newest measurement counts, until a session is of its commit or a later one:
    then the verdict of the series does.
    """
    series = {tuple(getattr(one, name) for name in KEY): one for one in history.series}
    seen: set[tuple[object, ...]] = set()
    found = []
    for one in history.settled:
        for point in one.points:
            key = tuple(getattr(point, name) for name in KEY)
            if key in seen:
                continue
            seen.add(key)
            if point.kind == REGRESSION and not _overtaken(one.new, series.get(key)):
                found.append((one, point))
    return found


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
    rows = [_row(one) for one in ranked(history.series)]
    names = rows[0] if rows else {}
    return pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in names})


def _row(one: Judged) -> Mapping[str, object]:
    verdict, shown = one.verdict, one.shown
    named = {"kind": "verdict", "sessions": "sessions_needed", "repeats": "repeats_needed"}
    row: dict[str, object] = {name: getattr(one, name) for name in _NAMES}
    row |= {named.get(name, name): getattr(verdict, name) for name in _OF_VERDICT}
    return row | {
        "sessions": len(one.sessions),
        "noise_repeats": shown.within if shown else None,
        "noise_sessions": shown.between if shown else None,
        "base": _names(one, verdict.base),
        "new": _names(one, verdict.new),
        "first": one.along.first,
        "last": one.along.last,
        "settled": one.evidence.point.kind if one.evidence else None,
        "settled_ratio": one.evidence.point.ratio if one.evidence else None,
    }


def _names(one: Judged, places: Sequence[int]) -> str:
    return " ".join(one.sessions[place].name for place in places)
