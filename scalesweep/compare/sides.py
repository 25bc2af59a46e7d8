"""The two sides of a comparison, and which of their points are the same.

A side is this campaign, another results folder, or another site's runs in one of them. Nothing of
it is changed, and no path that its files name is followed: it may have been moved.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import column
from scalesweep.analysis.table_io import read_table
from scalesweep.analysis.types import Floats
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import listed, plain, text_of
from scalesweep.core.plan_format import Plan, PlanExperiment, read_plan
from scalesweep.core.profilers import NONE, split_name
from scalesweep.core.status import Status
from scalesweep.tables.derived import with_derived
from scalesweep.tables.now import plan_now, read_now, summary_of

ALLOWED = "a results folder, FOLDER@SITE, or @SITE for another site's runs in this campaign's"
_NEEDED = ("run_id", "benchmark", "version", "source", "started", "_point")

Kind = tuple[str, int]  # benchmark and version
_Key = tuple[Kind, str]


@dataclass
class Side:
    """One side: ``role`` (base or new), where its runs are, its plan if it has one, its summary."""

    role: str
    place: str
    site: str
    plan: Plan | None
    summary: pd.DataFrame

    @property
    def campaign(self) -> str:
        """Name of the campaign; without a plan, of the place."""
        return str(self.plan["campaign"]) if self.plan else self.place

    @property
    def created(self) -> str:
        """When stock was taken of it, ISO 8601; empty if unknown."""
        return str(self.plan.get("created", "")) if self.plan else ""

    @property
    def experiments(self) -> Sequence[PlanExperiment]:
        """Experiments of the plan; nothing without one."""
        return list(self.plan["experiments"]) if self.plan else []

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The parameters of each run, in the order of the summary."""
        try:
            return [json.loads(text) for text in self.summary["_point"]]
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.place}: its summary cannot be read ({error})") from None

    def numbers(self, metric: str, phase: str, rows: Sequence[int]) -> Floats:
        """The known means of a metric in a phase of these runs."""
        name = column(metric, "mean", phase)
        if name not in self.summary:
            return np.empty(0)
        values: Floats = self.summary[name].to_numpy(np.float64)[list(rows)]
        known: Floats = values[np.isfinite(values)]
        return known


def read_sides(base: str, new: str, campaign: Campaign) -> tuple[Side, Side]:
    """Base and new as the command names them; an empty text is this campaign.

    Raises UserError, in one line, if none is named, both are the same, or one cannot be read.
    """
    places = [_place(role, text, campaign) for role, text in (("base", base), ("new", new))]
    (first, here), (second, there) = places
    if first.resolve() == second.resolve() and here == there:
        name = f"{first}@{here}" if here else first
        raise UserError(f"compare: base and new are both {name}; allowed: {ALLOWED}")
    sides = [
        _read(role, f"{role.upper()} {text}", *place, campaign)
        for (role, text), place in zip((("base", base), ("new", new)), places, strict=True)
    ]
    return sides[0], sides[1]


def _place(role: str, text: str, campaign: Campaign) -> tuple[Path, str | None]:
    """Folder and site of ``FOLDER``, ``FOLDER@SITE`` or ``@SITE``; no site: the folder's own."""
    folder, site = Path(text) if text else campaign.results, None
    if text and not folder.is_dir() and "@" in text:
        name, _, site = text.rpartition("@")
        folder = Path(name) if name else campaign.results
    if text and not folder.is_dir() and folder != campaign.results:
        raise UserError(f"{role.upper()} {text}: no such folder; allowed: {ALLOWED}")
    own = folder.resolve() == campaign.results.resolve()
    return folder, None if own and site == campaign.site.name else site


def _read(role: str, option: str, folder: Path, site: str | None, campaign: Campaign) -> Side:
    """A side. Raises UserError if it lacks what is needed."""
    own = folder.resolve() == campaign.results.resolve()
    name = f"{folder}@{site}" if site else str(folder)
    if site:
        side = Side(role, name, site, *_of_site(option, folder, site, campaign if own else None))
    elif own:
        side = Side(role, name, campaign.site.name, *read_now(campaign))
    else:
        plan, summary = _of_folder(option, folder)
        side = Side(role, name, str(plan.get("site", "")), plan, summary)
    if side.summary.empty:
        raise UserError(f"{name}: no finished run to compare")
    return side


