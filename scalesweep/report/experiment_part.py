"""What the page shows of one experiment."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from markupsafe import Markup

from scalesweep.aspects.find import find, rules
from scalesweep.aspects.order import SECTIONS
from scalesweep.aspects.prediction.section import prediction_section
from scalesweep.aspects.registry import parts
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed
from scalesweep.core.joined_experiments import BENCHMARK, benchmarks_of
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.constant_words import constant_words
from scalesweep.experiment.points_table import Table, point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import CLEAR, OPEN, Finding
from scalesweep.findings.table import findings_in
from scalesweep.report.card_content import card_section
from scalesweep.report.links import Links, anchors, evidence_links, figure_id
from scalesweep.report.page_data import MAX_VALUES, chart_data, runs_data, table_data
from scalesweep.report.profiles_section import profiles_section
from scalesweep.report.sections import (
    accepted_points,
    excluded_points,
    failed_elsewhere,
    failed_points,
    fixed_parameters,
    points_without_result,
)
from scalesweep.tables.provenance import RunFacts, differences, group


@dataclass(frozen=True)
class ShownSection:
    """A heading within an experiment: sentences, figures and a table (None: there is none).

    ``leads``: it stands before the general figures.
    """

    title: str
    notes: list[str]
    figures: list[dict[str, Any]]
    table: Table | None
    leads: bool


@cache
def _sections() -> Mapping[str, Section]:
    """All sections by title, in their order."""
    places = {title: place for place, title in enumerate(SECTIONS)}
    sections = sorted(
        (module.SECTION for module in parts("section")),
        key=lambda section: places.get(section.title, len(places)),
    )
    return {section.title: section for section in sections}


def section_of(figure: str) -> str | None:
    """The section that shows a figure of this name; None if it comes before them."""
    sections = _sections().values()
    return next((section.title for section in sections if figure.startswith(section.figures)), None)


def training_sections(
    results: ExperimentResults,
    facts: Mapping[str, RunFacts],
    figures: Sequence[dict[str, Any]],
    limit: int,
) -> list[ShownSection]:
    """The sections that have anything to show; their tables have at most ``limit`` rows."""
    shown = []
    for title, section in _sections().items():
        drawn = [figure for figure in figures if section_of(figure["name"]) == title]
        table = section.table(results, limit)
        of_runs = section.of_runs(results, facts) if section.of_runs else []
        if drawn or table is not None or of_runs:
            notes = [*section.notes(results), *of_runs]
            shown.append(ShownSection(title, notes, drawn, table, section.leads))
    return shown


def read_index(figures: Path) -> list[dict[str, Any]]:
    """The index of all figures in a folder. Raises UserError if they were not drawn."""
    try:
        return [
            entry
            for path in sorted(figures.glob("*/index.json"))
            for entry in json.loads(path.read_bytes())
        ]
    except (OSError, ValueError) as error:
        raise UserError(f"{figures}: the index of figures cannot be read: {error}") from None


def embedded_figures(
    index: Sequence[Mapping[str, Any]],
    name: str,
    section: str,
    figures: Path,
    links: Links,
    budget: dict[str, int],
) -> list[dict[str, Any]]:
    """Figures of an experiment, embedded while the page's budget lasts, else linked only."""
    embedded = []
    for entry in index:
        if entry["experiment"] != name:
            continue
        svg = None
        if "missing" not in entry:
            path = figures / entry["files"]["svg"]
            svg = path.read_text("utf-8") if path.stat().st_size <= budget["svg"] else None
        if svg is not None:
            budget["svg"] -= len(svg)
        box = (svg or "").partition('viewBox="')[2].partition('"')[0].split()
        embedded.append(
            {
                "id": figure_id(section, entry["name"]),
                "name": entry["name"],
                "title": entry["title"],
                "caption": entry["caption"],
                "missing": "missing" in entry,
                "shows": entry["shows"],
                # Written by scalesweep.figures, which serialises every label as XML text.
                "svg": None if svg is None else Markup(svg),
                "wide": len(box) == 4 and float(box[2]) > 450,
                "files": {
                    kind: links.to(figures / file) for kind, file in sorted(entry["files"].items())
                },
            }
        )
    return embedded


# What one page may hold; the rest is linked. A page of 10,000 runs stays below 10 MB with these.
# Rows that the page itself contains, for print and for browsers without scripts.
MAX_ROWS = 1000
MAX_ROWS_EACH = 100
MAX_FAILURES = 150
MAX_SVG_BYTES = 3_000_000


