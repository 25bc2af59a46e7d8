"""What the page shows of one experiment."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from markupsafe import Markup

from scalesweep.aspects.find import find
from scalesweep.aspects.layouts.section import layout_card
from scalesweep.aspects.registry import parts
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed, text_of
from scalesweep.core.joined_experiments import BENCHMARK, benchmarks_of
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.cells import Target
from scalesweep.experiment.constant_words import constant_words
from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.findings.table import findings_in
from scalesweep.report.explore import MAX_VALUES, chart_data
from scalesweep.report.first_screen import first_screen
from scalesweep.report.links import Links
from scalesweep.report.page_tables import profile_tables, runs_table, shown_table
from scalesweep.report.sections import (
    failed_points,
    fixed_parameters,
    profiled_runs,
    without_result,
)
from scalesweep.tables.provenance import RunFacts, differences, group

# What one page may hold; the rest is linked. A page of 10,000 runs stays below 10 MB with these.
MAX_ROWS, MAX_SVG_BYTES = 4000, 3_000_000
# Colours of figures that the page replaces by its own, light or dark.
_THEME = {
    "#1f2328": "var(--ink)",
    "#ffffff": "var(--page)",
    "#e3e6ea": "var(--line)",
    "#6b7280": "var(--soft)",
}
_SERIES = {
    "#0072b2": "var(--s1)",
    "#d55e00": "var(--s2)",
    "#009e73": "var(--s3)",
    "#cc79a7": "var(--s4)",
}
STEP = "ledger"  # beside the figure that answers an experiment's question
_LINES = ("scaling", "layouts", "compare", "warm-up", "control", STEP)


@dataclass
class PageInputs:
    """What the parts of a page are made of. ``tables``, ``figures`` and ``runs`` are folders;
    ``count`` experiments share the page's room, ``svg`` bytes of figures one after the other."""

    plan: Plan
    count: int
    tables: Path
    figures: Path
    runs: Path
    links: Links
    facts: Mapping[str, RunFacts]
    environments: Sequence[Any]
    charts: dict[str, Any] = field(default_factory=dict)
    svg: int = MAX_SVG_BYTES


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
    """Figures of an experiment, embedded while the page's room lasts, else linked only.

    Raises UserError if their index cannot be read.
    """
    path = page.figures / results.name / "index.json"
    try:
        index = json.loads(path.read_bytes()) if path.is_file() else []
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    embedded = []
    for entry in index:
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
                svg = svg.replace(f": {colour}", f": {own}")
        box = (svg or "").partition('viewBox="')[2].partition('"')[0].split()
        embedded.append({
            **entry,
            "id": f"{name}-{re.sub('[^A-Za-z0-9-]', '-', entry['name'])}",
            # Written by scalesweep.figures, which serialises every label as XML text.
            "svg": None if svg is None else Markup(svg),
            "light": not lines,
            "short": re.sub(r"-(init|later|run|\d+)$", "", entry["name"]),
            "wide": len(box) == 4 and float(box[2]) > 450,
            "files": {
                kind: page.links.to(page.figures / file)
                for kind, file in sorted(entry["files"].items())
            },
        })  # fmt: skip
    return embedded


def experiment_part(page: PageInputs, name: str, results: ExperimentResults) -> dict[str, Any]:
    """What the template needs of one experiment, whose ids begin with ``name``; adds its chart to
    ``page.charts``."""
    links, runs, facts = page.links, page.runs, page.facts
    limit = min(2000, max(30, MAX_ROWS // page.count))
    drawn = embedded_figures(page, results, name)
    points = point_table(results, limit)
    of_points = shown_table(results, points, f"{name}-points", "points", f"{name}-runs")
    chart = chart_data(results, points.sources, MAX_VALUES // page.count)
    if chart is not None:
        page.charts[f"{name}-chart"] = chart
    sections = shown_sections(results, facts, limit, name)
    of_runs = runs_table(results, facts, page.environments, runs, links, limit, f"{name}-runs")
    said = findings_in(results)
    findings = find(results) if said is None else said
    folder = page.tables / results.name
    csv = {path.stem: links.to(path) for path in sorted(folder.glob("*.csv"))}
    failures = failed_points(results, runs, links)
    figures = [figure["name"] for figure in drawn]
    screen = first_screen(page.plan, results, findings, figures, facts, failures["every"])
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
        "profiles": profiled_runs(results, runs, links),
        "profile_tables": profile_tables(results, limit),
        "unlike": _unlike(results, facts),
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
        known = facts.get(run["run_id"])
        if run["status"] == Status.DONE and known is not None:
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
