"""The plan: every run of a campaign with its state, as CSV and JSON, and what it will cost."""

import csv
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.joined_experiments import axes_key
from scalesweep.core.plan_format import (
    PLAN,
    ParameterInfo,
    Plan,
    PlanDataSet,
    PlanExperiment,
    PlanJobs,
    PlanProfile,
    PlanRun,
    read_plan,
    write_plan_file,
)
from scalesweep.core.profilers import KINDS, NOEXCHANGE, folder_name, split_name
from scalesweep.core.status import Status
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.machine import memory_on, peaks_of, threads_per_core
from scalesweep.planning.run_order import positions
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import take_stock

if TYPE_CHECKING:
    from scalesweep.slurm.job_shape import Shape

PLAN_COLUMNS = (
    *("experiment", "scaling", "run_id", "benchmark", "site", "repeat", "position"),
    *("status", "cause", "reason", "threads_per_core"),
)


def build_plan(
    campaign: Campaign,
    states: Mapping[str, RunState],
    shapes: Mapping[str, "Shape"] | None = None,
    jobs: Sequence[dict[str, Any]] | None = None,
) -> Plan:
    """The plan (docs/reference/files.md, plan.json).

    ``states`` may have those of profiled runs that this call does not ask for (``kept_profiles``).
    ``shapes``: what the job of each pending run will ask of Slurm, None on a site without Slurm;
    ``jobs``: the rows of jobs.csv.
    """
    # Not at the top: the Snakefile is parsed with this module, and needs no costs.
    from scalesweep.jobs.job_cost import cost_of_jobs

    estimates = Estimates(campaign, states)
    places = positions(campaign)
    seen: set[str] = set()
    plan: Plan = {
        "campaign": campaign.name,
        "description": campaign.keys.description,
        "file": str(campaign.file),
        "site": campaign.site.name,
        "results": str(campaign.results),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "order": {"seed": campaign.keys.seed, "of": len(places)},
        "experiments": [
            _experiment_entry(campaign, experiment, states, places, estimates, seen)
            for experiment in campaign.experiments
        ],
        "jobs": None if shapes is None else cost_of_jobs(campaign, shapes, jobs, estimates),
    }
    others = {"consumer": campaign.keys.consumer, "ceilings": campaign.site.ceilings}
    more = {
        "data_sets": data_sets(campaign),
        **{key: path for key, path in others.items() if path and Path(path) != campaign.results},
        "peaks": peaks_of(campaign.site),
        "imported": dict(campaign.keys.imported),
    }
    return cast(Plan, {**plan, **{key: value for key, value in more.items() if value}})


def data_sets(campaign: Campaign) -> list[PlanDataSet]:
    """The data sets that the campaign's points read, in their order; none where the memory of the
    site's nodes is not known."""
    memory, sets = campaign.site.memory_gib_per_node, dict[str, PlanDataSet]()
    if memory is None or campaign.site.launch is None:
        return []
    for experiment in campaign.experiments:
        data = experiment.benchmark.data
        for point in experiment.points if data else ():
            assert data is not None
            size = sum(data.needed(point).values()) * int(data.bytes_per_file(point))
            if size:
                name = data.folder(point)
                known = sets.setdefault(
                    name, {"name": name, "experiments": [], "bytes": 0, "nodes": 1}
                )
                if experiment.name not in known["experiments"]:
                    known["experiments"].append(experiment.name)
                known["bytes"] = max(known["bytes"], size)
                known["nodes"] = math.ceil(known["bytes"] / (memory * 2**30))
    return [*sets.values()]