@dataclass(frozen=True)
class PageInputs:
    """What the parts of a page are made of, and what they add to it.

    ``tables``, ``figures`` and ``runs`` are folders; ``count`` experiments share the page's room.
    ``data`` takes what scripts need; of ``room``, bytes of SVG and rows of failures, each part
    takes its share.
    """

    plan: Plan
    count: int
    tables: Path
    figures: Path
    runs: Path
    links: Links
    facts: Mapping[str, RunFacts]
    environments: Sequence[Any]
    data: dict[str, Any] = field(default_factory=lambda: {"tables": {}, "charts": {}})
    room: dict[str, int] = field(
        default_factory=lambda: {"svg": MAX_SVG_BYTES, "failures": MAX_FAILURES}
    )

    @property
    def rows(self) -> int:
        """How many rows each table of the page itself has."""
        return min(MAX_ROWS_EACH, max(10, MAX_ROWS // max(self.count, 1)))

    @property
    def values(self) -> int:
        """How many values of an experiment scripts get."""
        return MAX_VALUES // max(self.count, 1)


def experiment_parts(
    page: PageInputs, studies: Sequence[ExperimentResults]
) -> list[dict[str, Any]]:
    """What the template needs of each experiment. Raises UserError if figures were not drawn."""
    index = read_index(page.figures)
    return [_part(page, f"e{place}", results, index) for place, results in enumerate(studies, 1)]


def _part(
    page: PageInputs, name: str, results: ExperimentResults, index: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """What the template needs of one experiment; adds the values of its tables to ``page.data`` and
    takes its share of ``page.room``."""
    links, runs, facts = page.links, page.runs, page.facts
    drawn = embedded_figures(index, results.name, name, page.figures, links, page.room)
    points = point_table(results, page.rows)
    training = training_sections(results, facts, drawn, page.rows)
    _add_data(page.data, name, results, points, training, page.values)
    page.data["tables"][f"{name}-runs"] = runs_data(
        results, facts, page.environments, runs, links.to(runs), page.values
    )
    findings = _findings(results)
    csv = _csv_links(page.tables / results.name, links)
    targets = anchors(name, [*page.data["tables"]], drawn, csv)
    failures = failed_points(results, runs, links, page.room)
    elsewhere = failed_elsewhere(results, runs)
    prediction = prediction_section(results, page.rows)
    headings = [
        *_headings(name, training, leads=True),
        *([("Explore", f"{name}-explore")] if f"{name}-chart" in page.data["charts"] else []),
        ("Scaling" if points.scaling else "Points", f"{name}-points-section"),
        *([("Predictions", f"{name}-prediction")] if prediction is not None else []),
        *_headings(name, training, leads=False),
        *([("Failed runs", f"{name}-failed")] if failures["rows"] else []),
        *([("Failed runs", f"{name}-failed-elsewhere")] if elsewhere else []),
        ("Runs", f"{name}-all-runs"),
    ]
    return {
        "id": name,
        "parts": headings,
        "results": results,
        "constant": constant_words(results.entry),
        "benchmarks": [*benchmarks_of(results.entry).items()],
        "counts": Counter(run["status"] for run in results.entry["runs"]),
        "card": card_section(page.plan, results, findings, targets, facts),
        "findings": [(finding, evidence_links(finding, targets)) for finding in findings],
        "collapsed": _collapsed(findings),
        "states": _states(findings),
        "figures": [figure for figure in drawn if section_of(figure["name"]) is None],
        "leading": [section for section in training if section.leads],
        "training": [section for section in training if not section.leads],
        "table": points,
        "csv": csv,
        "failures": failures,
        "failed_elsewhere": elsewhere,
        "excluded": excluded_points(results),
        "fixed": fixed_parameters(results),
        "unsupported": points_without_result(results, Status.UNSUPPORTED),
        "stale": points_without_result(results, Status.STALE),
        "accepted": accepted_points(results),
        "unfinished": points_without_result(results, Status.UNFINISHED),
        "prediction": prediction,
        "profiles": profiles_section(results, runs, links.to),
        "unlike": _unlike(results, facts),
    }


def _headings(name: str, sections: Sequence[ShownSection], leads: bool) -> list[tuple[str, str]]:
    """Headings of sections with their ids."""
    return [
        (section.title, f"{name}-{section.title.lower()}-section")
        for section in sections
        if section.leads == leads
    ]


def _add_data(
    data: dict[str, Any],
    name: str,
    results: ExperimentResults,
    points: Table,
    training: Sequence[ShownSection],
    share: int,
) -> None:
    """What scripts need of an experiment's tables of points, and of its chart."""
    places = {run["run_id"]: place for place, run in enumerate(results.entry["runs"])}
    if points.sources:
        table = data["tables"][f"{name}-points"] = table_data(results, points, share, places)
        if chart := chart_data(results, points, table):
            data["charts"][f"{name}-chart"] = {"table": f"{name}-points", **chart}
    for section in training:
        if section.table is not None:
            key = f"{name}-{section.title.lower()}"
            data["tables"][key] = table_data(results, section.table, share // 4)


def _findings(results: ExperimentResults) -> list[Finding]:
    """The findings of an experiment, from their table; of results without that table, which an
    earlier version made, from its other tables."""
    stated = findings_in(results)
    return find(results) if stated is None else stated


def _collapsed(findings: Sequence[Finding]) -> list[Finding]:
    """What is open and unfolds below the others: all of it, but where nothing on the main metric is
    clear what was asked comes first, and that the repeats do not answer it."""
    main = {name for name, rule in rules().items() if rule.on_main}
    answered = any(finding.rule in main and finding.state == CLEAR for finding in findings)
    return [
        finding
        for finding in findings
        if finding.state == OPEN and (answered or finding.rule not in main)
    ]


def _states(findings: Sequence[Finding]) -> str:
    """How many findings there are, and how many of them are open."""
    several = Counter(finding.state for finding in findings)[OPEN]
    return f"All {counted(len(findings), 'finding')}" + (f", {several:,} open" if several else "")


def _csv_links(folder: Path, links: Links) -> list[tuple[str, str]]:
    return [(path.name, links.to(path)) for path in sorted(folder.glob("*.csv"))]


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
            if name not in shared:
                continue
            values_ = [f"{value} ({counted(count, 'run')})" for value, count in values.items()]
            unlike.append({"source": source, "fact": name, "values": listed(values_, 5)})
    return unlike
