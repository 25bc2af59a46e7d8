"""The report: one HTML page that holds findings, figures, tables and provenance."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis import outliers
from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.aspects.energy.section import DEFINITIONS
from scalesweep.aspects.probes.campaign import ceilings_section
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import PHASES, counted, listed, text_of
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.experiment_part import PageInputs, experiment_part
from scalesweep.report.html_assets import assets, render
from scalesweep.report.links import Links
from scalesweep.report.sections import FILTERS, imported_section, jobs_section
from scalesweep.slurm.job_table import is_incomplete, read_jobs
from scalesweep.tables.hardware import machines, mismatches
from scalesweep.tables.provenance import FACTS, RunFacts, group, read_facts

# Columns of the summary that a page is made of.
OF_SUMMARY = ("run_id", "source", FACTS)
TEMPLATE, SCRIPTS = "report.html.j2", ("tables.js", "charts.js", "report.js")

# The source of published results, and what importers call every campaign.
IMPORTED = "imported"
MOST_LINES = 6  # at the end of a campaign in the terminal


def render_report(*args: Any) -> str:
    """The page of ``page_content`` as HTML; everything from plan, tables, records and jobs is
    escaped."""
    return render_page(page_content(*args))


def render_page(content: Mapping[str, Any]) -> str:
    """The page as HTML."""
    return render(TEMPLATE, content, _FILTERS)


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
    UserError if the figures were not drawn or ``jobs`` is not a table of jobs.
    """
    links = Links(out)
    statuses = {run["run_id"]: run["status"] for s in studies for run in s.entry["runs"]}
    done = [run_id for run_id, status in statuses.items() if status == Status.DONE]
    facts = _facts(summary, done)
    environments = group(facts.values())
    page = PageInputs(plan, max(len(studies), 1), tables, figures, runs, links, facts, environments)
    experiments = [
        experiment_part(page, f"e{place}", results) for place, results in enumerate(studies, 1)
    ]
    return {
        **_of_runs(list(facts.values())),
        **_of_metrics(studies),
        "plan": plan,
        "title": _title(plan, {run.source for run in facts.values()}),
        "repeats": _repeats(studies),
        "targets": listed([*dict.fromkeys(f"{100 * s.target:.0f} %" for s in studies)]),
        "experiments": experiments,
        "data": {"charts": page.charts},
        "assets": assets(SCRIPTS),
        "outliers": outliers,
        "counts": Counter(statuses.values()),
        "total": len(statuses),
        "ceilings": ceilings_section(studies),
        "sources": Counter(summary["source"].tolist()) if "source" in summary else Counter(),
        "machine": _machine(environments),
        "jobs": jobs_section(read_jobs(jobs), links.to(jobs), is_incomplete(jobs))
        if jobs
        else None,
        "environments": environments,
        "mismatches": mismatches({run_id: run.hardware for run_id, run in facts.items()}),
        "unread": len(done) - len(facts),
        "imported": imported_section(plan, links),
        "links": {
            "plan": links.to(out.parent / "plan.csv"),
            "summary": links.to(out.parent / "summary.parquet"),
        },
        "phases": PHASES,
    }


def _repeats(studies: Sequence[ExperimentResults]) -> str:
    """``3 repeats a point``, or ``1 to 5 repeats a point``."""
    several = {int(row.get("repeats") or 0) for results in studies for row in results.points}
    several.discard(0)
    if not several:
        return "no repeats yet"
    low, high = min(several), max(several)
    return (
        f"{low} to {counted(high, 'repeat')} a point"
        if low < high
        else f"{counted(low, 'repeat')} a point"
    )


def _of_runs(facts: Sequence[RunFacts]) -> dict[str, Any]:
    """When and on what the runs were measured."""
    started = sorted(run.started for run in facts if run.started)
    ended = sorted(run.ended for run in facts if run.ended)
    return {
        "published": {run.source for run in facts} == {IMPORTED},
        "hosts": len({host for run in facts for host in run.hosts}),
        "first": _day(started[0]) if started else None,
        "last": _day(ended[-1]) if ended else None,
        "undated": sum(not run.started for run in facts),
        "measured_s": sum(run.wall_s for run in facts if run.wall_s is not None),
        "machines": machines(run.hardware for run in facts),
    }


def _of_metrics(studies: Sequence[ExperimentResults]) -> dict[str, Any]:
    """What the metrics mean that occur in the report."""
    return {
        "quantities": [q for q in QUANTITIES.values() if _shown(q.name, studies)],
        "plain_metrics": _plain_metrics(studies),
        "epochs": any("total_time" in results.measures for results in studies),
    }


def _facts(summary: pd.DataFrame, run_ids: Sequence[str]) -> dict[str, RunFacts]:
    """Facts of these runs, in this order, as the summary has them."""
    if FACTS not in summary:
        return {}
    facts = read_facts(summary["run_id"].tolist(), summary[FACTS].tolist())
    return {run_id: facts[run_id] for run_id in run_ids if run_id in facts}


def _title(plan: Plan, sources: Collection[str | None]) -> str:
    """What the page is about: the campaign; of published results, whose campaign has no name of its
    own, the benchmarks that they are of."""
    if set(sources) != {IMPORTED} or plan["campaign"] != IMPORTED:
        return str(plan["campaign"])
    names = dict.fromkeys(str(entry["benchmark"]) for entry in plan["experiments"])
    return listed([*names], 3)


def write_report(html: str, out: Path) -> None:
    """Write the page so that a reader sees the old one or the new one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, html)


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
    """The rows that a sentence rests on, in one line."""

    def said(value: Any) -> str:
        several = isinstance(value, list)
        return listed([str(part) for part in value], 3) if several else text_of(value)

    key = ", ".join(f"{name} {said(value)}" for name, value in (evidence.get("key") or {}).items())
    return f"{evidence.get('table', '')}: {key or 'whole table'}"


_FILTERS = {
    "when": _minute,
    "described": _described,
    **FILTERS,
}
