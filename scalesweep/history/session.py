"""The finished points of a campaign as sessions: a row per run and number, with all around it."""

import json
import math
from collections.abc import Container, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.metrics import (
    EPOCH_METRICS,
    EPOCH_PHASES,
    EXTENSIVE,
    NEVER,
    Quantity,
    column,
    compared,
    derived_names,
    quantities_of,
)
from scalesweep.analysis.parquet import read_frame
from scalesweep.analysis.step_account import TERMS, StepAccount
from scalesweep.analysis.table_io import read_table
from scalesweep.config.campaign import Campaign
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment, PlanProfile, PlanRun, read_plan
from scalesweep.core.record import RECORD, parse_record
from scalesweep.core.record_check import BadRecordError
from scalesweep.core.status import Status
from scalesweep.history.store import CANARY, METRIC, PART, TERM, frame_of
from scalesweep.history.tracked import Tracker
from scalesweep.judge.facts import facts_of
from scalesweep.tables.bookkeeping import ACCOUNT, PARTS
from scalesweep.tables.bookkeeping import CANARY as LOOKS
from scalesweep.tables.provenance import run_facts

_COMMIT = "git commit"  # has columns of its own
_MAIN = "total_throughput"  # of a benchmark that names no main metric
_MS = 1e3
WHOLE = "One step"  # the term that all others add up to
FORMULA = " = "  # between the name of a derived metric and its formula
PHASES = ("later", "run", "init")  # of a metric the first there is tells most
_TIMES = ("ns", "us", "ms", "s", "min", "h")
_CANARY_UNITS = {"compute": "FLOP/s", "memory": "bytes/s"}
# Tables with a row per profiled run and part of a step: the column that names the part.
_PROFILES = {"trace": "part", "timeline": "phase"}


def sessions_of(campaign: Campaign) -> pd.DataFrame:
    """The finished runs of a campaign's results folder, as rows of a history; a group for each
    commit measured.

    Reads ``plan.json``, ``summary.parquet`` and the records. Raises UserError for what cannot be
    read; a record that has gone since is left out.
    """
    summary = read_table(campaign.results / "summary.parquet")
    by_name = {experiment.name: experiment for experiment in campaign.experiments}
    tracker = Tracker(campaign.track.repository)
    rows: list[dict[str, Any]] = []
    taken: set[str] = set()
    for entry in read_plan(campaign.results / "plan.json")["experiments"]:
        if entry["name"] not in by_name:
            continue  # the campaign file was edited since
        outside = _outside_series(entry)
        numbers = numbers_of(summary, entry), _profiled(campaign.results, entry)
        of_run = {run_id: own for of in numbers for run_id, own in of.groupby("run_id")}
        runs: list[PlanRun | PlanProfile] = [*entry["runs"], *entry["profiles"]]
        for run in runs:
            record = usable_record(campaign.runs_folder / run["run_id"])
            if run["run_id"] in taken or run["run_id"] not in of_run or record is None:
                continue
            taken.add(run["run_id"])
            tracked = tracker.of(record, by_name[entry["name"]].benchmark)
            head = head_of(campaign, entry, record, run["point"]) | {
                "results": str(campaign.results.resolve()),
                "series": _series_of(entry, run, outside),
                "commit": tracked.commit or None,
                "dirty": tracked.dirty,
                "commit_time": _time(tracked.time),
                **{name: getattr(tracked, name) for name in ("subject", "tags", "repository")},
            }
            group = [campaign.site.name, campaign.name, head["results"]]
            head["group"] = digest_of([*group, tracked.commit, tracked.dirty], 8)
            own = of_run[run["run_id"]]
            profiler = str((record.get("notes") or {}).get("importer") or "run")
            own = own.fillna({"phase": profiler})  # two tools see different parts
            rows += [head | {str(k): v for k, v in row.items()} for row in own.to_dict("records")]
    return frame_of(rows)


