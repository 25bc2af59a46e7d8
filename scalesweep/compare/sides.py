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
_Points = dict[_Key, dict[str, "Point"]]
_NONE = "\0"  # of a point that lacks a parameter


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
        side = folder_side(role, folder, option)
    if side.summary.empty:
        raise UserError(f"{name}: no finished run to compare")
    return side


def folder_side(role: str, folder: Path, option: str = "") -> Side:
    """A results folder as one side; ``option``: how it was named. Raises UserError."""
    files = [folder / name for name in ("plan.json", "summary.parquet")]
    if lacking := " and ".join(file.name for file in files if not file.is_file()):
        raise UserError(
            f"{option or folder}: {lacking} missing: not a results folder, or no report has "
            "been written in it (run `snakemake report` with its campaign)"
        )
    plan, summary = read_plan(files[0]), read_table(files[1])
    if unknown := [name for name in _NEEDED if name not in summary]:
        raise UserError(f"{files[1]}: has no column {unknown[0]}: not a summary of this scalesweep")
    return Side(role, str(folder), str(plan.get("site", "")), plan, summary)


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
    summary = summary_of(runs / site, measured)
    return plan, with_derived(summary, plan["experiments"] if plan else [])


@dataclass
class Point:
    """The finished runs that a side has of a point, all of one source; ``rows``: of its summary."""

    kind: Kind
    values: dict[str, Any]  # every parameter
    source: str
    experiments: tuple[str, ...]
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Pair:
    """A point that one side or both have; ``why``: what became of it on the side without it."""

    base: Point | None
    new: Point | None
    why: str = ""

    @property
    def sides(self) -> tuple[Point | None, Point | None]:
        """Base and new."""
        return self.base, self.new

    @property
    def point(self) -> Point:
        """The point on a side that has it."""
        point = self.base or self.new
        assert point is not None
        return point

    @property
    def experiment(self) -> str:
        """The one that both sides have it in, else base's, else new's, else its benchmark."""
        names = [point.experiments for point in self.sides if point]
        common = [name for name in names[0] if name in names[-1]]
        return next(iter([*common, *names[0], *names[-1]]), self.point.kind[0])

    @property
    def source(self) -> str:
        """``measured``, or if the sides differ ``imported, new: measured``."""
        if self.base and self.new and self.base.source != self.new.source:
            return f"{self.base.source}, new: {self.new.source}"
        return self.point.source


@dataclass(frozen=True)
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
    notes: dict[str, None] = {}
    here, there = (_points(side, (base, new), notes) for side in (base, new))
    gone = _gone(base, here), _gone(new, there)
    both, alone = [], []
    for key in dict.fromkeys([*here, *there]):
        mine, theirs = here.get(key, {}), there.get(key, {})
        common = [source for source in mine if source in theirs]
        matched = [(s, s) for s in common] or [(s, other) for s in mine for other in theirs]
        both += [Pair(mine[source], theirs[other]) for source, other in matched]
        other = "there from another source only" if matched else ""
        for source in mine.keys() - {source for source, _ in matched}:
            alone.append(Pair(mine[source], None, other or _why(gone[1], key)))
        for source in theirs.keys() - {source for _, source in matched}:
            alone.append(Pair(None, theirs[source], other or _why(gone[0], key)))
    return Joined(both, alone, [*notes, *_apart(here, there, both)])


