"""What the page shows of one experiment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalesweep.aspects.find import find
from scalesweep.aspects.prediction.section import prediction_section
from scalesweep.core.formatting import counted, listed
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.points_table import Table, point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, OPEN, Finding
from scalesweep.findings.table import findings_in
from scalesweep.report.cards import card_section
from scalesweep.report.embedded_figures import embedded_figures, read_index
from scalesweep.report.failures_section import failed_points
from scalesweep.report.links import Links, anchors, evidence_links
from scalesweep.report.page_data import MAX_VALUES, chart_data, runs_data, table_data
from scalesweep.report.parameters import fixed_parameters
from scalesweep.report.profiles_section import profiles_section
from scalesweep.report.training_sections import ShownSection, section_of, training_sections
from scalesweep.report.without_result import (
    accepted_points,
    excluded_points,
    points_without_result,
)
from scalesweep.tables.provenance import RunFacts, differences, group

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
    return {
        "id": name,
        "results": results,
        "counts": Counter(run["status"] for run in results.entry["runs"]),
        "card": card_section(page.plan, results, findings, targets, facts),
        "findings": [(finding, evidence_links(finding, targets)) for finding in findings],
        "collapsed": _collapsed(findings),
        "states": _states(findings),
        "figures": [figure for figure in drawn if section_of(figure["name"]) is None],
        "training": training,
        "table": points,
        "csv": csv,
        "failures": failed_points(results, runs, links, page.room),
        "excluded": excluded_points(results),
        "fixed": fixed_parameters(results),
        "unsupported": points_without_result(results, Status.UNSUPPORTED),
        "stale": points_without_result(results, Status.STALE),
        "accepted": accepted_points(results),
        "unfinished": points_without_result(results, Status.UNFINISHED),
        "prediction": prediction_section(results, page.rows),
        "profiles": profiles_section(results, runs, links.to),
        "unlike": _unlike(results, facts),
    }


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
    """What is not confirmed and unfolds below the others: all of it, but where nothing on the main
    metric is confirmed what was asked comes first, and that the repeats do not answer it."""
    answered = any(finding.on_main and finding.level == CONFIRMED for finding in findings)
    return [
        finding
        for finding in findings
        if finding.level == OPEN and (answered or not finding.on_main)
    ]


def _states(findings: Sequence[Finding]) -> str:
    """How many findings there are, and how many of them are not confirmed."""
    several = Counter(finding.level for finding in findings)[OPEN]
    return f"All {counted(len(findings), 'finding')}" + (
        f", {several:,} not confirmed" if several else ""
    )


def _csv_links(folder: Path, links: Links) -> list[tuple[str, str]]:
    return [(path.name, links.to(path)) for path in sorted(folder.glob("*.csv"))]


def _unlike(results: ExperimentResults, facts: Mapping[str, RunFacts]) -> list[dict[str, Any]]:
    """Facts in which the finished runs of an experiment differ, per source."""
    by_source: dict[str, list[RunFacts]] = {}
    for run in results.entry["runs"]:
        known = facts.get(run["run_id"])
        if run["status"] == Status.DONE and known is not None:
            by_source.setdefault(known.source, []).append(known)
    unlike = []
    for source, known_runs in by_source.items():
        for name, values in differences(group(known_runs)).items():
            values_ = [f"{value} ({counted(count, 'run')})" for value, count in values.items()]
            unlike.append({"source": source, "fact": name, "values": listed(values_, 5)})
    return unlike
