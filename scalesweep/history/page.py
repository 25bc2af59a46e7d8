"""The page of a history and its tables: verdicts first, then every point, and the sessions."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import write_csv, write_parquet
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import PHASES, finite, listed, number, percent
from scalesweep.experiment.cells import Text, headings, number_cell, table
from scalesweep.history.evidence import Evidence
from scalesweep.history.series import History, Line, SessionFacts, read_history
from scalesweep.judge.change import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    REGRESSION,
    VERDICTS,
    Change,
)
from scalesweep.judge.facts import differences
from scalesweep.judge.over_time import NEWEST, STABLE
from scalesweep.judge.words import ratio_words, sentence, why
from scalesweep.report.html_assets import assets, render
from scalesweep.report.links import Links
from scalesweep.state.results_folder import claim_folder

PAGE, TABLES = "history.html", "tables"
SCRIPTS = ("tables.js", "charts.js", "history.js")
# What one page may hold; the rest is in the CSV files.
MAX_SENTENCES, MAX_ROWS, MAX_SESSIONS, MAX_VALUES = 60, 2000, 1000, 200_000
_LEVELS = {REGRESSION: "warning", CONFOUNDED: "open", IMPROVEMENT: "confirmed"}
_KINDS = {REGRESSION: "bad", IMPROVEMENT: "good"}
_HEAD = ("site", "source", "benchmark", "version", "device", "scaling", "label", "workers", "kind",
         "metric", "phase", "unit", "better")  # fmt: skip


def write_history(settings: HistorySettings) -> History:
    """Read a history, judge it, and write ``history.html`` and ``tables/`` into its folder.

    Raises UserError if there is none, or it cannot be read.
    """
    history = read_history(settings)
    claim_folder(settings.folder, "history")
    for name, frame in (("verdicts", verdict_table(history)), ("values", value_table(history))):
        write_csv(frame, settings.folder / TABLES / f"{name}.csv")
        write_parquet(frame, settings.folder / TABLES / f"{name}.parquet", {})
    page = settings.folder / PAGE
    write_atomic(page, render_history(history, settings.folder, page))
    return history


def _verdict(line: Line) -> Change:
    assert line.change is not None
    return line.change


def ranked(lines: Iterable[Line]) -> list[Line]:
    """By verdict, the gravest first; main metrics before others, large changes before small."""
    return sorted(
        lines,
        key=lambda line: (
            VERDICTS.index(_verdict(line).verdict),
            not line.main,
            -abs(math.log(_verdict(line).ratio)) if finite(_verdict(line).ratio) else 0.0,
        ),
    )


def regressions(history: History) -> list[str]:
    """A line for each regression, the gravest first, and for those measured alternately that no
    session has yet."""
    texts = [
        f"{REGRESSION}: {told_of(line)}" for line in ranked(history.judged)
        if _verdict(line).verdict == REGRESSION
    ]  # fmt: skip
    commits = {session.commit for line in history.lines for session in line.sessions}
    return texts + [
        f"{REGRESSION}: {entry.label}: {entry.point['metric']} {ratio_words(entry.change)} from "
        f"{entry.base[:10]} to {entry.new[:10]} ({entry.subject}), measured alternately."
        for entry in history.evidence
        if entry.change.verdict == REGRESSION and entry.new not in commits
    ]  # fmt: skip


def title_of(line: Line) -> str:
    """The metric, and the phase if it is not the whole run."""
    return (
        f"{line.metric}, {PHASES[line.phase]}" if line.phase in ("init", "later") else line.metric
    )


def place_of(line: Line) -> str:
    """Where it was measured, and what scaled."""
    scaling = "" if line.scaling == "none" else f", {line.scaling} scaling"
    mark = "" if line.source == "measured" else f" ({line.source})"
    return f"{line.benchmark} on {line.site}{mark}, {line.device.upper()}{scaling}"


def told_of(line: Line) -> str:
    """The verdict of a line in words."""
    change, since = _verdict(line), line.since
    if since and change.new and line.sessions[change.new[0]].subject:
        since += f" ({line.sessions[change.new[0]].subject})"
    return sentence(f"{place_of(line)}, {line.where}: {title_of(line)}", change, since)


def verdict_table(history: History) -> pd.DataFrame:
    """A row per point and metric that is judged, the gravest verdicts first."""
    rows = []
    for line in ranked(history.judged):
        change = _verdict(line)
        names = [[line.sessions[n].name for n in side] for side in (change.base, change.new)]
        rows.append(
            {name: getattr(line, name) for name in (*_HEAD, "main", "margin")}
            | {name: getattr(change, name) for name in
               ("verdict", "reason", "ratio", "low", "high", "p", "adjusted", "needed")}
            | {
                "sessions": len(line.sessions),
                "noise": line.levels.noise if line.levels else math.nan,
                "autocorrelation": line.levels.r if line.levels else math.nan,
                "base": " ".join(names[0]), "new": " ".join(names[1]), "since": line.since,
                "alternate": line.evidence.change.verdict if line.evidence else None,
                "alternate_ratio": line.evidence.change.ratio if line.evidence else math.nan,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def value_table(history: History) -> pd.DataFrame:
    """A row per line (metric, term, part, speedup) and session."""
    frames = [
        pd.DataFrame(
            {name: getattr(line, name) for name in _HEAD}
            | {
                "session": [session.session for session in line.sessions],
                "commit": [session.commit for session in line.sessions],
                "started": [session.started.isoformat() for session in line.sessions],
                "mean": line.estimates[0], "low": line.estimates[1], "high": line.estimates[2],
                "share": math.nan if line.shares is None else line.shares,
            }
        )
        for line in history.lines
    ]  # fmt: skip
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def render_history(history: History, folder: Path, out: Path) -> str:
    """The page as HTML, to be written to ``out``; everything from sessions is escaped."""
    order = ranked(history.judged)
    groups: dict[str, list[Line]] = {}
    for line in order:
        groups.setdefault(place_of(line), []).append(line)
    changed = [line for line in order if _verdict(line).verdict in _LEVELS]
    newest = {s.session: s for line in history.lines for s in line.sessions}
    sessions = sorted(newest.values(), key=lambda session: session.started, reverse=True)
    links = Links(out)
    share = max(30, MAX_ROWS // max(len(groups), 1))
    context = {
        "folder": str(folder),
        "history": history,
        "spans": [sessions[-1].started, sessions[0].started] if sessions else [],
        "points": len({line.point for line in order}),
        "changed": [_finding(line) for line in changed[:MAX_SENTENCES]],
        "more_changed": max(len(changed) - MAX_SENTENCES, 0),
        "open": [
            f"{told_of(line)} {why(_verdict(line), 'session', line.margin)}"
            for line in order if _verdict(line).verdict == INCONCLUSIVE
        ][:MAX_SENTENCES],
        "counts": _counts(groups),
        "groups": [
            {"name": name, "table": _line_table(name, group, share)}
            for name, group in groups.items()
        ],
        "data": chart_data(history.lines, order, links),
        "alternate": _alternate_table(history.evidence),
        "sessions": _session_table(sessions[:MAX_SESSIONS], links),
        "left_out": max(len(sessions) - MAX_SESSIONS, 0),
        "judged": sum(finite(_verdict(line).p) for line in order),
        "rules": {"stable": STABLE, "least": STABLE + NEWEST},
        "files": [f"./{TABLES}/{name}.csv" for name in ("verdicts", "values")],
        "assets": assets(SCRIPTS),
    }  # fmt: skip
    return render("history.html.j2", context, {"day": lambda moment: f"{moment:%Y-%m-%d %H:%M}"})


def _finding(line: Line) -> dict[str, str]:
    more = [why(_verdict(line), "session", line.margin, line.others)]
    if line.evidence:
        base, new = line.evidence.base[:10], line.evidence.new[:10]
        shown = line.evidence.change
        more.append(
            f"{base} and {new} measured alternately: {ratio_words(shown)}, {shown.verdict}."
        )
    verdict = _verdict(line).verdict
    return {"tag": verdict, "level": _LEVELS[verdict], "text": told_of(line),
            "more": " ".join(filter(None, more))}  # fmt: skip


def _counts(groups: Mapping[str, Sequence[Line]]) -> dict[str, Any]:
    """Verdicts by place."""
    words = [verdict.capitalize() for verdict in VERDICTS]
    head = headings("Where", "Points and metrics", *words, numbers=["Points and metrics", *words])
    rows = []
    for name, group in groups.items():
        count = Counter(_verdict(line).verdict for line in group)
        numbers = [len(group), *(count[verdict] for verdict in VERDICTS)]
        rows.append([Text(name), *(number_cell(n, str(n)) for n in numbers)])
    return table("Verdicts by benchmark and site", head, rows)


def _line_table(name: str, group: Sequence[Line], limit: int) -> dict[str, Any]:
    """Every point and metric of a place."""
    numbers = ("Change", "Margin", "p, corrected", "Sessions", "Noise")
    head = headings("Point", "Metric", "Verdict", "Change", "Since", *numbers[1:], numbers=numbers)
    rows = []
    for line in group[:limit]:
        change = _verdict(line)
        noise = line.levels.noise if line.levels else math.nan
        p = "< 0.0001" if change.adjusted < 0.0001 else number(change.adjusted, 2)
        rows.append([
            Text(line.where),
            Text(title_of(line)),
            _verdict_cell(change.verdict),
            number_cell(change.ratio, ratio_words(change)),
            Text(line.since or "–"),
            number_cell(line.margin, percent(line.margin)),
            number_cell(change.adjusted, p if finite(change.adjusted) else "–"),
            number_cell(len(line.sessions), str(len(line.sessions))),
            number_cell(noise, percent(noise) if finite(noise) else "–"),
        ])  # fmt: skip
    return table(f"Points of {name}", head, rows, len(group), ("row", f"{TABLES}/verdicts.csv"))


def _verdict_cell(verdict: str) -> Text:
    return Text(verdict, str(VERDICTS.index(verdict)), _KINDS.get(verdict, ""))


def _alternate_table(evidence: Sequence[Evidence]) -> dict[str, Any]:
    """Commits that were measured alternately, a row for each point, the newest first."""
    head = headings("Measured, UTC", "Base", "New", "Point", "Metric", "Verdict", "Change", "Pairs",
                    numbers=("Change", "Pairs"))  # fmt: skip
    rows = [
        [
            Text(entry.started[:16].replace("T", " "), entry.started),
            Text(entry.base[:10]),
            Text(f"{entry.new[:10]} {entry.subject}" + " (first bad commit)" * entry.first_bad),
            Text(entry.label),
            Text(str(entry.point["metric"])),
            _verdict_cell(entry.change.verdict),
            number_cell(entry.change.ratio, ratio_words(entry.change)),
            number_cell(len(entry.change.base), str(len(entry.change.base))),
        ]
        for entry in evidence
    ]
    return table("Commits measured alternately", head, rows)


def _session_table(sessions: Sequence[SessionFacts], links: Links) -> list[dict[str, Any]]:
    return [
        {
            "started": session.started,
            "cells": [
                session.name + (" (local changes)" if session.dirty else ""), session.subject,
                session.tags, listed(session.hosts.split(), 3),
            ],
            "href": _link(Path(session.results) / "report.html", links),
            "results": session.results,
        }
        for session in sessions
    ]  # fmt: skip


def _link(path: Path, links: Links) -> str:
    """The address of what is still there; empty if it is not."""
    return links.to(path) if path.exists() else ""


def chart_data(lines: Sequence[Line], order: Sequence[Line], links: Links) -> dict[str, Any]:
    """What resources/history.js draws: points with their lines, and the sessions that these name.

    Points with the gravest verdicts come first; beyond ``MAX_VALUES`` numbers they are left out.
    """
    by_point: dict[tuple[Any, ...], list[Line]] = {line.point: [] for line in order}
    for line in [*order, *(line for line in lines if line.change is None)]:
        by_point.setdefault(line.point, []).append(line)
    known: dict[tuple[str, str], int] = {}
    sessions: list[dict[str, Any]] = []
    points, left = [], MAX_VALUES
    for group in by_point.values():
        left -= sum(4 * len(line.sessions) for line in group)
        if left < 0:
            break
        for line in group:
            for session in line.sessions:
                key = (session.session, line.site)
                if key not in known:
                    known[key] = len(sessions)
                    sessions.append(_chart_session(session, line.site, links))
        title = f"{place_of(group[0])}: {group[0].where}"
        data = [_chart_line(line, [known[s.session, line.site] for s in line.sessions])
                for line in group]  # fmt: skip
        points.append({"title": title, "lines": data})
    return {"points": points, "sessions": sessions}


def _chart_session(session: SessionFacts, site: str, links: Links) -> dict[str, Any]:
    results = Path(session.results)
    return {
        "name": session.name, "started": session.started.isoformat(timespec="seconds"),
        "subject": session.subject, "tags": session.tags, "hosts": session.hosts,
        "results": session.results, "report": _link(results / "report.html", links),
        "records": _link(results / "runs" / site, links),
    }  # fmt: skip


def _chart_line(line: Line, places: Sequence[int]) -> dict[str, Any]:
    """A line of the chart: estimates by session, the places of its baseline, its levels, and what
    changed from one session to the next."""
    levels, change = line.levels, line.change
    base = list(change.base) if change and change.base else [0]
    steps = []
    if line.main and change:
        for before, place in pairwise(range(len(places))):
            facts = [line.sessions[n].known for n in (before, place)]
            if what := [str(d) for d in differences(facts[:1], facts[1:]) if d.apart]:
                steps.append([place, listed(what)])
    return {
        "title": title_of(line), "kind": line.kind, "unit": line.unit, "better": line.better,
        "main": line.main, "sessions": places, "base": base, "changes": steps,
        "verdict": change.verdict if change else "", "said": told_of(line) if change else "",
        **{name: list(map(_short, row)) for name, row in
           zip(("mean", "low", "high"), line.estimates.tolist(), strict=True)},
        "share": None if line.shares is None else list(map(_short, line.shares.tolist())),
        "runs": line.runs if change else [],
        "spikes": list(levels.spikes) if levels and change else [],
        "levels": [[at, end - 1, _short(math.exp(mean))] for at, end, mean in levels.levels]
        if levels and change else [],
    }  # fmt: skip


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if finite(value) else None
