"""The page of a history made and written, with its tables."""

from collections.abc import Mapping, Sequence

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.analysis.verdicts import REGRESSION
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.files import write_atomic
from scalesweep.history.judged import History, Judged, read_history
from scalesweep.history.page import ranked, render_history

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
    table, stem = verdict_table(history), settings.folder / TABLES / VERDICTS
    write_csv(table, stem.with_suffix(".csv"))
    write_parquet(table, stem.with_suffix(".parquet"), {})
    page = settings.folder / PAGE
    files = [f"./{TABLES}/{VERDICTS}.csv"]
    write_atomic(page, render_history(history, settings.folder, page, files))
    return history


def regressions(history: History) -> list[Judged]:
    """What became worse, the gravest first."""
    return [one for one in ranked(history.series) if one.verdict.kind == REGRESSION]


def verdict_table(history: History) -> pd.DataFrame:
    """A row per point and metric, the gravest verdicts first (docs/history.md has the columns)."""
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
