"""The report: one HTML page that holds findings, figures, tables and provenance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.aspects.energy.section import DEFINITIONS
from scalesweep.aspects.find import find
from scalesweep.aspects.prediction.section import prediction_section
from scalesweep.aspects.probes.campaign import ceilings_section
from scalesweep.core.formatting import PHASES, counted, listed, number, text_of
from scalesweep.core.own_files import publish
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.cells import unbroken
from scalesweep.experiment.points_table import Table, point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, OPEN, Finding
from scalesweep.findings.table import findings_in
from scalesweep.report.cards import card_section
from scalesweep.report.embedded_figures import embedded_figures, read_index
from scalesweep.report.failures_section import failed_points
from scalesweep.report.html_assets import assets, render
from scalesweep.report.imports_section import imported_section
from scalesweep.report.jobs_section import FILTERS, jobs_section
from scalesweep.report.links import Links, anchors, evidence_links
from scalesweep.report.page_data import (
    MAX_VALUES,
    chart_data,
    packed,
    run_files,
    runs_data,
    table_data,
)
from scalesweep.report.parameters import fixed_parameters
from scalesweep.report.profiles_section import profiles_section
from scalesweep.report.training_sections import (
    ShownSection,
    section_of,
    training_sections,
)
from scalesweep.report.without_result import (
    accepted_points,
    excluded_points,
    points_without_result,
)
from scalesweep.slurm.job_table import read_jobs
from scalesweep.tables.hardware import machines, mismatches
from scalesweep.tables.provenance import FACTS, RunFacts, differences, group, read_facts

# Columns of the summary that a page is made of.
OF_SUMMARY = ("run_id", "source", FACTS)
TEMPLATE, SCRIPTS = "report.html.j2", ("tables.js", "charts.js", "report.js")

# What one page may hold; the rest is linked. A page of 10,000 runs stays below 10 MB with these.
# Rows that the page itself contains, for print and for browsers without scripts.
MAX_ROWS = 1000
MAX_ROWS_EACH = 100
MAX_FAILURES = 150
MAX_SVG_BYTES = 3_000_000
# Beyond so many experiments each unfolds on demand, and beyond so many figures the others do.
MOST_UNFOLDED = 3
# What importers call every campaign (importers/write_campaign.py).
UNNAMED = "imported"
MAX_FIGURES = 6


def render_report(
    plan: Plan,
    studies: Sequence[ExperimentResults],
    summary: pd.DataFrame,
    tables: Path,
    figures: Path,
    runs: Path,
    out: Path,
    jobs: Path | None = None,
) -> str:
    """The page as HTML.

    ``tables``, ``figures`` and ``runs`` are folders; ``out`` is where the page will be, for
    relative links; ``jobs`` is jobs.csv; of the summary it needs the columns
    OF_SUMMARY. Everything from plan, tables, records and jobs is escaped. Raises UserError if the
    figures were not drawn or ``jobs`` is not a table of jobs.
    """
    links = Links(out)
    statuses = {run["run_id"]: run["status"] for s in studies for run in s.entry["runs"]}
    done = [run_id for run_id, status in statuses.items() if status == Status.DONE]
    facts = _facts(summary, done)
    environments = group(facts.values())
    share = min(MAX_ROWS_EACH, max(10, MAX_ROWS // max(len(studies), 1)))
    room = MAX_VALUES // max(len(studies), 1)
    index = read_index(figures)
    budget = {"svg": MAX_SVG_BYTES, "failures": MAX_FAILURES}
    data: dict[str, Any] = {"tables": {}, "charts": {}}
    experiments = []
    for number_, results in enumerate(studies, 1):
        name = f"e{number_}"
        drawn = embedded_figures(index, results.name, name, figures, links, budget)
        points = point_table(results, share)
        training = training_sections(results, facts, drawn, share)
        _add_data(data, name, results, points, training, room)
        data["tables"][f"{name}-runs"] = runs_data(
            results, facts, environments, runs, links.to(runs), room
        )
        findings = _findings(results)
        csv = _csv_links(tables / results.name, links)
        targets = anchors(name, [*data["tables"]], drawn, csv)
        experiments.append(
            {
                "id": name,
                "results": results,
                "counts": Counter(run["status"] for run in results.entry["runs"]),
                "card": card_section(plan, results, findings, targets, facts),
                "findings": [(finding, evidence_links(finding, targets)) for finding in findings],
                "collapsed": _collapsed(findings),
                "states": _states(findings),
                "figures": [f for f in drawn if section_of(f["name"]) is None],
                "training": training,
                "table": points,
                "csv": csv,
                "failures": failed_points(results, runs, links, budget),
                "excluded": excluded_points(results),
                "fixed": fixed_parameters(results),
                "unsupported": points_without_result(results, Status.UNSUPPORTED),
                "stale": points_without_result(results, Status.STALE),
                "accepted": accepted_points(results),
                "unfinished": points_without_result(results, Status.UNFINISHED),
                "prediction": prediction_section(results, share),
                "profiles": profiles_section(results, runs, links.to),
                "unlike": _unlike(results, facts),
            }
        )
    started = sorted(run.started for run in facts.values() if run.started)
    ended = sorted(run.ended for run in facts.values() if run.ended)
    published = {run.source for run in facts.values()} == {"imported"}
    walls = [run.wall_s for run in facts.values() if run.wall_s is not None]
    context = {
        "plan": plan,
        "published": published,
        "title": _title(plan, published),
        "folded": len(experiments) > MOST_UNFOLDED,
        "figures_shown": MAX_FIGURES,
        "experiments": experiments,
        "data": data,
        "assets": assets(SCRIPTS),
        "rows_shown": share,
        "counts": Counter(statuses.values()),
        "total": len(statuses),
        "excluded": sum(len(results.entry["excluded"]) for results in studies),
        "ceilings": ceilings_section(studies),
        "sources": Counter(summary["source"].tolist()) if "source" in summary else Counter(),
        "machine": _machine(environments),
        "hosts": len({host for run in facts.values() for host in run.hosts}),
        "first": _day(started[0]) if started else None,
        "last": _day(ended[-1]) if ended else None,
        "undated": sum(not run.started for run in facts.values()),
        "measured_s": sum(walls),
        "jobs": jobs_section(read_jobs(jobs), links.to(jobs)) if jobs else None,
        "environments": environments,
        "machines": machines(run.hardware for run in facts.values()),
        "mismatches": mismatches({run_id: run.hardware for run_id, run in facts.items()}),
        "unread": len(done) - len(facts),
        "imported": imported_section(plan, links),
        "quantities": [q for q in QUANTITIES.values() if _shown(q.name, studies)],
        "plain_metrics": _plain_metrics(studies),
        "epochs": any("total_time" in results.measures for results in studies),
        "links": {
            "plan": links.to(out.parent / "plan.csv"),
            "summary": links.to(out.parent / "summary.parquet"),
        },
        "phases": PHASES,
    }
    return render(
        TEMPLATE,
        context,
        {
            "when": _minute,
            "described": _described,
            "run_files": run_files,
            "packed": packed,
            "unbroken": unbroken,
            **FILTERS,
        },
    )


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


def _facts(summary: pd.DataFrame, run_ids: Sequence[str]) -> dict[str, RunFacts]:
    """Facts of these runs, in this order, as the summary has them."""
    if FACTS not in summary:
        return {}
    facts = read_facts(summary["run_id"].tolist(), summary[FACTS].tolist())
    return {run_id: facts[run_id] for run_id in run_ids if run_id in facts}


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


def _title(plan: Plan, published: bool) -> str:
    """What the page is about: the campaign; of published results, whose campaign has no name of its
    own, the benchmarks that they are of."""
    if not published or plan["campaign"] != UNNAMED:
        return str(plan["campaign"])
    names = dict.fromkeys(str(entry["benchmark"]) for entry in plan["experiments"])
    return listed([*names], 3)


def write_report(html: str, out: Path) -> None:
    """Write the page so that a reader sees the old one or the new one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    publish(out, html)


