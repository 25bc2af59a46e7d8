"""The finished points of a campaign as sessions: a row per run and number, with all around it."""

import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from scalesweep.analysis.step_account import TERMS, StepAccount
from scalesweep.analysis.table_io import read_table
from scalesweep.config.campaign import Campaign
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.formatting import finite, text_of
from scalesweep.core.plan_format import PlanExperiment, PlanProfile, PlanRun, read_plan
from scalesweep.core.record import RECORD, parse_record
from scalesweep.core.record_check import BadRecordError
from scalesweep.history.profiled import profiled_runs
from scalesweep.history.store import CANARY, METRIC, PART, TERM, RunKey, Session
from scalesweep.history.tracked import Tracker
from scalesweep.judge.facts import facts_of
from scalesweep.tables.bookkeeping import ACCOUNT, PARTS
from scalesweep.tables.bookkeeping import CANARY as CANARY_COLUMN
from scalesweep.tables.provenance import run_facts

_COMMIT = "git commit"  # has columns of its own
_MAIN = "total_throughput"  # of a benchmark that names no main metric
_MS = 1e3
WHOLE = "One step"  # the term that all others add up to
# Units of time, and seconds in each.
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_CANARY_UNITS = {
    "compute": "FLOP/s", "memory": "bytes/s",
}  # fmt: skip


def sessions_of(campaign: Campaign) -> list[Session]:
    """The finished runs of a campaign's results folder, a session for each commit measured.

    Reads ``plan.json``, ``summary.parquet`` and the records. Raises UserError for what cannot be
    read; a record that has gone since is left out.
    """
    plan = read_plan(campaign.results / "plan.json")
    summary = read_table(campaign.results / "summary.parquet")
    by_name = {experiment.name: experiment for experiment in campaign.experiments}
    tracker = Tracker(campaign.track.repository)
    grouped: dict[str, dict[RunKey, list[dict[str, Any]]]] = {}
    taken: set[str] = set()
    for entry in plan["experiments"]:
        if entry["name"] not in by_name:
            continue  # the campaign file was edited since
        benchmark = by_name[entry["name"]].benchmark
        outside = _outside_series(entry)
        for run, record, rows in _finished(campaign, entry, summary, taken):
            taken.add(run["run_id"])
            commit = tracker.of(record, benchmark)
            head = {
                "results": str(campaign.results.resolve()),
                **head_of(campaign, entry, record, run["point"]),
                "run_id": run["run_id"],
                "series": _series_of(entry, run, outside),
                "ideal": "",
                "commit": commit.commit or None,
                "dirty": commit.dirty,
                "commit_time": _time(commit.time),
                **{name: getattr(commit, name) for name in ("subject", "tags", "repository")},
            }
            group = [campaign.site.name, campaign.name, head["results"]]
            group += [commit.commit, commit.dirty]
            key = (str(record["site"]), run["run_id"], _start_text(record))
            grouped.setdefault(canonical_json(group), {})[key] = [{**head, **row} for row in rows]
    return [
        Session(digest_of(json.loads(group), 8), _compact(min(key[2] for key in runs)), runs)
        for group, runs in grouped.items()
    ]


def _finished(
    campaign: Campaign, entry: PlanExperiment, summary: pd.DataFrame, taken: Container[str]
) -> Iterator[tuple[PlanRun | PlanProfile, Mapping[str, Any], Iterable[Mapping[str, Any]]]]:
    """The finished runs of an experiment with record and rows, without those ``taken``: the
    measured ones, then the profiled ones, of which only the parts of a step are kept."""
    numbers = Numbers(summary, entry)
    places = {run_id: row for row, run_id in enumerate(summary["run_id"].tolist())}
    for run in entry["runs"]:
        run_id = run["run_id"]
        if run_id in taken or run_id not in places:
            continue
        record = usable_record(campaign.runs_folder / run_id)
        if record is not None:
            profiler = str((record.get("notes") or {}).get("importer") or "run")
            yield run, record, numbers.of(places[run_id], profiler)
    for profile, rows in profiled_runs(campaign.results, entry):
        record = usable_record(campaign.runs_folder / profile["run_id"])
        if record is not None and profile["run_id"] not in taken:
            yield profile, record, rows


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


def ideal_of(quantity: Quantity) -> str:
    """What ideally becomes of a metric as workers are added.

    ``total``: a rate of all of them, which grows; ``rank``: that of one, which stays; ``time``: as
    the kind of scaling says; empty: nothing is known.
    """
    if quantity.scales and not quantity.of_time:
        return quantity.scope
    timed = quantity.unit in SECONDS and quantity.of_time and quantity.kind in ("", EXTENSIVE)
    return "time" if timed else ""


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


def _start_text(record: Mapping[str, Any]) -> str:
    moment = _time(record["started"])
    assert moment is not None
    return moment.isoformat()


def _compact(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y%m%dT%H%M%SZ}"


