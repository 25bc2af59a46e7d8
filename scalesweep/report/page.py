"""The report: one HTML page that holds findings, figures, tables and provenance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from scalesweep.analysis import stats
from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.aspects.energy.table import DEFINITIONS
from scalesweep.aspects.probes.table import ceilings_section
from scalesweep.core.formatting import PHASES, counted, listed
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.experiment_part import experiment_part
from scalesweep.report.html_assets import assets, render
from scalesweep.report.inputs import PageInputs, links_from
from scalesweep.slurm.job_table import Row, is_incomplete, overhead_s, read_jobs
from scalesweep.slurm.sacct import FINAL
from scalesweep.tables.hardware import machines, mismatches
from scalesweep.tables.provenance import FACTS, Environment, RunFacts, group, read_facts

# Columns of the summary that a page is made of.
OF_SUMMARY = ("run_id", "source", FACTS)
TEMPLATE, SCRIPTS = "report.html.j2", ("tables.js", "charts.js", "report.js")
IMPORTED = "imported"  # the source of published results, and what importers call every campaign
MOST_LINES = 6  # at the end of a campaign in the terminal


def render_page(content: Mapping[str, Any]) -> str:
    """The page of ``page_content`` as HTML; everything from plan, tables, records and jobs is
    escaped."""
    return render(TEMPLATE, content, {})


def glance(content: Mapping[str, Any]) -> list[str]:
    """What the first screen's table says, a line for each of at most ``MOST_LINES`` experiments."""
    lines = [(e["results"].name, e["screen"]["line"].text) for e in content["experiments"]]
    wide = max((len(name) for name, _ in lines), default=0)
    more = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return [f"{name:{wide}}  {said}" for name, said in lines[:MOST_LINES]] + more


def page_content(
    plan: Plan,
    studies: Sequence[ExperimentResults],
    summary: pd.DataFrame,
    tables: Path,
    figures: Path,
    runs: Path,
    out: Path,
    jobs: Path | None = None,
) -> dict[str, Any]:
    """What the page shows.

    ``tables``, ``figures`` and ``runs`` are folders; ``out`` is where the page will be, for
    relative links; ``jobs`` is jobs.csv; of the summary it needs the columns OF_SUMMARY. Raises
    UserError if ``jobs`` cannot be read.
    """
    links = links_from(out)
    statuses = {run["run_id"]: run["status"] for s in studies for run in s.entry["runs"]}
    done = [run_id for run_id, status in statuses.items() if status == Status.DONE]
    known: Mapping[str, RunFacts] = {}
    if FACTS in summary:
        known = read_facts(summary["run_id"].tolist(), summary[FACTS].tolist())
    facts = {run_id: known[run_id] for run_id in done if run_id in known}
    environments = group(facts.values())
    page = PageInputs(plan, max(len(studies), 1), tables, figures, runs, links, facts, environments)
    experiments = [
        experiment_part(page, f"e{place}", results) for place, results in enumerate(studies, 1)
    ]
    sources = {run.source for run in facts.values()}
    benchmarks = dict.fromkeys(str(entry["benchmark"]) for entry in plan["experiments"])
    # Published results, whose campaign has no name of its own, are named by what they are of.
    unnamed = sources == {IMPORTED} and plan["campaign"] == IMPORTED
    rows, imported = read_jobs(jobs) if jobs else [], plan.get("imported")
    return {
        "first": min((run.started[:10] for run in facts.values() if run.started), default=None),
        "last": max((run.ended[:10] for run in facts.values() if run.ended), default=None),
        "machine": _machine(environments),
        "plan": plan,
        "title": listed([*benchmarks], 3) if unnamed else str(plan["campaign"]),
        "published": sources == {IMPORTED},
        "repeats": _repeats(studies),
        "targets": listed([*dict.fromkeys(f"{100 * s.target:g} %" for s in studies)]),
        "experiments": experiments,
        "data": {"charts": page.charts},
        "assets": assets(SCRIPTS),
        "outliers": stats,
        "counts": Counter(statuses.values()),
        "total": len(statuses),
        "ceilings": ceilings_section(studies),
        "measured": "measured" in set(summary.get("source", ())),
        "hosts": len({host for run in facts.values() for host in run.hosts}),
        "jobs": _jobs(rows, links(jobs), is_incomplete(jobs)) if jobs else None,
        "environments": environments,
        "machines": machines(run.hardware for run in facts.values()),
        "mismatches": mismatches({run_id: run.hardware for run_id, run in facts.items()}),
        "unread": len(done) - len(facts),
        "imported": imported and {**imported, "list": links(Path(imported["list"]))},
        "metrics": _metrics(studies),
        "epochs": any("total_time" in results.measures for results in studies),
        "phases": PHASES,
    }


def _repeats(studies: Sequence[ExperimentResults]) -> str:
    """``3 repeats a point``, or ``1 to 5 repeats a point``."""
    every = {int(row.get("repeats") or 0) for results in studies for row in results.points} or {0}
    low, high = min(every - {0}, default=0), max(every)
    return f"{f'{low} to ' if low < high else ''}{counted(high, 'repeat')} a point"


def _metrics(studies: Sequence[ExperimentResults]) -> list[dict[str, str]]:
    """What numbers of this report mean: of programs, of this package, and derived ones."""
    several = any(len(series.rows) > 1 for results in studies for series in results.series)
    named = {name: (results, measure) for results in studies
             for name, measure in results.measures.items()}  # fmt: skip
    meanings = [
        {"label": of.label, "unit": of.unit, "better": of.better, "definition": of.formula}
        for name, of in QUANTITIES.items()
        if name in named or (of.derived and several)
    ]
    return meanings + [
        {
            "label": measure.label, "unit": measure.unit,
            "better": "higher" if measure.higher else "lower",
            "definition": results.entry["metrics"].get(name) or DEFINITIONS.get(name)
            or "as reported by the program",
        }
        for name, (results, measure) in named.items()
        if name not in QUANTITIES
    ]  # fmt: skip


def _machine(environments: Sequence[Environment]) -> str:
    """CPU models with cores, by falling number of runs."""
    facts = [of.facts for of in environments if "CPU" in of.facts]
    words = [of["CPU"] + (f", {of['cores']} cores" if "cores" in of else "") for of in facts]
    return listed([*dict.fromkeys(words)], 3)


def _jobs(rows: Sequence[Row], link: str, incomplete: bool) -> dict[str, Any] | None:
    """What the template needs of the rows of jobs.csv, at ``link``; None if there are none, and
    the accounting has answered (not ``incomplete``)."""
    if not rows and not incomplete:
        return None
    over = [row for row in rows if row["state"] in FINAL]
    waits = [row["wait_s"] for row in rows if row["wait_s"] is not None]
    return {
        "link": link,
        "incomplete": incomplete,
        "count": len(rows),
        "ends": Counter(row["cause"] or row["state"].lower() for row in over),
        "waiting": len(rows) - len(over),
        "wait_s": median(waits) if waits else None,
        "held_s": overhead_s(rows),
        "node_hours": sum(row["node_hours"] or 0 for row in over),
    }
