"""The finished points of a campaign as sessions: a row per run and number, with all around it."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.parquet import read_frame
from scalesweep.analysis.step_account import StepAccount
from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.steps.terms import TERMS
from scalesweep.config.campaign import Campaign
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment, read_plan
from scalesweep.core.record import RECORD, parse_record
from scalesweep.core.record_check import BadRecordError
from scalesweep.history.store import PART, SPEEDUP, TERM, frame_of
from scalesweep.history.tracked import Tracked, tracked_of
from scalesweep.importers.imported_run import GPU
from scalesweep.importers.write_records import IMPORTED, SOURCE_DIGEST
from scalesweep.judge.facts import facts_of
from scalesweep.judge.metrics import metrics_of
from scalesweep.tables.bookkeeping import ACCOUNT, PARTS
from scalesweep.tables.comparisons import EFFICIENCY
from scalesweep.tables.comparisons import SPEEDUP as QUANTITY
from scalesweep.tables.machine_load import LEFT_OUT, calm_rows
from scalesweep.tables.provenance import run_facts

_COMMIT = "git commit"  # has columns of its own
_MS = 1e3
WHOLE = "One step"  # the term that all others add up to


def sessions_of(campaign: Campaign) -> pd.DataFrame:
    """The finished runs of a campaign's results folder, as rows of a history; a group for each
    commit measured.

    Reads ``plan.json``, ``summary.parquet`` and the records. Raises UserError for what cannot be
    read; a record that has gone since is left out, and runs that others disturbed, as in tables.
    """
    summary = read_table(campaign.results / "summary.parquet")
    by_name = {experiment.name: experiment for experiment in campaign.experiments}
    noted = _noted(summary)
    rows: list[dict[str, Any]] = []
    taken: set[str] = set()
    row_of = {run_id: row for row, run_id in enumerate(summary["run_id"])}
    for entry in read_plan(campaign.results / "plan.json")["experiments"]:
        if entry["name"] not in by_name:
            continue  # the campaign file was edited since
        of_run: dict[str, list[dict[Any, Any]]] = {}
        frames = metrics_of(summary, entry), _speedups(campaign.results, entry)
        for row in (row for frame in frames for row in frame.to_dict("records")):
            of_run.setdefault(row["run_id"], []).append(row)
        there = [run for run in entry["runs"] if run["run_id"] in row_of]
        rows_of = [row_of[run["run_id"]] for run in there]
        calm = calm_rows(summary, rows_of, [canonical_json(run["point"]) for run in there])
        for run in (run for run, row in zip(there, rows_of, strict=True) if row in calm):
            run_id = run["run_id"]
            record = usable_record(campaign.runs_folder / run_id)
            if run_id in taken or run_id not in of_run or record is None:
                continue
            taken.add(run_id)
            benchmark = by_name[entry["name"]].benchmark
            head = head_of(campaign, entry, record, run["point"])
            tracked = tracked_of(record, benchmark, campaign.keys.track.repository)
            head |= _commit_of(campaign, tracked)
            notes = record["notes"]
            source = notes.get(SOURCE_DIGEST)
            head["read_from"] = digest_of([source, tracked.commit], 8) if source else ""
            profiler = str(notes.get("importer") or "run")
            # Two tools see different parts.
            rows += [
                {**head, **row, "run_id": run_id, "phase": row["phase"] or profiler}
                for row in (*of_run[run_id], *noted.get(run_id, ()))
            ]
    return frame_of(rows)


def _commit_of(campaign: Campaign, tracked: Tracked) -> dict[str, Any]:
    """The columns on the commit that a run measured; ``group``: of what it is a session."""
    results = str(campaign.results.resolve())
    group = [campaign.site.name, campaign.name, results, tracked.commit, tracked.dirty]
    return {
        **{name: getattr(tracked, name) for name in ("dirty", "subject", "tags", "repository")},
        "commit": tracked.commit or None,
        "commit_time": _time(tracked.time),
        "results": results,
        "group": digest_of(group, 8),
    }


def _speedups(results: Path, entry: PlanExperiment) -> pd.DataFrame:
    """The speedup of each point over the base of its series, as the tables of an experiment have
    it, with the efficiency as its share; with the first of its point's runs that count."""
    folder = results / "tables" / entry["name"]
    if not (folder / "comparisons.parquet").is_file():
        return pd.DataFrame()
    made = read_frame(folder / "comparisons.parquet").query("question == 'scaling'")
    at = ["point_id", "metric", "phase"]
    shares = made[made["quantity"] == EFFICIENCY].set_index(at)["ratio"].rename("share")
    point = [*entry["axes"], "source"]
    runs = read_frame(folder / "runs.parquet")
    runs = runs[runs[LEFT_OUT].isna()] if LEFT_OUT in runs else runs
    runs = runs[["run_id", *point]].merge(
        read_frame(folder / "points.parquet", ["point_id", *point]), on=point
    )
    rows = made[made["quantity"] == QUANTITY].join(shares, on=at).dropna(subset="ratio")
    rows = rows.merge(runs[["run_id", "point_id"]].drop_duplicates("point_id"))
    base = rows["parameter"] + " " + rows["base_value"].astype(str)
    return rows[["run_id", "phase", "low", "high", "share"]].assign(
        metric="speedup of " + rows["metric"] + ", " + base + " = 1", value=rows["ratio"],
        unit="1", **_plain(SPEEDUP, "higher"),
    )  # fmt: skip


