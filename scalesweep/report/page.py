"""The report: one HTML page that holds findings, figures, tables and provenance."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis import stats
from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.aspects.energy.table import DEFINITIONS
from scalesweep.aspects.probes.table import ceilings_section
from scalesweep.core.formatting import PHASES, counted, listed, text_of
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.experiment_part import PageInputs, experiment_part
from scalesweep.report.html_assets import assets, render
from scalesweep.report.links import Links
from scalesweep.report.sections import imported_section, jobs_section
from scalesweep.slurm.job_table import is_incomplete, read_jobs
from scalesweep.tables.hardware import machines, mismatches
from scalesweep.tables.provenance import FACTS, RunFacts, group, read_facts

# Columns of the summary that a page is made of.
OF_SUMMARY = ("run_id", "source", FACTS)
TEMPLATE, SCRIPTS = "report.html.j2", ("tables.js", "charts.js", "report.js")
IMPORTED = "imported"  # the source of published results, and what importers call every campaign
MOST_LINES = 6  # at the end of a campaign in the terminal


def render_page(content: Mapping[str, Any]) -> str:
    """The page of ``page_content`` as HTML; everything from plan, tables, records and jobs is
    escaped."""
    return render(TEMPLATE, content, {"when": _minute, "described": _described})


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
    UserError if the index of figures or ``jobs`` cannot be read.
    """
    links = Links(out)
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
    rows = read_jobs(jobs) if jobs else []
    return {
        **_times(facts.values()),
        "machine": _machine(environments),
        "plan": plan,
        "title": listed([*benchmarks], 3) if unnamed else str(plan["campaign"]),
        "published": sources == {IMPORTED},
        "repeats": _repeats(studies),
        "targets": listed([*dict.fromkeys(f"{100 * s.target:.0f} %" for s in studies)]),
        "experiments": experiments,
        "data": {"charts": page.charts},
        "assets": assets(SCRIPTS),
        "outliers": stats,
        "counts": Counter(statuses.values()),
        "total": len(statuses),
        "ceilings": ceilings_section(studies),
        "measured": "measured" in set(summary.get("source", ())),
        "hosts": len({host for run in facts.values() for host in run.hosts}),
        "jobs": jobs_section(rows, links.to(jobs), is_incomplete(jobs)) if jobs else None,
        "environments": environments,
        "machines": machines(run.hardware for run in facts.values()),
        "mismatches": mismatches({run_id: run.hardware for run_id, run in facts.items()}),
        "unread": len(done) - len(facts),
        "imported": imported_section(plan, links),
        "metrics": _metrics(studies),
        "epochs": any("total_time" in results.measures for results in studies),
        "phases": PHASES,
    }


def _repeats(studies: Sequence[ExperimentResults]) -> str:
    """``3 repeats a point``, or ``1 to 5 repeats a point``."""
    several = {int(row.get("repeats") or 0) for results in studies for row in results.points} - {0}
    if not several:
        return "no repeats yet"
    low, high = min(several), max(several)
    return f"{f'{low} to ' if low < high else ''}{counted(high, 'repeat')} a point"


def _times(facts: Collection[RunFacts]) -> dict[str, Any]:
    """The first and the last day of the runs, and whether some have none."""
    started = sorted(run.started[:10] for run in facts if run.started)
    ended = sorted(run.ended[:10] for run in facts if run.ended)
    first, last = started[:1], ended[-1:]
    return {
        "first": first[0] if first else None,
        "last": last[0] if last else None,
        "undated": len(started) < len(facts),
    }


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
    for name, (results, measure) in named.items():
        if name not in QUANTITIES:
            said = results.entry["metrics"].get(name) or DEFINITIONS.get(name)
            meanings.append({
                "label": measure.label, "unit": measure.unit,
                "better": "higher" if measure.higher else "lower",
                "definition": said or "as reported by the program",
            })  # fmt: skip
    return meanings


def _machine(environments: Sequence[Any]) -> str | None:
    """CPU models with cores, by falling number of runs."""
    models = dict.fromkeys(
        f"{entry.facts['CPU']}"
        + (f", {entry.facts['cores']} cores" if "cores" in entry.facts else "")
        for entry in environments
        if "CPU" in entry.facts
    )
    return listed(list(models), 3) or None


def _minute(text: Any) -> str:
    return str(text or "–").replace("T", " ")[:16]


def _described(evidence: Mapping[str, Any]) -> str:
    """The rows that a sentence rests on, in one line."""
    key = ", ".join(f"{name} {text_of(value)}" for name, value in evidence.get("key", {}).items())
    return f"{evidence.get('table', '')}: {key or 'whole table'}"
