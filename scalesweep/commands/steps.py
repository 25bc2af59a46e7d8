"""The steps from records to the report, each called by a rule of the workflow.

The arguments of a function are those of its verb, ``step.py tables --results ...``: the campaign's
results folder, and that of the site's runs. Each imports what it needs: processes that read
records start before pandas is imported.
"""

import gc
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from scalesweep.core.files import write_atomic
from scalesweep.core.plan_format import PLAN, read_plan

SUMMARY = "summary.parquet"
_log = logging.getLogger(__name__)


def inventory(campaign: str, write: bool = False, submit_cmd: str = "") -> None:
    """Read the campaign and the state of its runs; print the plan, and write it as plan.csv.

    ``write``: plan.json too, and note this state as the one that all results are made from: a
    record that cannot be trusted is set aside. ``submit_cmd``: how a profile submits a job: say
    each kind of request.
    """
    from scalesweep.jobs.job_requests import shapes_for
    from scalesweep.jobs.runtime_estimates import Estimates
    from scalesweep.planning.plan import build_plan, kept_profiles, write_plan
    from scalesweep.planning.plan_text import plan_text
    from scalesweep.slurm.job_table import Collected, spent
    from scalesweep.smk.batch_queue import filled, run_request
    from scalesweep.smk.campaign_args import plan_of
    from scalesweep.state.stock import note_state, take_stock, tell_stale

    chosen = plan_of(campaign)
    planned = chosen.campaign
    runs = planned.unique_runs()
    states = take_stock(planned, runs, quarantine=write)
    shapes = shapes_for(planned, states, Estimates(planned, states))
    jobs = Collected([]) if shapes is None else spent(runs, planned.runs_folder)
    if jobs.note and planned.keys.budget_node_hours is not None:
        _log.warning("node-hours spent: %s", jobs.note)
    past = None if jobs.note else jobs.rows
    plan = build_plan(planned, {**kept_profiles(planned, runs), **states}, shapes, past)
    chosen.enter(plan)
    if write:
        note_state(planned, states)
    write_plan(planned, plan, as_json=write)
    print(plan_text(plan), end="")
    if submit_cmd:
        requests = [run_request(planned.site, *runs[i]) for i in runs if not states[i].settled]
        for words, count in Counter(filled(submit_cmd, it) for it in requests).items():
            print(f"{count} x {words}")
    if stale := tell_stale(planned, runs, states):
        print(f"\n{stale}")
    print(f"\nevery run: {planned.results / 'plan.csv'}")


def session(campaign: str, out: Path) -> None:
    """Keep the finished points of a campaign in its history, and write the history's page again.
    ``out``: file that names what was written."""
    from scalesweep.history.page import write_history
    from scalesweep.history.session import sessions_of
    from scalesweep.history.store import append
    from scalesweep.smk.campaign_args import plan_of

    chosen = plan_of(campaign).campaign
    assert chosen.history is not None
    if written := append(chosen.history.folder, sessions_of(chosen)):
        write_history(chosen.history)
    write_atomic(out, "".join(f"{path}\n" for path in written), durable=False)


def summarise(results: Path, runs: Path, processes: int = 1) -> None:
    """Summarise the finished runs of a plan: one row each, as Parquet.

    A run whose record or samples turn out to be damaged has failed from here on: plan.json and
    plan.csv say so too, and all that follows is made of the others.
    """
    from scalesweep.analysis.table_io import write_parquet
    from scalesweep.core.causes import Cause
    from scalesweep.core.record import RECORD
    from scalesweep.core.status import Status
    from scalesweep.planning.plan import note_failures
    from scalesweep.report.export_tables import note_inputs
    from scalesweep.state.run_state import set_aside
    from scalesweep.tables.derived import with_derived
    from scalesweep.tables.summary import ROWS, build_summary

    # What is read is kept to the end: looking for garbage takes a tenth of the time and finds none.
    gc.disable()
    experiments = read_plan(results / PLAN)["experiments"]
    planned = [run for experiment in experiments for run in experiment["runs"]]
    finished = dict.fromkeys(run["run_id"] for run in planned if run["status"] == Status.DONE)
    broken: dict[str, str] = {}
    records = [runs / run_id / RECORD for run_id in finished]
    summary = build_summary(records, broken, processes, runs / ROWS)
    for run_id, why in broken.items():
        set_aside(runs / run_id, why)
    if broken:
        # The plan counts them as done, as it was made before they were read. Snakemake will make
        # all of it again with the next call, for the states have changed.
        note_failures(results / PLAN, {i: (Cause.BAD_RECORD, why) for i, why in broken.items()})
    summary = with_derived(summary, experiments)
    write_parquet(summary, results / SUMMARY, {})
    note_inputs(summary, read_plan(results / PLAN), runs, results)


def accounting(results: Path, runs: Path) -> None:
    """Ask Slurm's accounting for the jobs of a campaign: one row each, as CSV."""
    from scalesweep.slurm.job_table import JOBS, collect

    experiments = read_plan(results / PLAN)["experiments"]
    planned = [run for entry in experiments for run in (*entry["runs"], *entry["profiles"])]
    jobs = collect({run["run_id"] for run in planned}, runs, results / JOBS)
    if jobs.note:
        print(f"accounting: {jobs.note}")


def tables(
    results: Path,
    runs: Path,
    experiments: Sequence[str] = (),
    processes: int = 1,
    draw: bool = False,
) -> None:
    """Make tables and figures of experiments (of all, or of these) from the summary: CSV, Parquet,
    and LaTeX for papers; to ``draw``: SVG, PDF and PNG, and an index of them."""
    from scalesweep.analysis.table_io import read_table
    from scalesweep.report.export_tables import write_all

    frame, plan = read_table(results / SUMMARY), read_plan(results / PLAN)
    # Figures are many small objects that live long: looking for garbage took a tenth of the time.
    gc.freeze()
    gc.set_threshold(20_000)
    figures = results / "figures" if draw else None
    write_all(frame, plan, runs, results / "tables", experiments, processes, figures)


def page(results: Path, runs: Path) -> None:
    """Write the report of a campaign: one self-contained HTML page. Its first lines go to the log,
    which the end of a campaign prints."""
    from scalesweep.analysis.table_io import read_table
    from scalesweep.core.joined_experiments import shown
    from scalesweep.experiment.load import load_results
    from scalesweep.report.page import OF_SUMMARY, glance, page_content, render_page
    from scalesweep.slurm.job_table import JOBS

    # All that a page is made of is needed to the end: looking for garbage is a sixth of the time.
    gc.disable()
    plan, out = shown(read_plan(results / PLAN)), results / "report.html"
    rows = read_table(results / SUMMARY, OF_SUMMARY)
    studies = [load_results(entry, results / "tables") for entry in plan["experiments"]]
    folders = {"tables": results / "tables", "figures": results / "figures", "runs": runs}
    content = page_content(plan, studies, rows, **folders, out=out, jobs=results / JOBS)
    write_atomic(out, render_page(content))
    print("\n".join(glance(content)))