def _profiled(results: Path, entry: PlanExperiment) -> pd.DataFrame:
    """The parts of a step of the profiled runs of an experiment, as its tables have them: of each
    the ms, and its share (unit 1). Shares are as stated, since phases of a timeline overlap."""
    done = [run["run_id"] for run in entry["profiles"] if run["status"] == Status.DONE]
    made = [pd.DataFrame(columns=["run_id", "metric", "value", "unit", "phase"])]
    for table, name in _PROFILES.items():
        path = results / "tables" / entry["name"] / f"{table}.parquet"
        if path.is_file() and done:
            frame = read_frame(path, ["run_id", name, "ms", "share"])
            frame = frame[frame["run_id"].isin(done)].rename(columns={name: "metric"}).dropna()
            for value, unit, title in (("ms", "ms", ""), ("share", "1", "share of ")):
                own = frame[["run_id"]].assign(value=frame[value], unit=unit, phase=table)
                made.append(own.assign(metric=title + frame["metric"].astype(str)))
    return pd.concat(made[1:] or made).assign(**_plain(PART))


def _plain(kind: str, better: str = "lower") -> dict[str, Any]:
    """What rows that are no metrics have in common: nothing is judged."""
    return {"kind": kind, "better": better, "main": False, "judged": False, "ideal": ""}


def _outside_series(entry: PlanExperiment) -> set[str]:
    """The parameters that change along a scaling series (``analysis.factors``), and those that
    follow from others."""
    along = {axis for axis in entry["axes"] if axis not in series_parameters(entry)}
    follow = {name for values in entry.get("derived_at", {}).values() for name in values}
    return along | follow | {entry["scale"], *entry["scale_parameters"]}


def _series_of(entry: PlanExperiment, run: PlanRun | PlanProfile, outside: Container[str]) -> str:
    """What the points of one scaling series share, in JSON: kind of scaling, parameters, and in
    strong scaling the work."""
    by_work = entry["scaling"] == "strong" and entry["work"]
    point = run["point"]
    shared = {
        name: point[name]
        for name, info in entry["parameters"].items()
        if name in point and name not in outside and point[name] != info["default"]
    }
    return canonical_json([entry["scaling"], run.get("work") if by_work else None, shared])


def usable_record(folder: Path) -> dict[str, Any] | None:
    """The record of a run, or None without one that can be read and says when it began."""
    try:
        record = parse_record((folder / RECORD).read_bytes(), folder.name)
    except (OSError, BadRecordError):
        return None
    return record if _time(record["started"]) else None


def _time(text: Any) -> datetime | None:
    """A moment in UTC, to the millisecond; None for what is none."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def head_of(
    campaign: Campaign, entry: PlanExperiment, record: Mapping[str, Any], planned: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run was of, where and with what: the columns that all of its rows share.

    ``entry``: of its experiment in the plan; ``planned``: the point as the plan has it.
    ``identity`` is the point without what has its default, as in the run's id.
    """
    point, infos = record["point"], entry["parameters"]
    unusual = {n: v for n, v in point.items() if n not in infos or v != infos[n]["default"]}
    run = run_facts(record)
    known = {k: v for k, v in facts_of(run).items() if not k.startswith(_COMMIT)}
    program = record.get("program") or {}
    frameworks = {e.benchmark.name: e.benchmark.framework for e in campaign.experiments}
    launch = program.get("launch") or campaign.site.launch_for(frameworks.get(record["benchmark"]))
    files = (program.get("files") or {}).values()
    digests = [file.get("blake2b") for file in files if file.get("blake2b")]
    gpus = known.get("GPUs") or known.get("GPU")
    device = point.get("device")
    return {
        "campaign": campaign.name,
        **{name: record[name] for name in ("site", "source", "benchmark", "version", "repeat")},
        "experiment": entry["name"],
        "scaling": entry["scaling"],
        "scale": entry["scale"],
        "workers": int(planned.get(entry["scale"], point["ranks"])),
        "identity": canonical_json(unusual),
        "point": canonical_json(point),
        "label": ", ".join(f"{name} {text_of(planned.get(name))}" for name in entry["axes"]),
        "started": _time(record["started"]),
        "ended": _time(record["ended"]),
        "device": device if device in ("cpu", "gpu") else "gpu" if gpus else "cpu",
        "hosts": " ".join(sorted(run.hosts)),
        "launcher": " ".join((launch.get("multi") or launch.get("single") or [""])[:1]),
        "program": digest_of(sorted(digests), 6) if digests else "",
        "facts": canonical_json(known),
    }