def _experiment_entry(
    campaign: Campaign,
    experiment: Experiment,
    states: Mapping[str, RunState],
    places: Mapping[str, int],
    estimates: Estimates,
    seen: set[str],
) -> PlanExperiment:
    """An experiment's entry in the plan.

    ``seen``: ids of the runs of the experiments before it, to which its own are added.
    """
    benchmark, site = experiment.benchmark, campaign.site
    mesh = benchmark.mesh
    every = [*experiment.runs, *experiment.profiles]
    pending = [
        (site.nodes_for(run.point), estimates.seconds(experiment, run))
        for run in every
        if run.run_id not in seen and not states[run.run_id].settled
    ]
    runs = [
        _run(site, benchmark, run, states[run.run_id], places[run.run_id], run.run_id in seen)
        for run in experiment.runs
    ]
    seen.update(run.run_id for run in every)
    first = benchmark.scaled(experiment.points[0])
    derived = experiment.derivation.derived
    worked_out = [n for n in derived if any(p[n] != first[n] for p in experiment.points)]
    definitions = {name: metric.definition for name, metric in experiment.derived.items()}
    entry: PlanExperiment = {
        "name": experiment.name,
        "description": experiment.keys.description,
        "control": experiment.control,
        "benchmark": benchmark.name,
        "summary": benchmark.summary,
        "version": benchmark.version,
        "main_metric": experiment.main_metric,
        "metrics": {**benchmark.metrics, **definitions},
        "compare": dict(benchmark.compare),
        "kinds": dict(benchmark.kinds),
        "scaling": experiment.keys.scaling,
        "target_efficiency": campaign.keys.target_efficiency,
        "scale": benchmark.scale,
        "scale_parameters": sorted(benchmark.scale_parameters),
        "axes": list(experiment.axes),
        "linked": list(experiment.linked),
        # Those that set an amount, and not how ranks share it.
        "work": sorted(benchmark.work_parameters - (mesh.names - {"ranks"} if mesh else set())),
        "fixed": {k: v for k, v in first.items() if k not in {*experiment.axes, *worked_out}},
        "parameters": _parameters(benchmark),
        "runs": runs,
        "profiles": _profiles(experiment, states),
        "excluded": [
            {"point": benchmark.scaled(point), "reason": why} for point, why in experiment.excluded
        ],
        "points": len(experiment.points),
        "wall_s": _wall_s(campaign, pending, experiment.alone),
    }
    if derived:
        entry["derived_parameters"] = {name: of.text for name, of in derived.items()}
        entry["derived_at"] = {
            axes_key(entry, benchmark.scaled(point)): {name: point[name] for name in worked_out}
            for point in experiment.points
        }
    more = {key: value for key, value in _optional(campaign, experiment, entry).items() if value}
    return cast(PlanExperiment, {**entry, **more})


def _run(
    site: Site, benchmark: Benchmark, run: Run, state: RunState, position: int, reused: bool
) -> PlanRun:
    return {
        "run_id": run.run_id,
        "repeat": run.repeat,
        "position": position,
        "point": benchmark.scaled(run.point),
        "work": benchmark.total_work(run.point),
        "status": state.status,
        "cause": state.cause,
        "detail": state.detail,
        "threads_per_core": threads_per_core(site, benchmark, run.point),
        "reused": reused,
        "to_run": not state.settled,
    }


def _optional(campaign: Campaign, experiment: Experiment, entry: PlanExperiment) -> dict[str, Any]:
    """What only some entries have; left out where it is empty."""
    benchmark = experiment.benchmark
    refused = campaign.keys.imported.get("refused", ())
    stated = dict.fromkeys(it.reason or it.when.text for it in experiment.keys.exclude)
    reasons = {why for _, why in experiment.excluded}
    mesh, transformer = benchmark.mesh, benchmark.transformer
    memory = memory_on(benchmark, campaign.site, experiment.keys.memory_gib_per_rank)
    return {
        "part_of": experiment.part_of,
        "predict": sorted({*experiment.keys.predict}),
        "stop": f"efficiency < {stop:g}" if (stop := experiment.keys.stop_below) else "",
        "ceiling": benchmark.ceiling,
        "noexchange": benchmark.noexchange,
        "idle": [it for it in stated if it not in reasons],
        "refused": sum(of["count"] for of in refused if of["benchmark"] == benchmark.name),
        "derived": {
            name: {key: of for key, of in metric._asdict().items() if key != "definition"}
            for name, metric in experiment.derived.items()
        },
        "mesh": mesh and mesh.texts,
        "transformer": transformer and transformer.texts,
        "memory": memory and memory.texts,
    }


def kept_profiles(
    campaign: Campaign, runs: Mapping[str, tuple[Experiment, Run]]
) -> dict[str, RunState]:
    """State of the profiled runs that are there, asked for now or not, by their folders' names.

    Of points of the campaign's ``runs``.
    """
    parts_of = {path.name: split_name(path.name) for path in campaign.runs_folder.glob("*.*")}
    kept = {name: runs[i] for name, (i, kind) in parts_of.items() if kind in KINDS and i in runs}
    return dict(take_stock(campaign, kept)) if kept else {}


def _profiles(experiment: Experiment, states: Mapping[str, RunState]) -> list[PlanProfile]:
    """The profiled runs of the experiment's points: those asked for, and those that are there.

    Only the former are to be run if they have failed.
    """
    asked = {run.run_id for run in experiment.profiles}
    profiles: dict[str, tuple[str, Run]] = {
        run.run_id: (run.profile, run) for run in experiment.profiles
    }
    for run in experiment.runs:
        for kind in KINDS if run.repeat == 0 else (NOEXCHANGE,):
            if (name := folder_name(run.run_id, kind)) in states:
                profiles.setdefault(name, (kind, run))
    return [
        {
            "run_id": name,
            "kind": kind,
            "point": experiment.benchmark.scaled(run.point),
            "status": states[name].status,
            "cause": states[name].cause,
            "detail": states[name].detail,
            "to_run": name in asked and not states[name].settled,
        }
        for name, (kind, run) in profiles.items()
    ]


