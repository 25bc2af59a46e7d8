"""What the page shows of one experiment."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

from markupsafe import Markup

from scalesweep.aspects.find import find
from scalesweep.aspects.layouts.section import layout_card
from scalesweep.aspects.registry import parts
from scalesweep.core.formatting import counted, listed, plain, text_of
from scalesweep.core.joined_experiments import BENCHMARK, benchmarks_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.core.profilers import NOEXCHANGE
from scalesweep.core.record import read_failure
from scalesweep.core.status import Status
from scalesweep.experiment.cells import Target
from scalesweep.experiment.constant_words import constant_words
from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.findings.table import findings_in
from scalesweep.report.explore import MAX_VALUES, chart_data
from scalesweep.report.first_screen import first_screen
from scalesweep.report.inputs import PageInputs
from scalesweep.report.page_tables import profile_tables, runs_table, shown_table
from scalesweep.tables.provenance import RunFacts, differences, group

# What one page may hold; the rest is linked. A page of 10,000 runs stays below 10 MB with these.
MAX_ROWS, MAX_LINE, MAX_LINES = 4000, 300, 40
# Colours of figures that the page replaces by its own, light or dark.
_THEME = {"#1f2328": "ink", "#ffffff": "page", "#e3e6ea": "line", "#6b7280": "soft"}
_SERIES = {"#0072b2": "s1", "#d55e00": "s2", "#009e73": "s3", "#cc79a7": "s4"}
STEP = "ledger"  # beside the figure that answers an experiment's question
_LINES = ("scaling", "layouts", "compare", "warm-up", "control", STEP)

_STALE = "The records of these runs are of something else than the plan asks for now"
# What no table counts, or counts although it differs: heading and meaning by status.
_WITHOUT = {
    Status.UNSUPPORTED: ("Unsupported points", "This machine could not run them. "
                         "`snakemake --config retry=unsupported` tries again."),
    Status.STALE: ("Stale runs", f"{_STALE}; no table counts them."),
    Status.DONE: ("Accepted runs", f"{_STALE}; `accept_stale` takes them."),
    Status.UNFINISHED: ("Unfinished runs", "They were cut or aborted: no mean counts them."),
    "": ("Points excluded on purpose", ""),
}  # fmt: skip


def shown_sections(
    results: ExperimentResults, facts: Mapping[str, RunFacts], limit: int, name: str = "e1"
) -> list[dict[str, Any]]:
    """The sections of aspects that have a table (of at most ``limit`` rows) or sentences."""
    shown = []
    for section in parts("SECTION"):
        made = section.table(results, limit)
        of_runs = section.of_runs(results, facts) if section.of_runs else []
        if made is not None or of_runs:
            key = f"{name}-{section.title.lower()}"
            cells = made and shown_table(results, made, key, section.title.lower())
            notes = [*section.notes(results), *of_runs]
            shown.append({"title": section.title, "notes": notes, "id": key, "table": cells})
    return shown


def embedded_figures(page: PageInputs, results: ExperimentResults, name: str) -> list[Any]:
    """Figures of an experiment, embedded while the page's room lasts, else linked only."""
    path, embedded = page.figures / results.name / "index.json", []
    for entry in json.loads(path.read_bytes()) if path.is_file() else []:
        svg = None
        if "missing" not in entry:
            path = page.figures / entry["files"]["svg"]
            svg = path.read_text("utf-8") if path.stat().st_size <= page.svg else None
        lines = entry["name"].startswith(_LINES)
        if svg is not None:
            page.svg -= len(svg)
            # Numbers stand on the colours of a step.
            own_colours = _THEME | ({} if entry["name"].startswith(STEP) else _SERIES)
            for colour, own in own_colours.items() if lines else ():
                svg = svg.replace(f": {colour}", f": var(--{own})")
        embedded.append({
            **entry,
            "id": f"{name}-{re.sub('[^A-Za-z0-9-]', '-', entry['name'])}",
            # Written by scalesweep.figures, which serialises every label as XML text.
            "svg": None if svg is None else Markup(svg),
            "light": not lines,
            "files": {kind: page.links(page.figures / of) for kind, of in entry["files"].items()},
        })  # fmt: skip
    return embedded