def _shown(name: str, studies: Sequence[ExperimentResults]) -> bool:
    """Whether a quantity of the methods section occurs in this report."""
    if any(name in results.measures for results in studies):
        return True
    derived = QUANTITIES[name].derived
    return derived and any(len(series.rows) > 1 for results in studies for series in results.series)


def _plain_metrics(studies: Sequence[ExperimentResults]) -> list[dict[str, str]]:
    """The metrics that programs report themselves, and energy, each with its definition."""
    meanings: dict[str, dict[str, str]] = {}
    for results in studies:
        for name, measure in results.measures.items():
            if name not in QUANTITIES:
                meanings[name] = {
                    "label": measure.label,
                    "unit": "ratio or number" if measure.unit in ("", "1") else measure.unit,
                    "definition": results.entry["metrics"].get(name)
                    or DEFINITIONS.get(name, "as reported by the program"),
                    "better": "higher" if measure.higher else "lower",
                }
    return list(meanings.values())


def _machine(environments: Sequence[Any]) -> str | None:
    """CPU models with cores, by falling number of runs."""
    models = dict.fromkeys(
        f"{entry.facts['CPU']}"
        + (f", {entry.facts['cores']} cores" if "cores" in entry.facts else "")
        for entry in environments
        if "CPU" in entry.facts
    )
    return listed(list(models), 3) or None


def _day(text: str) -> str:
    return text[:10]


def _minute(text: Any) -> str:
    return str(text or "–").replace("T", " ")[:16]


def _described(evidence: Mapping[str, Any]) -> str:
    """Evidence in one line: table, row, numbers."""

    def said(value: Any) -> str:
        several = isinstance(value, list)
        return listed([str(part) for part in value], 3) if several else text_of(value)

    key = ", ".join(f"{name} {said(value)}" for name, value in (evidence.get("key") or {}).items())
    numbers = ", ".join(
        f"{name} = {number(value, 6) if isinstance(value, float) else text_of(value)}"
        for name, value in list((evidence.get("numbers") or {}).items())[:8]
    )
    return f"{evidence.get('table', '')}{f' [{key}]' if key else ''}: {numbers or 'whole table'}"


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
