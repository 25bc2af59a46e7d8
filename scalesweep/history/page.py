"""The page of a history: verdicts first, then every point, its series, and the sessions."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from scalesweep.analysis.levels import LEAST_LEVEL, SPIKE
from scalesweep.analysis.verdicts import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    LEAST_SESSIONS,
    REGRESSION,
    STABLE,
    TREND,
    VERDICTS,
    WINDOWS,
)
from scalesweep.core.formatting import finite, number, percent
from scalesweep.experiment.cells import Text, headings, number_cell, table
from scalesweep.figures.missing import Failed, tried
from scalesweep.history.chart_data import chart_data
from scalesweep.history.figure import draw_series
from scalesweep.history.judged import History, Judged
from scalesweep.history.session_facts import SessionFacts
from scalesweep.history.settled import Settled
from scalesweep.history.speedups import Speedup
from scalesweep.history.views import Views
from scalesweep.history.words import (
    change_of,
    ledger_words,
    place_of,
    range_of,
    sentence_of,
    settled_change,
    title_of,
)
from scalesweep.report.html_assets import assets, render
from scalesweep.report.links import Links

TEMPLATE = "history.html.j2"
SCRIPTS = ("tables.js", "compare.js", "charts.js", "history_several.js", "history.js")
# What one page may hold; the rest is in the CSV files.
MAX_SENTENCES, MAX_ROWS, MAX_FIGURES, MAX_SESSIONS, MAX_SETTLED = 60, 2000, 24, 1000, 500
MAX_SPEEDUPS = 60  # of a place
CHANGES = (REGRESSION, TREND, CONFOUNDED, IMPROVEMENT)
_LEVELS = {REGRESSION: "warning", TREND: "warning", CONFOUNDED: "open", IMPROVEMENT: "confirmed"}
_KINDS = {REGRESSION: "bad", IMPROVEMENT: "good"}


def ranked(series: Iterable[Judged]) -> list[Judged]:
    """By verdict, the gravest first; main metrics before others, large changes before small."""
    return sorted(
        series,
        key=lambda series: (
            VERDICTS.index(series.verdict.kind),
            not series.main,
            -abs(math.log(series.verdict.ratio)) if finite(series.verdict.ratio) else 0.0,
        ),
    )


def render_history(
    history: History, views: Views, folder: Path, out: Path, files: Sequence[str]
) -> str:
    """The page as HTML, to be written to ``out``; everything from sessions is escaped.

    ``views``: its components and speedups; ``files``: relative addresses of the tables.
    """
    order = ranked(history.series)
    changed = [series for series in order if series.verdict.kind in CHANGES]
    groups: dict[str, list[Judged]] = {}
    for series in order:
        groups.setdefault(place_of(series), []).append(series)
    figures = _figures(order)
    share = max(30, MAX_ROWS // max(len(groups), 1))
    sessions = _sessions(history.series)
    links = Links(out)
    charts = {f"g{place}": group for place, group in enumerate(groups.values(), 1)}
    data = chart_data(charts, views, links)
    context = {
        "folder": str(folder),
        "history": history,
        "spans": [min(s.started for s in sessions), max(s.started for s in sessions)]
        if sessions
        else [],
        "points": len({(o.site, o.benchmark, o.version, o.identity) for o in order}),
        "changed": [_finding(series) for series in changed[:MAX_SENTENCES]],
        "more_changed": max(len(changed) - MAX_SENTENCES, 0),
        "open": [sentence_of(o) for o in order if o.verdict.kind == INCONCLUSIVE][:MAX_SENTENCES],
        "counts": _counts(groups),
        "groups": [
            {
                "name": name,
                "table": _series_table(name, group, share),
                "chart": chart if data["groups"][chart] else "",
                "figures": [figures[id(series)] for series in group if id(series) in figures],
                "speedups": _speedup_table(
                    name, [s for s in views.speedups if any(s.main is series for series in group)]
                ),
                "left_out": sum(series.shown is not None for series in group)
                - len(data["groups"][chart]),
            }
            for (name, group), chart in zip(groups.items(), charts, strict=True)
        ],
        "data": data,
        "views_left_out": views.left_out,
        "settled": _settled_table(history.settled),
        "sessions": _session_table(sessions, links),
        "judged": sum(finite(series.verdict.p) for series in order),
        "rules": {
            "least": LEAST_SESSIONS, "stable": STABLE, "window": max(WINDOWS), "spike": SPIKE,
            "level": LEAST_LEVEL,
        },
        "files": files,
        "assets": assets(SCRIPTS),
    }  # fmt: skip
    return render(TEMPLATE, context, {"day": lambda moment: f"{moment:%Y-%m-%d %H:%M}"})


def _finding(series: Judged) -> dict[str, Any]:
    terms = ledger_words(series.ledger)
    rows = [[Text(term), *(Text(cell, None, "num") for cell in cells)] for term, *cells in terms]
    head = headings("Term", "Base, ms", "New, ms", "Difference, ms",
                    numbers=("Base, ms", "New, ms", "Difference, ms"))  # fmt: skip
    return {
        "tag": series.verdict.kind,
        "level": _LEVELS[series.verdict.kind],
        "text": sentence_of(series),
        "ledger": table("Where the time of a step goes, before and after", head, rows)
        if terms
        else None,
    }


def _counts(groups: dict[str, list[Judged]]) -> dict[str, Any]:
    """Verdicts by place."""
    words = [verdict.capitalize() for verdict in VERDICTS]
    head = headings("Where", "Points and metrics", *words, numbers=["Points and metrics", *words])
    rows = []
    for name, group in groups.items():
        count = Counter(series.verdict.kind for series in group)
        cells = [number_cell(len(group), str(len(group)))]
        cells += [number_cell(count[verdict], str(count[verdict])) for verdict in VERDICTS]
        rows.append([Text(name), *cells])
    return table("Verdicts by benchmark and site", head, rows)


def _series_table(name: str, group: Sequence[Judged], limit: int) -> dict[str, Any]:
    """Every point and metric of a place."""
    numbers = ("Change", "Margin", "p, corrected", "Sessions", "Noise, repeats", "Noise, sessions")
    head = headings(
        "Point", "Metric", "Verdict", "Change", "Since", "Margin", "p, corrected", "Sessions",
        "Noise, repeats", "Noise, sessions", numbers=numbers,
    )  # fmt: skip
    rows = []
    for series in group[:limit]:
        verdict, shown = series.verdict, series.shown
        noise = [shown.within, shown.between] if shown else [math.nan, math.nan]
        rows.append(
            [
                Text(series.point),
                Text(title_of(series)),
                Text(verdict.kind, str(VERDICTS.index(verdict.kind)), _KINDS.get(verdict.kind, "")),
                number_cell(verdict.ratio, change_of(series)),
                Text(range_of(series) or "–"),
                number_cell(series.margin, percent(series.margin)),
                number_cell(verdict.adjusted, _p(verdict.adjusted)),
                number_cell(len(series.sessions), str(len(series.sessions))),
                *(number_cell(value, percent(value)) for value in noise),
            ]
        )
    return table(f"Points of {name}", head, rows, len(group), ("row", "tables/verdicts.csv"))


def _speedup_table(name: str, speedups: Sequence[Speedup]) -> dict[str, Any]:
    """Each scaling series and count in its first and in its newest session."""
    numbers = ("Workers", "Sessions", "First", "Newest", "Least", "Most", "Ideal")
    head = headings("Series", "Metric", "Against", *numbers[:2], "First", "Newest", "Least", "Most",
                    "Ideal", numbers=numbers)  # fmt: skip
    rows = []
    for speedup in speedups:
        for count, ideal, values in zip(
            speedup.counts, speedup.ideals, speedup.values, strict=True
        ):
            known = np.flatnonzero(np.isfinite(values[0])).tolist()
            if not known:
                continue
            ends = [values[:, place].tolist() for place in (known[0], known[-1])]
            seen = values[0, known]
            rows.append(
                [
                    Text(speedup.title or "all points"),
                    Text(title_of(speedup.main)),
                    Text(f"{speedup.scale} {speedup.base}"),
                    number_cell(count, str(count)),
                    number_cell(len(known), str(len(known))),
                    *(number_cell(mean, _spanned(mean, low, high)) for mean, low, high in ends),
                    *(number_cell(float(value), number(float(value)))
                      for value in (seen.min(), seen.max())),
                    number_cell(ideal or math.nan, number(ideal) if ideal else "–"),
                ]
            )  # fmt: skip
    more = ("row", "tables/speedups.csv")
    return table(f"Speedup of {name}", head, rows[:MAX_SPEEDUPS], len(rows), more)


def _spanned(mean: float, low: float, high: float) -> str:
    """``1.93 [1.90, 1.96]``."""
    return number(mean) + (f" [{number(low)}, {number(high)}]" if finite(low, high) else "")


def _settled_table(settled: Sequence[Settled]) -> dict[str, Any]:
    """Commits that were measured alternately, a row for each point, the newest first."""
    numbers = ("Change", "Pairs")
    head = headings(
        "Measured, UTC", "Base", "New", "Point", "Metric", "Verdict", "Change", "Pairs", "Search",
        numbers=numbers,
    )  # fmt: skip
    rows = []
    for outcome in settled:
        search = ""
        if outcome.first_bad:
            few = f"one of {outcome.between + 1} commits after base"
            search = few if outcome.between else "new is the first bad commit"
        for point in outcome.points:
            label = f"{point.benchmark}, {point.label or 'the only point'}"
            order = str(VERDICTS.index(point.kind)) if point.kind in VERDICTS else ""
            change = number_cell(point.ratio or math.nan, settled_change(point))
            rows.append(
                [
                    Text(f"{outcome.started[:16].replace('T', ' ')}", outcome.started),
                    Text(outcome.base.commit[:10]),
                    Text(f"{outcome.new.commit[:10]} {outcome.new.subject}"),
                    Text(label),
                    Text(point.metric),
                    Text(point.kind, order, _KINDS.get(point.kind, "")),
                    change,
                    number_cell(point.pairs, str(point.pairs)),
                    Text(search or "–"),
                ]
            )
    more = ("row", "settled/")
    return table("Commits measured alternately", head, rows[:MAX_SETTLED], len(rows), more)


def _p(value: float) -> str:
    if not finite(value):
        return "–"
    return "< 0.0001" if value < 0.0001 else number(value, 2)


def _figures(order: Sequence[Judged]) -> dict[int, dict[str, Any]]:
    """Figures of the gravest series, by the identity of each."""
    chosen = [series for series in order if series.shown is not None and len(series.sessions) > 1]
    chosen = chosen[:MAX_FIGURES]
    drawn = [tried(_figure, chosen, place) for place in range(len(chosen))]
    return {
        id(series): {"caption": f"{series.point}: not drawn, {result.reason}.", "svg": None}
        if isinstance(result, Failed)
        # Written by scalesweep.figures, which serialises every label as XML text.
        else {"caption": result[0], "svg": Markup(result[1])}
        for series, result in zip(chosen, drawn, strict=True)
    }


def _figure(chosen: Sequence[Judged], place: int) -> tuple[str, str]:
    drawing, svg = draw_series(chosen[place], f"series-{place + 1}")
    return drawing.caption, svg


def _sessions(series: Iterable[Judged]) -> list[SessionFacts]:
    """All sessions, the newest first."""
    newest: dict[str, SessionFacts] = {}
    for judged in series:
        for session in judged.sessions:
            known = newest.setdefault(session.session, session)
            if session.started < known.started:
                newest[session.session] = session
    return sorted(newest.values(), key=lambda session: session.started, reverse=True)


def _session_table(sessions: Sequence[SessionFacts], links: Links) -> dict[str, Any]:
    head = headings("Started, UTC", "Commit", "Subject", "Tags", "Hosts", "Results")
    head[-1] = Text("Report", None, "link")
    rows = []
    for session in sessions[:MAX_SESSIONS]:
        report = Path(session.results) / "report.html"
        rows.append(
            {
                "cells": [
                    Text(f"{session.started:%Y-%m-%d %H:%M}", session.started.isoformat()),
                    Text(session.name + (" (local changes)" if session.dirty else "")),
                    Text(session.subject),
                    Text(session.tags),
                    Text(session.hosts if len(session.hosts) < 40 else f"{session.hosts[:37]}..."),
                ],
                "href": links.to(report) if report.is_file() else "",
                "results": session.results,
            }
        )
    return {"head": head, "rows": rows, "left_out": max(len(sessions) - MAX_SESSIONS, 0)}
