"""The page of a history and its tables: verdicts first, then every point, and the sessions."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import write_table
from scalesweep.config.campaign_keys import HistorySettings
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import finite, listed, percent
from scalesweep.experiment.cells import number_cell
from scalesweep.history.series import History, Line, facts_of, read_history
from scalesweep.history.store import POINT
from scalesweep.judge.change import CONFOUNDED, IMPROVEMENT, REGRESSION, VERDICTS
from scalesweep.judge.facts import differences
from scalesweep.judge.over_time import ALONE, NEWEST, STABLE
from scalesweep.judge.words import p_cell, page_table, ratio_words, sentence, verdict_cell, why
from scalesweep.report.html_assets import assets, render
from scalesweep.report.inputs import Links, links_from
from scalesweep.state.results_folder import claim_folder

PAGE, TABLES = "history.html", "tables"
SCRIPTS = ("tables.js", "charts.js", "history.js")
# What one page may hold; the rest is in the CSV files.
MAX_ROWS, MAX_VALUES = 2000, 50_000
_LEVELS = {REGRESSION: "warning", CONFOUNDED: "open", IMPROVEMENT: "confirmed"}
_HEAD = ["site", "source", "benchmark", "version", "device", "scaling", "label", "workers", "kind",
         "metric", "phase", "unit", "better"]  # fmt: skip


def write_history(settings: HistorySettings) -> History:
    """Read a history, judge it, and write ``history.html`` and ``tables/`` into its folder. Raises
    UserError if there is none, or it cannot be read."""
    history = read_history(settings)
    claim_folder(settings.folder, "history")
    values = history.values[[*_HEAD, "session", "commit", "began", "mean", "low", "high", "share"]]
    values = values.rename(columns={"began": "started"})
    for name, frame in (("verdicts", verdict_table(history)), ("values", values)):
        write_table(frame, settings.folder / TABLES / name)
    page = settings.folder / PAGE
    write_atomic(page, render_history(history, settings.folder, page))
    return history


def ranked(lines: Iterable[Line]) -> list[Line]:
    """By verdict, the gravest first; main metrics before others, large changes before small."""
    return sorted(
        lines,
        key=lambda line: (
            VERDICTS.index(line.change.verdict),
            not line.head["main"],
            -abs(math.log(line.change.ratio)) if finite(line.change.ratio) else 0.0,
        ),
    )


def regressions(history: History) -> list[str]:
    """A line for each regression, the gravest first, and for those measured alternately that no
    session has yet."""
    texts = [
        f"{REGRESSION}: {told_of(line)}" for line in ranked(history.judged)
        if line.change.verdict == REGRESSION
    ]  # fmt: skip
    commits = set(history.values["commit"])
    return texts + [
        f"{REGRESSION}: {row['label']}: {row['metric']} {ratio_words(row)} from "
        f"{row['base'][:10]} to {row['new'][:10]} ({row['subject']}), measured alternately."
        for _, row in history.alternate.iterrows()
        if row["verdict"] == REGRESSION and row["new"] not in commits
    ]  # fmt: skip


def newest_alone(history: History) -> list[Line]:
    """Lines whose newest session alone is off: it may be the first of a step."""
    return [line for line in ranked(history.judged) if line.change.reason.startswith(ALONE)]


def told_of(line: Line) -> str:
    """The verdict of a line in words."""
    since, head = line.since, line.head
    newest = line.alternate if line.counts else line.new.iloc[0] if line.change.new else None
    if since and newest is not None and (subject := newest["subject"]):
        since += f" ({subject})"
    return sentence(f"{head['place']}, {head['where']}: {head['title']}", line.change, since)


def verdict_table(history: History) -> pd.DataFrame:
    """A row per point and metric that is judged, the gravest verdicts first."""
    change = ["verdict", "reason", "ratio", "low", "high", "p", "adjusted"]
    return pd.DataFrame(
        {
            **line.head[[*_HEAD, "main"]],
            "margin": line.margin,
            **{name: getattr(line.change, name) for name in change},
            "sessions": len(line.rows),
            "noise": line.levels.noise if line.levels else math.nan,
            "autocorrelation": line.levels.r if line.levels else math.nan,
            "since": line.since,
            "alternate": None if line.alternate is None else line.alternate["verdict"],
            "alternate_ratio": math.nan if line.alternate is None else line.alternate["ratio"],
        }
        for line in ranked(history.judged)
    )


def render_history(history: History, folder: Path, out: Path) -> str:
    """The page as HTML, to be written to ``out``; everything from sessions is escaped."""
    order = ranked(history.judged)
    sessions = history.values.drop_duplicates("session").sort_values("began", ascending=False)
    counts = Counter(line.change.verdict for line in order)
    links = links_from(out)
    context = {
        "folder": str(folder),
        "history": history,
        "spans": [sessions["began"].iloc[n] for n in (-1, 0)] if len(sessions) else [],
        "points": len({tuple(line.head[POINT]) for line in order}),
        "changed": [
            *(_finding(line) for line in order if line.change.verdict in _LEVELS),
            *map(_finding, newest_alone(history)),
        ],
        "counts": ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name]),
        "table_of_points": _line_table(order),
        "data": chart_data(history, order, links),
        "alternate": _alternate_table(history.alternate),
        "sessions": [_session(row, links) for _, row in sessions.iterrows()],
        "judged": sum(finite(line.change.p) for line in order),
        "rules": {"stable": STABLE, "least": STABLE + NEWEST},
        "files": [f"./{TABLES}/{name}.csv" for name in ("verdicts", "values")],
        "assets": assets(SCRIPTS),
    }  # fmt: skip
    return render("history.html.j2", context, {"day": lambda moment: f"{moment:%Y-%m-%d %H:%M}"})


def _finding(line: Line) -> dict[str, str]:
    more = [why(line.change, line.margin, line.others)]
    if (row := line.alternate) is not None:
        commits = f"{row['base'][:10]} and {row['new'][:10]}"
        more.append(f"{commits} measured alternately: {ratio_words(row)}, {row['verdict']}.")
    verdict = line.change.verdict
    return {"tag": verdict, "level": _LEVELS.get(verdict, "open"), "text": told_of(line),
            "more": " ".join(filter(None, more))}  # fmt: skip


def _line_table(order: Sequence[Line]) -> dict[str, Any]:
    """Every point and metric, the gravest verdicts first."""
    shown = order[:MAX_ROWS]
    noise = [line.levels.noise if line.levels else math.nan for line in shown]
    columns: dict[str, Any] = {
        "Benchmark": [line.head["place"] for line in shown],
        "Point": [line.head["where"] for line in shown],
        "Metric": [line.head["title"] for line in shown],
        "Verdict": [verdict_cell(line.change.verdict) for line in shown],
        "Change": [number_cell(line.change.ratio, ratio_words(line.change)) for line in shown],
        "Since": [line.since or "–" for line in shown],
        "Margin": [number_cell(line.margin, percent(line.margin)) for line in shown],
        "p, corrected": [p_cell(line.change.adjusted) for line in shown],
        "Sessions": [len(line.rows) for line in shown],
        "Noise": [number_cell(n, percent(n) if finite(n) else "–") for n in noise],
    }
    return page_table("Points", columns, len(order), ("row", f"{TABLES}/verdicts.csv"))


def _alternate_table(rows: pd.DataFrame) -> dict[str, Any]:
    """Commits that were measured alternately, a row for each point, the newest first."""
    first = rows["first_bad"].astype(bool).map({True: " (first bad commit)", False: ""})
    columns: dict[str, Any] = {
        "Measured, UTC": rows["started"].str[:16].str.replace("T", " "),
        "Base": rows["base"].str[:10],
        "New": rows["new"].str[:10] + " " + rows["subject"] + first,
        "Point": rows["label"],
        "Metric": rows["metric"],
        "Verdict": rows["verdict"].map(verdict_cell),
        "Change": [number_cell(row.ratio, ratio_words(row)) for row in rows.itertuples()],
        "Pairs": rows["pairs"],
    }
    return page_table("Commits measured alternately", columns)


def _session(row: Any, links: Links) -> dict[str, Any]:
    """A session, as the table and the chart of the page have it; links to what is still there."""
    results = Path(row["results"])

    def link(path: Path) -> str:
        return links(path) if path.exists() else ""

    return {
        "name": row["name"], "started": row["began"].isoformat(timespec="seconds"),
        "hosts": listed(row["hosts"].split(), 3),
        **{name: row[name] for name in ("subject", "tags", "results")},
        "report": link(results / "report.html"), "records": link(results / "runs" / row["site"]),
    }  # fmt: skip


def chart_data(history: History, order: Sequence[Line], links: Links) -> dict[str, Any]:
    """What resources/history.js draws: points with their lines, and the sessions that these name.

    Points with the gravest verdicts come first; beyond ``MAX_VALUES`` they are left out.
    """
    judged = {line.head["line"]: line for line in order}
    rank = {line: n for n, line in enumerate(judged)}
    values = history.values
    values = values.iloc[values["line"].map(rank).fillna(len(rank)).argsort(kind="stable")]
    points, left = [], MAX_VALUES
    for _, own in values.groupby(POINT, sort=False):
        left -= len(own)
        if left >= 0:
            points.append(own)
    each = pd.concat([values.head(0), *points]).drop_duplicates(["session", "site"])
    places = {key: n for n, key in enumerate(zip(each["session"], each["site"], strict=True))}
    return {
        "points": [
            {
                "title": f"{own['place'].iloc[0]}: {own['where'].iloc[0]}",
                "lines": [
                    _chart_line(rows, judged.get(line), places)
                    for line, rows in own.groupby("line", sort=False)
                ],
            }
            for own in points
        ],
        "sessions": [_session(row, links) for _, row in each.iterrows()],
    }


def _chart_line(
    rows: pd.DataFrame, line: Line | None, places: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    """A line of the chart: estimates by session, the places of its baseline, its levels, and what
    changed from one session to the next."""
    head, steps = rows.iloc[-1], []
    if line and head["main"]:
        for place, (before, after) in enumerate(pairwise(facts_of(rows)), start=1):
            if what := [str(d) for d in differences([before], [after]) if d.apart]:
                steps.append([place, listed(what)])
    levels = line.levels if line else None
    return {
        "title": head["title"], "kind": head["kind"], "unit": head["unit"],
        "better": head["better"], "main": bool(head["main"]), "changes": steps,
        "sessions": [places[key] for key in zip(rows["session"], rows["site"], strict=True)],
        "base": list(line.change.base) if line and line.change.base else [0],
        "verdict": line.change.verdict if line else "", "said": told_of(line) if line else "",
        **{name: [_short(value) for value in rows[name]] for name in ("mean", "low", "high")},
        "share": [_short(v) for v in rows["share"]] if rows["share"].notna().any() else None,
        "runs": rows["runs"].tolist() if line else [],
        "spikes": list(levels.spikes) if levels else [],
        "levels": [[at, end - 1, _short(math.exp(mean))] for at, end, mean in levels.levels]
        if levels else [],
    }  # fmt: skip


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if finite(value) else None