def experiment_part(page: PageInputs, name: str, results: ExperimentResults) -> dict[str, Any]:
    """What the template needs of one experiment, whose ids begin with ``name``; adds its chart to
    ``page.charts``."""
    limit = min(2000, max(30, MAX_ROWS // page.count))
    drawn = embedded_figures(page, results, name)
    points = point_table(results, limit)
    of_points = shown_table(results, points, f"{name}-points", "points", f"{name}-runs")
    chart = chart_data(results, points.sources, MAX_VALUES // page.count)
    if chart is not None:
        page.charts[f"{name}-chart"] = chart
    sections = shown_sections(results, page.facts, limit, name)
    of_runs = runs_table(page, results, limit, f"{name}-runs")
    said = findings_in(results)
    findings = find(results) if said is None else said
    folder = page.tables / results.name
    csv = {path.stem: page.links(path) for path in sorted(folder.glob("*.csv"))}
    failures = failed_points(page, results)
    figures = [figure["name"] for figure in drawn]
    screen = first_screen(page.plan, results, findings, figures, page.facts, failures)
    tables = {f"{name}-points", f"{name}-runs", *(section["id"] for section in sections)}
    evidence = [_rows(finding, name, tables, csv) for finding in findings]
    return {
        "id": name,
        "screen": screen,
        "main": [figure for figure in drawn if figure["name"] == screen["figure"]],
        "step": [figure for figure in drawn if figure["name"] == STEP],
        "figures": [f for f in drawn if f["name"] not in (screen["figure"], STEP)],
        "layouts": layout_card(results, findings),
        "results": results,
        "constant": constant_words(results.entry),
        "benchmarks": [*benchmarks_of(results.entry).items()],
        "counts": Counter(run["status"] for run in results.entry["runs"]),
        "findings": [*zip(findings, evidence, strict=True)],
        "sections": sections,
        "scaling": points.scaling,
        "stated": points.stated,
        "points": of_points,
        "runs": of_runs,
        "chart": chart is not None,
        "csv": csv,
        "failures": failures,
        "without": without_result(results),
        "fixed": fixed_parameters(results),
        "profiles": profiled_runs(page, results),
        "profile_tables": profile_tables(results, limit),
        "unlike": _unlike(results, page.facts),
    }


def _rows(
    finding: Finding, name: str, tables: Collection[str], csv: Mapping[str, str]
) -> list[Target]:
    """The link from a finding to its rows, if there is one: in one of ``tables`` (ids), else the
    CSV file (addresses by name)."""
    table, key = str(finding.evidence.get("table")), finding.evidence.get("key") or {}
    shown = f"{name}-{'points' if table == 'scaling' else table}"
    if shown in tables:
        single = {k: text_of(v) for k, v in key.items() if not isinstance(v, list | dict)}
        return [Target("rows", f"#{shown}", shown, single)]
    return [Target(f"{table}.csv", csv[table])] if table in csv else []


def _unlike(results: ExperimentResults, facts: Mapping[str, RunFacts]) -> list[dict[str, Any]]:
    """Facts in which the finished runs of an experiment differ, per source.

    Of several benchmarks those that runs of each have: a framework's version is no difference from
    runs without that framework.
    """
    by_source: dict[str, dict[str, list[RunFacts]]] = {}
    for run in results.entry["runs"]:
        if known := facts.get(run["run_id"]):
            benchmark = str(run["point"].get(BENCHMARK) or "")
            by_source.setdefault(known.source, {}).setdefault(benchmark, []).append(known)
    unlike = []
    for source, known_runs in by_source.items():
        named = [{n for run in runs for n, _ in run.environment} for runs in known_runs.values()]
        shared = set.intersection(*named)
        for name, values in differences(group(chain.from_iterable(known_runs.values()))).items():
            if name in shared:
                words = [f"{value} ({counted(count, 'run')})" for value, count in values.items()]
                unlike.append({"source": source, "fact": name, "values": listed(words, 5)})
    return unlike


def failed_points(page: PageInputs, results: ExperimentResults) -> list[dict[str, Any]]:
    """Failed points with cause, logs of their runs and last lines.

    Repeats of a point that failed in the same way form one row, with the last lines of the first.
    """
    runs, links = page.runs, page.links
    failed = [run for run in results.entry["runs"] if run["status"] == Status.FAILED]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for run in failed:
        failure = read_failure(runs / run["run_id"]) or {}
        # A job may have ended before its launcher began an attempt.
        attempt = failure.get("attempt") or (0 if "job_id" in failure else 1)
        folder = runs / run["run_id"] / f"attempt-{attempt}"
        where = results.describe(run["point"])
        row = {
            "cause": run["cause"] or Status.FAILED,
            "where": where,
            "detail": run["detail"],
            "lines": [str(line)[:MAX_LINE] for line in failure.get("last_lines") or ()][
                -MAX_LINES:
            ],
            "stacks": failure.get("stacks") or (),
            "runs": [],
        }
        logs = [path for path in (folder / "stdout.log", folder / "stderr.log") if path.is_file()]
        rows.setdefault((str(run["cause"]), where), row)["runs"].append({
            "run": run, "attempt": failure.get("attempt"), "job_id": failure.get("job_id"),
            "logs": [(path.stem, links(path)) for path in logs],
        })  # fmt: skip
    return [*rows.values()]


def profiled_runs(page: PageInputs, results: ExperimentResults) -> list[dict[str, Any]]:
    """Profiled runs with links to their folders; of those without exchange only what is missing."""
    return [
        {
            "kind": run["kind"], "where": results.describe(run["point"]), "detail": run["detail"],
            "state": run["cause"] or run["status"],
            "folder": page.links(page.runs / run["run_id"]),
        }
        for run in results.entry["profiles"]
        if run["kind"] != NOEXCHANGE or run["status"] != Status.DONE
    ]  # fmt: skip


def without_result(results: ExperimentResults) -> list[tuple[str, str, int, list[str]]]:
    """Points without a result that did not fail: heading, meaning, how many there are, and a line
    for each reason."""
    entry, made = results.entry, []
    every = [(run["status"], run["detail"], run["point"]) for run in entry["runs"]]
    every += [("", excluded["reason"], excluded["point"]) for excluded in entry["excluded"]]
    for status, (title, about) in _WITHOUT.items():
        reasons: dict[str, dict[str, None]] = {}
        for of, reason, point in every:
            if of == status and (reason or of != Status.DONE):
                reasons.setdefault(str(reason), {})[results.describe(point)] = None
        lines = [f"{reason}: {counted(len(of), 'point')} ({listed([*of])})"
                 for reason, of in reasons.items()]  # fmt: skip
        if lines:
            made.append((title, about, sum(map(len, reasons.values())), lines))
    return made


def fixed_parameters(results: ExperimentResults) -> dict[str, list[dict[str, str]]]:
    """The constant parameters with their units: those that were ``set``, and the ``defaults``.

    What runs scale over, and what is computed, are among those that were set, whatever their
    value: the reader needs it to understand every number.
    """
    groups: dict[str, list[dict[str, str]]] = {"set": [], "defaults": []}
    constants = results.entry["fixed"]
    for name, value in constants.items():
        info = parameter_of(results.entry, name)
        needed = name in (results.scale, "ranks") or (info["workload"] and value is not None)
        unit = info["unit"] if info["unit"] not in (None, name) else ""
        text = "not set" if value is None else f"{text_of(value)} {unit}".rstrip()
        kind = "set" if needed or plain(value) != plain(info["default"]) else "defaults"
        groups[kind].append({"name": name, "value": text, "doc": info["doc"]})
    groups["set"] += [
        {"name": name, "value": f"= {text}", "doc": parameter_of(results.entry, name)["doc"]}
        for name, text in results.entry.get("derived_parameters", {}).items()
        if name not in constants
    ]
    return groups