def _points(side: Side, sides: Sequence[Side], notes: dict[str, None]) -> _Points:
    """Points of a side by what they are, and by source; assumptions on defaults go to ``notes``."""
    names: dict[Kind, dict[str, None]] = {}
    defaults: dict[Kind, dict[str, Any]] = {}
    for each in sides:
        for kind, point in zip(_kinds(each), each.points, strict=True):
            names.setdefault(kind, {}).update(dict.fromkeys(point))
        for entry in each.experiments:
            known = defaults.setdefault((entry["benchmark"], int(entry["version"])), {})
            for name, info in entry["parameters"].items():
                known.setdefault(name, info.get("default"))
    experiments: dict[str, dict[str, None]] = {}
    for entry in side.experiments:
        for planned in entry["runs"]:
            experiments.setdefault(planned["run_id"], {})[str(entry["name"])] = None
    points: _Points = {}
    ids, sources = side.summary["run_id"].tolist(), side.summary["source"].tolist()
    for row, (kind, point) in enumerate(zip(_kinds(side), side.points, strict=True)):
        values = dict(point)
        for name in names[kind].keys() - point.keys():
            head = f"Runs of {kind[0]} in {side.role} have no parameter {name}: "
            if name in (known := defaults.get(kind, {})):
                values[name] = known[name]
                notes[f"{head}it counts as its default, {text_of(known[name])}."] = None
            else:
                notes[f"{head}no plan has its default."] = None
        fresh = Point(kind, values, str(sources[row]), tuple(experiments.get(ids[row], ())))
        points.setdefault(_key(kind, values), {}).setdefault(fresh.source, fresh).rows.append(row)
    return points


def _key(kind: Kind, values: Mapping[str, Any]) -> _Key:
    return kind, canonical_json({name: plain(value) for name, value in values.items()})


def _kinds(side: Side) -> list[Kind]:
    names, versions = side.summary["benchmark"].tolist(), side.summary["version"].tolist()
    return [(str(name), int(version)) for name, version in zip(names, versions, strict=True)]


def _gone(side: Side, points: _Points) -> dict[Any, str]:
    """Why a side has no result of points: planned and not finished, excluded, or (by benchmark and
    parameters) of another version."""
    gone: dict[Any, str] = {
        (kind[0], values): f"version {kind[1]} there, which measures something else"
        for kind, values in points
    }
    for entry in side.experiments if side.plan and side.plan["site"] == side.site else ():
        kind = (str(entry["benchmark"]), int(entry["version"]))
        # Devices follow from other parameters, quantities are the campaign's: no record has them.
        derived = {str(entry["scale"])} - set(entry["scale_parameters"])
        derived |= set(entry.get("quantities", ()))
        states = [
            (run["point"], "pending" if run["status"] == Status.NEW else run["cause"])
            for run in entry["runs"] if run["status"] != Status.DONE
        ]  # fmt: skip
        states = [(point, f"planned there: {state}") for point, state in states]
        states += [(e["point"], f"excluded there: {e['reason']}") for e in entry["excluded"]]
        defaults = {name: info.get("default") for name, info in entry["parameters"].items()}
        for point, why in states:
            whole = {k: v for k, v in {**defaults, **point}.items() if k not in derived}
            gone.setdefault(_key(kind, whole), why)
    return gone


def _why(gone: Mapping[Any, str], key: _Key) -> str:
    return gone.get(key) or gone.get((key[0][0], key[1])) or "not planned there"


def _apart(here: _Points, there: _Points, both: Sequence[Pair]) -> list[str]:
    """Why benchmarks that both sides have run share no point, if one parameter explains it."""
    reasons = []
    joined = {pair.point.kind for pair in both}
    for kind in sorted({key[0] for key in here} & {key[0] for key in there} - joined):
        mine, theirs = (
            pd.DataFrame([next(iter(p.values())).values for key, p in points.items()
                          if key[0] == kind]).map(text_of)
            for points in (here, there)
        )  # fmt: skip
        unlike = [
            f"{name} ({listed(sorted(set(mine[name])))} in base, "
            f"{listed(sorted(set(theirs[name])))} in new)"
            for name in mine if name in theirs and not set(mine[name]) & set(theirs[name])
        ]  # fmt: skip
        why = f"no common value of {'; '.join(unlike)}" if unlike else "no common combination"
        reasons.append(f"{kind[0]}, version {kind[1]}: {why}.")
    return reasons


def varying(pairs: Sequence[Pair]) -> list[str]:
    """Parameters that are not the same in all of these points, ``ranks`` first."""
    every = [pair.point.values for pair in pairs]
    names = dict.fromkeys(name for values in every for name in values)
    differ = [n for n in names if len({canonical_json(plain(v.get(n, _NONE))) for v in every}) > 1]
    return sorted(differ, key=lambda name: name != "ranks")