def _of_folder(option: str, folder: Path) -> tuple[Plan, pd.DataFrame]:
    files = [folder / name for name in ("plan.json", "summary.parquet")]
    if lacking := [file.name for file in files if not file.is_file()]:
        raise UserError(
            f"{option}: {' and '.join(lacking)} missing: not a results folder, or no report has "
            "been written in it (run `snakemake report` with its campaign)"
        )
    plan, summary = read_plan(files[0]), read_table(files[1])
    if unknown := [name for name in _NEEDED if name not in summary]:
        raise UserError(f"{files[1]}: has no column {unknown[0]}: not a summary of this scalesweep")
    return plan, summary


def _of_site(
    option: str, folder: Path, site: str, own: Campaign | None
) -> tuple[Plan | None, pd.DataFrame]:
    runs = folder / "runs"
    sites = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
    if site not in sites:
        there = ", ".join(sites) or "none"
        raise UserError(f"{option}: {runs} has no runs of {site!r}; allowed: {there}")
    file = folder / "plan.json"
    plan = plan_now(own) if own else read_plan(file) if file.is_file() else None
    names = sorted(path.name for path in (runs / site).iterdir() if path.is_dir())
    measured = [name for name in names if name[0] != "." and split_name(name)[1] == NONE]
    summary = summary_of(runs / site, measured, None)
    return plan, with_derived(summary, plan["experiments"] if plan else [])


@dataclass
class SidePoint:
    """The finished runs that one side has of a point, all of one source."""

    kind: Kind
    values: dict[str, Any]  # every parameter
    source: str
    experiments: tuple[str, ...]
    rows: list[int] = field(default_factory=list)  # of the side's summary


@dataclass
class Pair:
    """A point that one side or both have; ``why``: what became of it on the side without it."""

    experiment: str
    base: SidePoint | None
    new: SidePoint | None
    why: str = ""

    @property
    def point(self) -> SidePoint:
        """The point on a side that has it."""
        point = self.base or self.new
        assert point is not None
        return point

    @property
    def source(self) -> str:
        """``measured``, or if the sides differ ``imported, new: measured``."""
        if self.base and self.new and self.base.source != self.new.source:
            return f"{self.base.source}, new: {self.new.source}"
        return self.point.source


@dataclass
class Joined:
    """The points of two sides, matched; ``notes``: assumptions, and why benchmarks share none."""

    both: list[Pair]
    alone: list[Pair]
    notes: list[str]


def join(base: Side, new: Side) -> Joined:
    """Match the points of two sides by benchmark, version and the value of every parameter.

    A parameter that the runs of one side lack counts as its default, if a plan has it. A point with
    several sources is matched by source, and across sources only if the sides share none.
    """
    defaults = _Defaults(base, new)
    here, there = _points(base, defaults), _points(new, defaults)
    both, alone = [], []
    lost = {"base": _lost(base, here, defaults), "new": _lost(new, there, defaults)}
    for key in dict.fromkeys([*here, *there]):
        mine, theirs = here.get(key, {}), there.get(key, {})
        common = [source for source in mine if source in theirs]
        matched = [(s, s) for s in common] or [(s, other) for s in mine for other in theirs]
        both += [_pair(mine[source], theirs[other]) for source, other in matched]
        for side, taken, missing in (
            (mine, {s for s, _ in matched}, "new"), (theirs, {s for _, s in matched}, "base"),
        ):  # fmt: skip
            for point in (side[source] for source in side if source not in taken):
                pair = _pair(*((point, None) if missing == "new" else (None, point)))
                why = lost[missing].get(key) or lost[missing].get((key[0][0], key[1]))
                pair.why = (
                    "there from another source only" if matched else why or "not planned there"
                )
                alone.append(pair)
    return Joined(both, alone, [*defaults.assumed, *_apart(here, there, both)])


_Points = dict[_Key, dict[str, SidePoint]]


def _key(kind: Kind, values: Mapping[str, Any]) -> _Key:
    return kind, canonical_json({name: plain(value) for name, value in values.items()})


