"""The finished points of a campaign as sessions: a row per run and number, with all around it."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

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
from scalesweep.history.store import PART, SPEEDUP, TERM, frame_of
from scalesweep.history.tracked import tracked_of
from scalesweep.judge.facts import facts_of
from scalesweep.judge.metrics import metrics_of
from scalesweep.tables.bookkeeping import ACCOUNT, PARTS
from scalesweep.tables.comparisons import EFFICIENCY
from scalesweep.tables.comparisons import SPEEDUP as QUANTITY
from scalesweep.tables.provenance import run_facts

_COMMIT = "git commit"  # has columns of its own
_MS = 1e3
WHOLE = "One step"  # the term that all others add up to
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
    others = [*_others(summary)]
    rows: list[dict[str, Any]] = []
    taken: set[str] = set()
    for entry in read_plan(campaign.results / "plan.json")["experiments"]:
        if entry["name"] not in by_name:
            continue  # the campaign file was edited since
        frames = [metrics_of(summary, entry), *_of_tables(campaign.results, entry)]
        of_run: dict[str, list[Any]] = {}
        for known in (row for frame in frames for row in frame.to_dict("records")):
            of_run.setdefault(known["run_id"], []).append(known)
        for row in others:
            if row["run_id"] in of_run:
                of_run[row["run_id"]].append(row)
        runs: list[PlanRun | PlanProfile] = [*entry["runs"], *entry["profiles"]]
        for run in runs:
            record = usable_record(campaign.runs_folder / run["run_id"])
            if run["run_id"] in taken or run["run_id"] not in of_run or record is None:
                continue
            taken.add(run["run_id"])
            benchmark = by_name[entry["name"]].benchmark
            tracked = tracked_of(record, benchmark, campaign.track.repository)
            head = head_of(campaign, entry, record, run["point"]) | {
                "results": str(campaign.results.resolve()),
                "commit": tracked.commit or None,
                "dirty": tracked.dirty,
                "commit_time": _time(tracked.time),
                **{name: getattr(tracked, name) for name in ("subject", "tags", "repository")},
            }
            group = [campaign.site.name, campaign.name, head["results"]]
            head["group"] = digest_of([*group, tracked.commit, tracked.dirty], 8)
            profiler = str((record.get("notes") or {}).get("importer") or "run")
            # Two tools see different parts.
            own = [{**of, "phase": of["phase"] or profiler} for of in of_run[run["run_id"]]]
            rows += [{**head, **of} for of in own]
    return frame_of(rows)


def _of_tables(results: Path, entry: PlanExperiment) -> Iterator[pd.DataFrame]:
    """What the tables of an experiment say of its runs: the speedup of each point over the base of
    its series with the efficiency as its share, and parts of a step of profiled runs.

    A speedup is kept with the first run of its point. Of parts there are the ms, and the share
    (unit 1) as stated, since phases of a timeline overlap.
    """
    folder = results / "tables" / entry["name"]
    if (folder / "comparisons.parquet").is_file():
        made = read_frame(folder / "comparisons.parquet").query("question == 'scaling'")
        at = ["point_id", "metric", "phase"]
        shares = made[made["quantity"] == EFFICIENCY].set_index(at)["ratio"].rename("share")
        point = [*entry["axes"], "source"]
        runs = read_frame(folder / "runs.parquet", ["run_id", *point])
        runs = runs.merge(read_frame(folder / "points.parquet", ["point_id", *point]), on=point)
        rows = made[made["quantity"] == QUANTITY].join(shares, on=at)
        rows = rows.merge(runs[["run_id", "point_id"]].drop_duplicates("point_id")).dropna(
            subset="ratio"
        )
        base = rows["parameter"] + " " + rows["base_value"].astype(str)
        yield rows[["run_id", "phase", "low", "high", "share"]].assign(
            metric="speedup of " + rows["metric"] + ", " + base + " = 1", value=rows["ratio"],
            unit="1", **_plain(SPEEDUP, "higher"),
        )  # fmt: skip
    done = [run["run_id"] for run in entry["profiles"] if run["status"] == Status.DONE]
    for table, name in _PROFILES.items():
        path = folder / f"{table}.parquet"
        if path.is_file() and done:
            frame = read_frame(path, ["run_id", name, "ms", "share"])
            frame = frame[frame["run_id"].isin(done)].rename(columns={name: "metric"}).dropna()
            for value, unit, title in (("ms", "ms", ""), ("share", "1", "share of ")):
                yield frame[["run_id"]].assign(
                    metric=title + frame["metric"].astype(str), value=frame[value], unit=unit,
                    phase=table, **_plain(PART),
                )  # fmt: skip


def _plain(kind: str, better: str = "lower") -> dict[str, Any]:
    """What rows that are no metrics have in common: nothing is judged."""
    return {"kind": kind, "better": better, "main": False, "judged": False}


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
    gpus = known.get("GPUs") or known.get("GPU")
    device = point.get("device")
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
        "device": device if device in ("cpu", "gpu") else "gpu" if gpus else "cpu",
        "hosts": " ".join(sorted(run.hosts)),
        "launcher": " ".join((launch.get("multi") or launch.get("single") or [""])[:1]),
        "program": digest_of(sorted(digests), 6) if digests else "",
        "facts": canonical_json(known),
    }


def _others(summary: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """What runs keep beside metrics: the terms of a step in ms, and parts in s (their phase is
    empty)."""
    for name, rows_of in ((ACCOUNT, _terms), (PARTS, _parts)):
        for run_id, text in zip(summary["run_id"], summary.get(name, ()), strict=False):
            if isinstance(text, str):
                yield from ({"run_id": run_id, **row} for row in rows_of(json.loads(text)))


def _parts(parts: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Seconds of a rank by part of the program, as a profile has them."""
    for part, seconds in parts.items():
        yield {**_plain(PART), "metric": part, "phase": "", "value": seconds, "unit": "s"}


def _terms(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The terms of a run's step in ms, by their titles, and the whole."""
    account = StepAccount(**content)
    for term, title in {**TERMS, "elapsed": WHOLE}.items():
        value = account.elapsed if term == "elapsed" else account.term(term)
        if value is not None and math.isfinite(value):
            row = {"metric": title, "phase": account.form, "value": value * _MS, "unit": "ms"}
            yield {**_plain(TERM), **row}
