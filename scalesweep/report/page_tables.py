"""Tables of the page: points, runs, and what profiles and traces say, as cells."""

from collections.abc import Mapping
from typing import Any

from scalesweep.aspects.registry import parts, shown_tables
from scalesweep.core.formatting import (
    PHASES,
    as_given,
    duration,
    finite,
    percent,
    text_of,
    with_interval,
)
from scalesweep.core.record import FAILURE, RECORD, read_failure
from scalesweep.core.status import Status
from scalesweep.experiment.cells import Target, Text, number_cell, table
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.inputs import PageInputs
from scalesweep.table.declared import Estimate, columns_of
from scalesweep.tables.provenance import RunFacts

_BAD = (Status.FAILED, Status.STALE)
_SHARES = ("share", "least", "most", "last_share", "communication_share")
_FIXED = ("run_id", "source", "repeats", "planned")


def shown_table(
    results: ExperimentResults, shown: Table, name: str, what: str, runs: str = ""
) -> dict[str, Any]:
    """A table of points with the id ``name``; ``runs`` is that of the experiment's runs, to which
    each point leads."""
    phases = sum(bool(phase) for phase, _ in shown.groups) > 1
    columns = [(column, phase) for phase, part in shown.groups for column in part]
    names = [*results.columns, *[""] * (len(shown.lead) - len(results.columns))]
    head = [Text(title, name=of) for title, of in zip(shown.lead, names, strict=True)]
    for made, phase in columns:
        heading = f"{made.heading}, {phase}" if phase and phases else made.heading
        head.append(Text(heading, None, "num"))
    sources = shown.sources[: shown.limit]
    rows: list[list[Text]] = [[] for _ in sources]
    for place, of in enumerate([*names, *(made.name for made, _ in columns)]):
        # Sorted by numbers if there are any, else by text.
        numbers = bool(of) and any(finite(row.get(of)) for row in sources)
        for line, row, cells in zip(rows, sources, shown.head, strict=True):
            kind = f"{'num' if place >= len(names) else ''}{' bad' * cells[place].bad}".strip()
            text = cells[place].text
            line.append(number_cell(row.get(of), text, kind) if numbers else Text(text, None, kind))
    at = len(results.columns)
    for line, row in zip(rows if runs else (), sources, strict=False):
        key = {name: text_of(row.get(name)) for name in results.columns}
        line[at] = Text("", None, line[at].kind, (Target(line[at].text, f"#{runs}", runs, key),))
    label = f"Table of {what}, {results.title}"
    return table(label, head, rows, len(shown.sources), ("row", "the CSV files"), name)


def runs_table(
    page: PageInputs, results: ExperimentResults, limit: int, name: str
) -> dict[str, Any]:
    """Every planned run of an experiment: how far it is, its numbers, and where its files are;
    environments are numbered as the provenance lists them."""
    known = {row["run_id"]: row for row in results.rows("runs")}
    numbers = {tuple(sorted(of.facts.items())): n for n, of in enumerate(page.environments, 1)}
    main = results.main
    phases = main.phases if main else []
    head = [Text("Run", kind="id"), *(Text(title, name=title) for title in results.columns)]
    head += [Text(t, kind=k) for t, k in (("Repeat", "num"), ("Status", ""), ("Files", ""),
             ("Source", ""), ("Started, UTC", ""), ("Time", "num"))]  # fmt: skip
    head += [Text(f"{main.axis_label}, {PHASES[p]}", kind="num") for p in phases if main]
    head += [Text("Environment", kind="num"), Text("Hosts")]
    rows = []
    for run in results.entry["runs"][:limit]:
        fact, row = page.facts.get(run["run_id"]), known.get(run["run_id"], {})
        means = [main.value(row, "mean", phase) for phase in phases if main]
        hosts = fact.hosts if fact else ()
        environment = numbers.get(tuple(sorted(fact.environment))) if fact else None
        point = [run["point"].get(name) for name in results.columns]
        rows.append([
            Text(run["run_id"], kind="id"),
            *(Text(text_of(v), repr(float(v)) if finite(v) else None) for v in point),
            number_cell(run["repeat"], str(run["repeat"])),
            Text(_word(run, fact), kind="bad" if run["status"] in _BAD else ""),
            Text("", links=_files(page, run, fact)),
            Text(str(row.get("source") or "–")),
            Text(str((fact and fact.started) or "–").replace("T", " ")[:16]),
            number_cell(fact and fact.wall_s, duration(fact and fact.wall_s)),
            *(number_cell(v, as_given(v)) for v in means),
            number_cell(environment, text_of(environment)),
            Text(", ".join(hosts[:3]) + (", …" if len(hosts) > 3 else "")),
        ])  # fmt: skip
    label = f"Table of runs, {results.title}"
    return table(label, head, rows, len(results.entry["runs"]), ("run", "runs.csv"), name)


def _word(run: Mapping[str, Any], fact: RunFacts | None) -> str:
    """The state of a run, with its cause."""
    if run["status"] == Status.NEW:
        return "pending"
    more = run["cause"] if run["status"] in _BAD else ""
    more = "record cannot be read" if run["status"] == Status.DONE and fact is None else more
    return f"{run['status']}: {more}" if more else str(run["status"])


def _files(page: PageInputs, run: Mapping[str, Any], fact: RunFacts | None) -> list[Target]:
    """What a run has of record, failure and logs of the attempt that they tell of."""
    here = page.runs / run["run_id"]
    attempt = fact.attempt if fact else (read_failure(here) or {}).get("attempt")
    paths = [here / RECORD, here / FAILURE]
    paths += [
        here / f"attempt-{attempt}" / name for name in ("stdout.log", "stderr.log") if attempt
    ]
    return [Target(path.stem, page.links(path)) for path in paths if path.is_file()]


def profile_tables(results: ExperimentResults, limit: int) -> list[dict[str, Any]]:
    """The tables of what profiles say, with caption and note: the point of a row, then the columns
    that have anything to say."""
    made = []
    for kind, note in (item for kinds in parts("PROFILES") for item in kinds.items()):
        rows = results.of(kind)
        units = {of.name: of.unit for of in columns_of(kind) if of.name not in _FIXED}
        names = [n for n in units if any(getattr(row, n, None) not in (None, "") for row in rows)]
        head = [Text("Point"), *(Text(_heading(n, units[n]), kind="num") for n in names)]
        cells = [
            [Text(results.describe(row.point) if results.axes else "all"),
             *(_cell(getattr(row, name), name in _SHARES) for name in names)]
            for row in rows[:limit]
        ]  # fmt: skip
        if rows:
            more = ("row", f"{kind.TABLE}.csv")
            shown = table(kind.TABLE.capitalize(), head, cells, len(rows), more)
            made.append({**shown, "note": f"{shown_tables().get(kind.TABLE, '')} {note}"})
    return made


def _heading(name: str, unit: str) -> str:
    words = name.removesuffix("_ms").removesuffix("_s").replace("_", " ").capitalize()
    words = "Time" if words in ("Ms", "S") else words
    return f"{words}, {unit}" if unit not in ("", "1") else words


def _cell(value: Any, share: bool) -> Text:
    """A value in words: shares in percent, estimates with their interval."""
    if isinstance(value, Estimate):
        words = percent if share else with_interval
        return number_cell(value.value, words(value.value, value.low, value.high))
    if not finite(value):
        return Text("yes" if value is True else "–" if value in (None, False) else str(value), "")
    return number_cell(value, percent(value) if share else as_given(value))