class _Defaults:
    """The parameters that runs of either side have, and what a missing one counts as."""

    def __init__(self, base: Side, new: Side) -> None:
        self._names: dict[Kind, dict[str, None]] = {}
        self._known: dict[Kind, dict[str, Any]] = {}
        self.assumed: dict[str, None] = {}
        for side in (base, new):
            for kind, point in zip(_kinds(side), side.points, strict=True):
                self._names.setdefault(kind, {}).update(dict.fromkeys(point))
            for entry in side.experiments:
                known = self._known.setdefault((entry["benchmark"], int(entry["version"])), {})
                for name, info in entry["parameters"].items():
                    known.setdefault(name, info.get("default"))

    def fill(self, role: str, kind: Kind, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point with the defaults of what it lacks."""
        filled = dict(point)
        for name in self._names.get(kind, {}):
            if name in point:
                continue
            head = f"Runs of {kind[0]} in {role} have no parameter {name}: "
            known = self._known.get(kind, {})
            if name in known:
                filled[name] = known[name]
                self.assumed[f"{head}it counts as its default, {text_of(known[name])}."] = None
            else:
                self.assumed[f"{head}no plan has its default."] = None
        return filled


def _kinds(side: Side) -> list[Kind]:
    names, versions = side.summary["benchmark"].tolist(), side.summary["version"].tolist()
    return [(str(name), int(version)) for name, version in zip(names, versions, strict=True)]


def _points(side: Side, defaults: _Defaults) -> _Points:
    """Points of a side by what they are, and by source."""
    experiments: dict[str, dict[str, None]] = {}
    for entry in side.experiments:
        for planned in entry["runs"]:
            experiments.setdefault(planned["run_id"], {})[str(entry["name"])] = None
    points: _Points = {}
    ids, sources = side.summary["run_id"].tolist(), side.summary["source"].tolist()
    for row, (kind, point) in enumerate(zip(_kinds(side), side.points, strict=True)):
        values = defaults.fill(side.role, kind, point)
        names = tuple(experiments.get(ids[row], ()))
        fresh = SidePoint(kind, values, str(sources[row]), names)
        by_source = points.setdefault(_key(kind, values), {})
        by_source.setdefault(fresh.source, fresh).rows.append(row)
    return points


def _pair(base: SidePoint | None, new: SidePoint | None) -> Pair:
    """A pair under the experiment that both have it in, else base's, else new's."""
    first = base.experiments if base else ()
    second = new.experiments if new else ()
    common = [name for name in first if name in second]
    pair = Pair("", base, new)
    # Runs that no plan names are listed under their benchmark.
    pair.experiment = next(iter([*common, *first, *second]), pair.point.kind[0])
    return pair


def _lost(side: Side, points: _Points, defaults: _Defaults) -> dict[Any, str]:
    """Why a side has no result of points: planned and not finished, excluded, or (by benchmark and
    parameters) of another version."""
    lost: dict[Any, str] = {
        (kind[0], values): f"version {kind[1]} there, which measures something else"
        for kind, values in points
    }
    for entry in side.experiments if side.plan and side.plan["site"] == side.site else ():
        kind = (str(entry["benchmark"]), int(entry["version"]))
        # Devices follow from other parameters, quantities are the campaign's: no record has them.
        derived = {str(entry["scale"])} - set(entry["scale_parameters"])
        derived |= set(entry.get("quantities", ()))
        states = [(run["point"], f"planned there: {_state(run)}") for run in entry["runs"]
                  if run["status"] != Status.DONE]  # fmt: skip
        states += [(e["point"], f"excluded there: {e['reason']}") for e in entry["excluded"]]
        for point, why in states:
            kept = {name: value for name, value in point.items() if name not in derived}
            lost.setdefault(_key(kind, defaults.fill(side.role, kind, kept)), why)
    return lost


def _state(run: Mapping[str, Any]) -> str:
    return "pending" if run["status"] == Status.NEW else str(run["cause"] or run["status"])


def _apart(here: _Points, there: _Points, both: Sequence[Pair]) -> list[str]:
    """Why benchmarks that both sides have run share no point, if one parameter explains it."""
    reasons = []
    joined = {pair.point.kind for pair in both}
    for kind in sorted({key[0] for key in here} & {key[0] for key in there} - joined):
        mine, theirs = (_values(points, kind) for points in (here, there))
        unlike = [
            f"{name} ({listed(sorted(mine[name]))} in base, {listed(sorted(theirs[name]))} in new)"
            for name in mine if name in theirs and not mine[name] & theirs[name]
        ]  # fmt: skip
        why = f"no common value of {'; '.join(unlike)}" if unlike else "no common combination"
        reasons.append(f"{kind[0]}, version {kind[1]}: {why}.")
    return reasons


def _values(points: _Points, kind: Kind) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for (other, _), by_source in points.items():
        for point in by_source.values() if other == kind else ():
            for name, value in point.values.items():
                values.setdefault(name, set()).add(text_of(value))
    return values


def varying(pairs: Sequence[Pair]) -> list[str]:
    """Parameters that are not the same in all of these points, ``ranks`` first."""
    seen: dict[str, set[str]] = {}
    for pair in pairs:
        for name, value in pair.point.values.items():
            seen.setdefault(name, set()).add(canonical_json(plain(value)))
    lacking = {name for pair in pairs for name in seen.keys() - pair.point.values.keys()}
    names = [name for name in seen if len(seen[name]) > 1 or name in lacking]
    return sorted(names, key=lambda name: name != "ranks")
