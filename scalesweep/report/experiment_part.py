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

from scalesweep.aspects.find import find
from scalesweep.aspects.layouts.card import layout_card
from scalesweep.aspects.order import SECTIONS
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
from scalesweep.findings.base import Finding
from scalesweep.findings.table import findings_in
from scalesweep.report.first_screen import first_screen
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
    """A heading within an experiment: sentences and a table (None: there is none)."""

    title: str
    notes: list[str]
    table: Table | None


@cache
def _sections() -> Sequence[Section]:
    """All sections, in their order."""
    places = {title: place for place, title in enumerate(SECTIONS)}
    sections = [module.SECTION for module in parts("section")]
    return sorted(sections, key=lambda section: places.get(section.title, len(places)))


def shown_sections(
    results: ExperimentResults, facts: Mapping[str, RunFacts], limit: int
) -> list[ShownSection]:
    """The sections that have a table or sentences; tables have at most ``limit`` rows."""
    shown = []
    for section in _sections():
        table = section.table(results, limit)
        of_runs = section.of_runs(results, facts) if section.of_runs else []
        if table is not None or of_runs:
            notes = [*section.notes(results), *of_runs]
            shown.append(ShownSection(section.title, notes, table))
    return shown


# Colours of figures that the page replaces by its own, light or dark; not where text is on colour.
_THEME = {
    "#1f2328": "var(--ink)",
    "#ffffff": "var(--page)",
    "#e3e6ea": "var(--line)",
    "#6b7280": "var(--soft)",
    "#0072b2": "var(--s1)",
    "#d55e00": "var(--s2)",
    "#009e73": "var(--s3)",
    "#cc79a7": "var(--s4)",
}
_LINES = ("scaling", "parameter", "groups", "warm-up", "control")


def _themed(name: str, svg: str) -> str:
    """A figure of lines in the page's colours."""
    if not name.startswith(_LINES):
        return svg
    for colour, own in _THEME.items():
        svg = svg.replace(f": {colour}", f": {own}")
    return svg


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
                "svg": None if svg is None else Markup(_themed(entry["name"], svg)),
                "light": not entry["name"].startswith(_LINES),
                "short": entry["name"].partition("-")[0],
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
    training = shown_sections(results, facts, page.rows)
    _add_data(page.data, name, results, points, training, page.values)
    page.data["tables"][f"{name}-runs"] = runs_data(
        results, facts, page.environments, runs, links.to(runs), page.values
    )
    findings = _findings(results)
    csv = _csv_links(page.tables / results.name, links)
    targets = anchors(name, [*page.data["tables"]], drawn, csv)
    failures = failed_points(results, runs, links, page.room)
    screen = first_screen(page.plan, results, findings, [*targets.figures], facts, failures)
    return {
        "id": name,
        "screen": screen,
        "main": next((figure for figure in drawn if figure["name"] == screen["figure"]), None),
        "figures": [figure for figure in drawn if figure["name"] != screen["figure"]],
        "layouts": layout_card(results, findings),
        "results": results,
        "constant": constant_words(results.entry),
        "benchmarks": [*benchmarks_of(results.entry).items()],
        "counts": Counter(run["status"] for run in results.entry["runs"]),
        "findings": [(finding, evidence_links(finding, targets)) for finding in findings],
        "training": training,
        "table": points,
        "csv": csv,
        "failures": failures,
        "without": _without(results, runs),
        "fixed": fixed_parameters(results),
        "profiles": profiles_section(results, runs, links.to),
        "unlike": _unlike(results, facts),
    }


_STALE = "The records of these runs are of something else than the plan asks for now"


def _without(results: ExperimentResults, runs: Path) -> list[tuple[str, str, Any]]:
    """Points that no table counts, or that count although they differ: heading, meaning, rows."""
    lists = [
        (
            "Unsupported points",
            "This machine could not run them. `snakemake --config retry=unsupported` tries again.",
            points_without_result(results, Status.UNSUPPORTED),
        ),
        (
            "Stale runs",
            f"{_STALE}; no table counts them.",
            points_without_result(results, Status.STALE),
        ),
        ("Accepted runs", f"{_STALE}; `accept_stale` takes them.", accepted_points(results)),
        ("Failed runs of the source", "", failed_elsewhere(results, runs)),
        (
            "Unfinished runs",
            "These were cut or aborted, and count in no mean.",
            points_without_result(results, Status.UNFINISHED),
        ),
        ("Points excluded on purpose", "", excluded_points(results)),
    ]
    return [entry for entry in lists if entry[2]]


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