def _plain(kind: str, better: str = "lower") -> dict[str, Any]:
    """What rows that are no metrics have in common: nothing is judged."""
    return {"kind": kind, "better": better, "main": False, "judged": False}


def _noted(summary: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """What runs keep beside metrics: the terms of a step in ms with the whole, and parts of a
    profile in s of a rank (their phase is empty)."""
    noted: dict[str, list[dict[str, Any]]] = {}
    for run_id, text in zip(summary["run_id"], summary.get(ACCOUNT, ()), strict=False):
        if isinstance(text, str):
            account = StepAccount(**json.loads(text))
            terms = [(term.label, account.term(name)) for name, term in TERMS.items()]
            noted[run_id] = [
                {**_plain(TERM), "metric": title, "phase": account.form, "value": value * _MS,
                 "unit": "ms"}
                for title, value in [*terms, (WHOLE, account.elapsed)]
                if value is not None and math.isfinite(value)
            ]  # fmt: skip
    for run_id, text in zip(summary["run_id"], summary.get(PARTS, ()), strict=False):
        if isinstance(text, str):
            noted.setdefault(run_id, []).extend(
                {**_plain(PART), "metric": part, "phase": "", "value": seconds, "unit": "s"}
                for part, seconds in json.loads(text).items()
            )
    return noted


def usable_record(folder: Path) -> dict[str, Any] | None:
    """The record of a run, or None without one that can be read and says when it began."""
    try:
        record = parse_record((folder / RECORD).read_bytes(), folder.name)
    except (OSError, BadRecordError):
        return None
    return record if _time(record["started"]) else None


def _time(text: Any) -> datetime | None:
    """A moment in UTC, to the millisecond; None for what is none."""
    moment = pd.to_datetime(str(text), utc=True, errors="coerce", format="ISO8601")
    return None if pd.isna(moment) else moment.floor("ms").to_pydatetime()


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
    device = point.get("device")
    if device not in ("cpu", "gpu"):
        device = "gpu" if known.get("GPUs") or known.get("GPU") else "cpu"
        if record["source"] == IMPORTED:  # of which nothing says that it is a CPU
            device = "gpu" if GPU in record["notes"].get("variant", ()) else ""
    return {
        "campaign": campaign.name,
        **{name: record[name] for name in ("site", "source", "benchmark", "version", "repeat")},
        "experiment": entry["name"],
        "scaling": entry["scaling"],
        "workers": int(planned.get(entry["scale"], point["ranks"])),
        "identity": canonical_json(unusual),
        "point": canonical_json(point),
        "label": ", ".join(f"{name} {text_of(planned.get(name))}" for name in entry["axes"]),
        "started": _time(record["started"]),
        "ended": _time(record["ended"]),
        "device": device,
        "hosts": " ".join(sorted(run.hosts)),
        "launcher": " ".join((launch.get("multi") or launch.get("single") or [""])[:1]),
        "program": digest_of(sorted(digests), 6) if digests else "",
        "facts": canonical_json(known),
    }
