"""Which points of two sides are the same: benchmark, version and the value of every parameter."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scalesweep.compare.sides import Side
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import plain
from scalesweep.core.status import Status

BOTH, BASE, NEW = "both", "base", "new"
_KEY = ["benchmark", "version", "point"]
_OWN = ["source", "experiment"]  # columns that each side has
_Defaults = Mapping[tuple[str, int], Mapping[str, Any]]  # of parameters, by benchmark and version


@dataclass(frozen=True)
class Joined:
    """The points of two sides, matched.

    ``pairs``: a row per point, those of both sides first: ``side`` (both, base, new), experiment,
    benchmark, version, source, ``values`` (every parameter) and ``why`` it is on one side only.
    ``runs[side]``: the finished runs with their ``pair`` and ``row`` of the summary.
    """

    pairs: pd.DataFrame
    runs: dict[str, pd.DataFrame]

    @property
    def both(self) -> pd.DataFrame:
        """The points of both sides."""
        return self.pairs[self.pairs["side"] == BOTH]

    @property
    def alone(self) -> pd.DataFrame:
        """The points of one side only."""
        return self.pairs[self.pairs["side"] != BOTH]


def join(base: Side, new: Side) -> Joined:
    """Match the points of two sides.

    A parameter that the runs of one side lack counts as its default, if a plan has it. A point with
    several sources is matched by source, and across sources only if the sides share none.
    """
    sides, defaults = {BASE: base, NEW: new}, _defaults(base, new)
    # The same run has the same id on both sides; base's experiments count before new's.
    entries = [*reversed([*base.plan["experiments"], *new.plan["experiments"]])]
    names = {run["run_id"]: entry["name"] for entry in entries for run in entry["runs"]}
    runs = {name: _runs(side, names, defaults) for name, side in sides.items()}
    own = {
        name: of.drop_duplicates([*_KEY, "source"]).drop(columns="row") for name, of in runs.items()
    }
    met = own[BASE].merge(
        own[NEW].drop(columns=["values", "run_id"]), on=_KEY, suffixes=("_base", "_new")
    )
    same = met["source_base"] == met["source_new"]
    common = same.groupby([met[name] for name in _KEY]).transform("any").astype(bool)
    both = met[same | ~common].assign(side=BOTH, why="")
    parts = [both]
    for name, other in ((BASE, NEW), (NEW, BASE)):
        of = own[name].rename(columns={column: f"{column}_{name}" for column in _OWN})
        source = f"source_{name}"
        of = of.merge(both[[*_KEY, source, "side"]], how="left").query("side.isna()")
        gone, matched = _gone(sides[other], own[other]), {*_keys(both)}
        why = [
            "there from another source only" if key in matched
            else gone.get((key[0], run_id)) or gone.get((key[0], key[2])) or "not planned there"
            for key, run_id in zip(_keys(of), of["run_id"], strict=True)
        ]  # fmt: skip
        parts.append(of.assign(side=name, why=why))
    pairs = pd.concat(parts, ignore_index=True)
    for name, of in runs.items():
        numbers = pairs[[*_KEY, f"source_{name}"]].rename(columns={f"source_{name}": "source"})
        runs[name] = of.merge(numbers.assign(pair=pairs.index), on=[*_KEY, "source"])
    mine, others = pairs["source_base"], pairs["source_new"]
    sources = mine.fillna(others).where(
        (mine == others) | (pairs["side"] != BOTH), mine + ", new: " + others
    )
    experiments = pairs["experiment_base"].fillna(pairs["experiment_new"])
    pairs = pairs.assign(source=sources, experiment=experiments)
    return Joined(pairs[["side", "experiment", *_KEY[:2], "source", "values", "why"]], runs)


def _defaults(*sides: Side) -> _Defaults:
    known: dict[tuple[str, int], dict[str, Any]] = {}
    for entry in (entry for side in sides for entry in side.plan["experiments"]):
        of = known.setdefault((entry["benchmark"], int(entry["version"])), {})
        for name, info in entry["parameters"].items():
            of.setdefault(name, info.get("default"))
    return known


def _runs(side: Side, names: Mapping[str, str], defaults: _Defaults) -> pd.DataFrame:
    """The finished runs of a side, a row each, with what they are of; ``names``: of experiments."""
    try:
        values = [json.loads(text) for text in side.summary["_point"]]
    except (TypeError, ValueError) as error:
        raise UserError(f"{side.place}: its summary cannot be read ({error})") from None
    runs = side.summary[["run_id", "benchmark", "version", "source"]].reset_index(drop=True)
    kinds = zip(runs["benchmark"], runs["version"], strict=True)
    return runs.assign(
        experiment=[
            names.get(run_id, benchmark)
            for run_id, benchmark in zip(runs["run_id"], runs["benchmark"], strict=True)
        ],
        point=[_identity(p, defaults.get(kind)) for kind, p in zip(kinds, values, strict=True)],
        values=values,
        row=runs.index,
    )


def _identity(point: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> str:
    """A point without what has its default."""
    known = defaults or {}
    return canonical_json(
        {name: plain(v) for name, v in point.items() if name not in known or v != known[name]}
    )


def _keys(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return [*frame[_KEY].itertuples(index=False, name=None)]


def _gone(side: Side, points: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Why a side has no result of points: of another version, by benchmark and parameters; or
    planned and not finished, by benchmark and id of a run."""
    gone: dict[tuple[Any, ...], str] = {
        (benchmark, point): f"version {version} there, which measures something else"
        for benchmark, version, point in _keys(points)
    }
    for entry in side.plan["experiments"] if side.plan.get("site") == side.site else ():
        for run in entry["runs"]:
            if run["status"] != Status.DONE:
                why = "pending" if run["status"] == Status.NEW else run["cause"]
                gone[entry["benchmark"], run["run_id"]] = f"planned there: {why}"
    return gone


def varying(pairs: pd.DataFrame) -> list[str]:
    """Parameters that are not the same in all of these points, ``ranks`` first."""
    every = pairs["values"].tolist()
    names = dict.fromkeys(name for values in every for name in values)
    differ = [n for n in names if len({canonical_json(v.get(n, "\0")) for v in every}) > 1]
    return sorted(differ, key=lambda name: name != "ranks")