def numbers_of(summary: pd.DataFrame, entry: PlanExperiment) -> pd.DataFrame:
    """What the runs of an experiment have measured, a row per run and number: means of metrics, the
    terms of its step in ms, the machine's rates, and its parts in s (their phase is missing).

    Judged are metrics of the whole run and the main one in its steady phase: times and rates of
    epochs say the same in several ways. A derived metric's name has its formula: another one begins
    another series.
    """
    summary = summary[summary["run_id"].isin([run["run_id"] for run in entry["runs"]])]
    others = []
    for name, rows_of in ((ACCOUNT, _terms), (LOOKS, _canary), (PARTS, _parts)):
        for run_id, text in zip(summary["run_id"], summary.get(name, ()), strict=False):
            if isinstance(text, str):
                others += [{"run_id": run_id, **row} for row in rows_of(json.loads(text))]
    metrics = _metrics(summary, entry)
    return pd.concat([metrics, pd.DataFrame(others)], ignore_index=True) if others else metrics


def _metrics(summary: pd.DataFrame, entry: PlanExperiment) -> pd.DataFrame:
    quantities, derived = quantities_of(summary, entry["benchmark"]), entry.get("derived", {})
    for name in derived_names(summary, entry["benchmark"]) - derived.keys():
        del quantities[name]  # of another experiment that shares runs
    main = entry["main_metric"] or _MAIN
    named = {
        column(name, "mean", phase): (name, phase)
        for name in quantities
        for phase in ((*EPOCH_PHASES, "run") if name in EPOCH_METRICS else ("run",))
    }
    there = [name for name in named if name in summary]
    rows: pd.DataFrame = (
        summary[["run_id", *there]].melt("run_id", var_name="column").astype({"value": float})
    )
    rows = rows[np.isfinite(rows["value"])]
    metrics = [named[name][0] for name in rows["column"]]
    rows = rows.assign(metric=metrics, phase=[named[name][1] for name in rows["column"]])
    of_main = rows["metric"] == main
    rank = rows["phase"].map(PHASES.index).where(of_main)
    steady = of_main & (rank == rank.groupby(rows["run_id"]).transform("min"))
    never = {n for n in quantities if compared(n, entry.get("compare", {}), main) == NEVER}
    titles = {name: f"{name}{FORMULA}{of['formula']}" for name, of in derived.items()}
    del rows["column"]
    return rows.assign(
        kind=METRIC,
        metric=[titles.get(name, name) for name in metrics],
        unit=[quantities[name].unit for name in metrics],
        better=[quantities[name].better for name in metrics],
        ideal=[_ideal_of(quantities[name]) for name in metrics],
        main=steady,
        judged=(steady | (rows["phase"] == "run")) & ~rows["metric"].isin(never),
    )


def _ideal_of(quantity: Quantity) -> str:
    """What ideally becomes of a metric as workers are added.

    ``total``: a rate of all of them, which grows; ``rank``: that of one, which stays; ``time``: as
    the kind of scaling says; empty: nothing is known.
    """
    if quantity.scales and not quantity.of_time:
        return quantity.scope
    timed = quantity.unit in _TIMES and quantity.of_time and quantity.kind in ("", EXTENSIVE)
    return "time" if timed else ""


def _canary(looks: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rates of the slowest host before and after the run."""
    for when, rates in looks.items():
        for kind, (_, rate) in rates.items():
            unit = _CANARY_UNITS.get(kind, "")
            row = {"metric": kind, "phase": when, "value": float(rate), "unit": unit}
            yield {**_plain(CANARY, "higher"), **row}


def _parts(parts: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Seconds of a rank by part of the program, as a profile has them."""
    for part, seconds in parts.items():
        yield {**_plain(PART), "metric": part, "value": seconds, "unit": "s"}


def _terms(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The terms of a run's step in ms, by their titles, and the whole."""
    account = StepAccount.from_json(content)
    for term, title in {**TERMS, "elapsed": WHOLE}.items():
        value = account.elapsed if term == "elapsed" else account.term(term)
        if value is not None and math.isfinite(value):
            row = {"metric": title, "phase": account.form, "value": value * _MS, "unit": "ms"}
            yield {**_plain(TERM), **row}