def head_of(
    campaign: Campaign, entry: PlanExperiment, record: Mapping[str, Any], planned: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run was of, where and with what: the columns that all of its rows share.

    ``entry``: of its experiment in the plan; ``planned``: the point as the plan has it.
    """
    return {
        "campaign": campaign.name,
        **_identity(record, entry, planned),
        **_surroundings(record, campaign),
    }


def _identity(
    record: Mapping[str, Any], entry: PlanExperiment, planned: Mapping[str, Any]
) -> dict[str, Any]:
    """What was measured, where and when.

    ``identity`` is the point without what has its default, as in the run's id.
    """
    point = record["point"]
    infos = entry["parameters"]
    unusual = {
        name: value
        for name, value in point.items()
        if name not in infos or value != infos[name]["default"]
    }
    words = [f"{name} {text_of(planned.get(name))}" for name in entry["axes"]]
    return {
        "site": record["site"],
        "source": record["source"],
        "experiment": entry["name"],
        "benchmark": record["benchmark"],
        "version": record["version"],
        "scaling": entry["scaling"],
        "scale": entry["scale"],
        "workers": int(planned.get(entry["scale"], point["ranks"])),
        "identity": canonical_json(unusual),
        "point": canonical_json(point),
        "label": ", ".join(words),
        "run_id": record["run_id"],
        "repeat": record["repeat"],
        "started": _time(record["started"]),
        "ended": _time(record["ended"]),
    }


def _surroundings(record: Mapping[str, Any], campaign: Campaign) -> dict[str, Any]:
    """Hosts, launcher, program and facts of a run; facts as a map in JSON."""
    run = run_facts(record)
    known = {k: v for k, v in facts_of(run).items() if not k.startswith(_COMMIT)}
    frameworks = {e.benchmark.name: e.benchmark.framework for e in campaign.experiments}
    of_site = campaign.site.launch_for(frameworks.get(record["benchmark"]))
    own = (record.get("program") or {}).get("launch") or of_site
    files = (record.get("program") or {}).get("files") or {}
    digests = [file.get("blake2b") for file in files.values() if file.get("blake2b")]
    gpus = known.get("GPUs") or known.get("GPU")
    device = record["point"].get("device")
    return {
        "device": device if device in ("cpu", "gpu") else "gpu" if gpus else "cpu",
        "hosts": " ".join(sorted(run.hosts)),
        "launcher": " ".join((own.get("multi") or own.get("single") or [""])[:1]),
        "program": digest_of(sorted(digests), 6) if digests else "",
        "facts": canonical_json(known),
    }


FORMULA = " = "  # between the name of a derived metric and its formula


class Numbers:
    """What the runs of an experiment have measured."""

    def __init__(self, summary: pd.DataFrame, entry: PlanExperiment) -> None:
        """``summary``: of runs, a row each; ``entry``: of their experiment in the plan."""
        quantities = quantities_of(summary, entry["benchmark"])
        self._derived = entry.get("derived", {})
        for name in derived_names(summary, entry["benchmark"]) - self._derived.keys():
            del quantities[name]  # of another experiment that shares runs
        main = entry["main_metric"] or _MAIN
        declared = entry.get("compare", {})
        self._columns: list[tuple[Quantity, str, str, bool, Sequence[float]]] = []
        for name, quantity in quantities.items():
            phases = (*EPOCH_PHASES, "run") if name in EPOCH_METRICS else ("run",)
            never = compared(name, declared, main) == NEVER
            for phase in phases:
                title = column(name, "mean", phase)
                if title in summary:
                    values = summary[title].tolist()
                    self._columns.append((quantity, name, phase, never, values))
        self._main = main
        self._accounts, self._canaries, self._parts = (
            summary[name].tolist() if name in summary else None
            for name in (ACCOUNT, CANARY_COLUMN, PARTS)
        )

    def of(self, place: int, profiler: str = "run") -> Iterator[dict[str, Any]]:
        """The rows of a run: its means, the terms of its step in ms, its parts in s.

        ``profiler``: what the parts are of, which is their phase: two tools see different ones.

        Judged are metrics of the whole run and the main one in its steady phase: times and rates of
        epochs say the same in several ways.
        """
        there = [column for column in self._columns if finite(column[-1][place])]
        phases = [phase for _, name, phase, *_ in there if name == self._main]
        steady = next((phase for phase in ("later", "run", "init") if phase in phases), "")
        for quantity, name, phase, never, values in there:
            main = name == self._main and phase == steady
            yield {
                "kind": METRIC,
                "metric": self._kept_name(name),
                "phase": phase,
                "value": float(values[place]),
                "unit": quantity.unit,
                "better": quantity.better,
                "main": main,
                "judged": (main or phase == "run") and not never,
                "ideal": ideal_of(quantity),
            }
        text = self._accounts[place] if self._accounts else None
        if isinstance(text, str):
            yield from _terms(StepAccount.from_json(json.loads(text)))
        text = self._canaries[place] if self._canaries else None
        if isinstance(text, str):
            yield from _canary(json.loads(text))
        text = self._parts[place] if self._parts else None
        if isinstance(text, str):
            yield from _parts(json.loads(text), profiler)

    def _kept_name(self, name: str) -> str:
        """A metric's name; of a derived one with its formula: another one begins another series."""
        stated = self._derived.get(name)
        return name if stated is None else f"{name}{FORMULA}{stated['formula']}"


def _canary(looks: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rates of the slowest host before and after the run."""
    for when, rates in looks.items():
        for kind, (_, rate) in rates.items():
            yield {
                "kind": CANARY, "metric": kind, "phase": when, "value": float(rate),
                "unit": _CANARY_UNITS.get(kind, ""), "better": "higher", "main": False,
                "judged": False,
            }  # fmt: skip


def _parts(parts: Mapping[str, float], profiler: str) -> Iterator[dict[str, Any]]:
    """Seconds of a rank by part of the program, as a profile has them."""
    for part, seconds in parts.items():
        yield {
            "kind": PART, "metric": part, "phase": profiler, "value": seconds, "unit": "s",
            "better": "lower", "main": False, "judged": False,
        }  # fmt: skip


def _terms(account: StepAccount) -> Iterator[dict[str, Any]]:
    """The terms of a run's step in ms, by their titles, and the whole."""
    for term, title in {**TERMS, "elapsed": WHOLE}.items():
        value = account.elapsed if term == "elapsed" else account.term(term)
        if value is not None and math.isfinite(value):
            yield {
                "kind": TERM, "metric": title, "phase": account.form, "value": value * _MS,
                "unit": "ms", "better": "lower", "main": False, "judged": False,
            }  # fmt: skip