def _parameters(benchmark: Benchmark) -> dict[str, ParameterInfo]:
    """What each column of a point means; what runs scale over is listed with the parameters."""
    parameters: dict[str, ParameterInfo] = {
        name: {"unit": p.unit, "doc": p.doc, "default": p.default, "workload": p.workload}
        for name, p in benchmark.parameters.items()
    }
    if benchmark.workers and benchmark.scale not in parameters:
        parameters[benchmark.scale] = {
            "unit": None, "doc": benchmark.workers.doc, "default": None, "workload": False
        }  # fmt: skip
    return parameters


def _wall_s(
    campaign: Campaign, pending: Sequence[tuple[int, float | None]], alone: bool
) -> float | None:
    """Seconds that the pending runs take; None where one of them is not known."""
    known = [(nodes, seconds) for nodes, seconds in pending if seconds is not None]
    if len(known) < len(pending):
        return None
    site = campaign.site
    at_once = 1 if alone else site.concurrent_runs or (None if site.slurm else 1)
    if at_once is None:
        # As many at once as there are nodes: the least time, if no other user has any.
        node_seconds = sum(nodes * seconds for nodes, seconds in known)
        return max([node_seconds / site.nodes, *(seconds for _, seconds in known)])
    return sum(seconds for _, seconds in known) / at_once


def check_budget(campaign: Campaign, plan_jobs: PlanJobs) -> None:
    """Raise UserError if the jobs to come may exceed the campaign's budget.

    ``plan_jobs`` is ``jobs`` of the plan. What has been spent counts, and what the jobs can cost
    at most by their time limits: an expectation can be exceeded, a limit cannot.
    """
    if (left := budget_left(plan_jobs)) < 0:
        raise UserError(
            f"{campaign.file}: budget_node_hours: {plan_jobs['budget_node_hours']:g} node-hours, "
            f"but {hours(plan_jobs['spent_node_hours'])} are spent and the remaining jobs may take "
            f"{hours(plan_jobs['node_hours_limit'])}, {hours(-left)} too many; raise the budget, "
            "or plan fewer repeats, fewer points or a shorter time_limit_minutes"
        )


def budget_left(plan_jobs: PlanJobs) -> float:
    """Node-hours of the budget that are left if all jobs take their limit; infinite without one."""
    if (budget := plan_jobs["budget_node_hours"]) is None:
        return math.inf
    left = budget - plan_jobs["spent_node_hours"] - plan_jobs["node_hours_limit"]
    return round(left, 9)  # 0.3 - 0.1 - 0.2 is nothing, not less than nothing


def hours(node_hours: float | None) -> str:
    """Node-hours for people: 0.125, 12.5, 1,250; ``unknown`` for None and NaN."""
    if node_hours is None or math.isnan(node_hours):
        return "unknown"
    return f"{node_hours:.3g}" if node_hours < 100 else f"{node_hours:,.0f}"


def write_plan(campaign: Campaign, plan: Plan, as_json: bool) -> None:
    """Write plan.csv, and with ``as_json`` plan.json, into the results folder."""
    campaign.results.mkdir(parents=True, exist_ok=True)
    write_atomic(campaign.results / "plan.csv", plan_csv(plan))
    if as_json:
        write_plan_file(campaign.results / PLAN, plan)


def note_failures(path: Path, failed: Mapping[str, tuple[str, str]]) -> None:
    """Let plan.json at ``path``, and plan.csv next to it, say that these runs have failed.

    ``failed``: cause and detail by run. The files keep their times: nothing else has changed.
    """
    plan = read_plan(path)
    for run in chain.from_iterable(experiment["runs"] for experiment in plan["experiments"]):
        if run["run_id"] in failed:
            run["cause"], run["detail"] = failed[run["run_id"]]
            run["status"] = Status.FAILED
    table = path.with_name("plan.csv")
    times = [(file, file.stat()) for file in (path, table)]
    write_plan_file(path, plan)
    write_atomic(table, plan_csv(plan))
    for file, was in times:
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def plan_csv(plan: Plan) -> str:
    """plan.csv: one row per experiment and run, and per excluded point."""
    names: list[str] = []
    for experiment in plan["experiments"]:
        names += [name for name in experiment["parameters"] if name not in names]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*PLAN_COLUMNS, *names])
    for experiment in plan["experiments"]:
        head = [experiment["name"], experiment["scaling"]]
        tail = [experiment["benchmark"], plan["site"]]
        for run in experiment["runs"]:
            load = run["threads_per_core"]
            place = [run["run_id"], *tail, run["repeat"], run["position"]]
            state = [run["status"], run["cause"], run["detail"]]
            state.append("" if load is None else f"{load:.4g}")
            writer.writerow([*head, *place, *state, *(_cell(run["point"].get(n)) for n in names)])
        for excluded in experiment["excluded"]:
            values = [_cell(excluded["point"].get(name)) for name in names]
            writer.writerow(
                [*head, "", *tail, "", "", Status.EXCLUDED, "", excluded["reason"], "", *values]
            )
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value
