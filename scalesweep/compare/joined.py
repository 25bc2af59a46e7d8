"""Which points of two sides are the same: benchmark, version and the value of every parameter."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scalesweep.compare.sides import Side
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import plain
from scalesweep.core.status import Status
from scalesweep.tables.machine_load import calm_rows

BOTH, BASE, NEW = "both", "base", "new"
_KEY = ["benchmark", "version", "point"]


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

    A parameter that the runs of one side lack counts as its default, if a plan has it. Points are
    matched by source too, unless the sides have none in common.
    """
    sides = {BASE: base, NEW: new}
    # The same run has the same id on both sides; base's experiments count before new's.
    entries = [*new.plan["experiments"], *base.plan["experiments"]]
    names = {run["run_id"]: entry["name"] for entry in entries for run in entry["runs"]}
    defaults: dict[Any, dict[str, Any]] = {}
    for entry in entries:
        known = {name: info.get("default") for name, info in entry["parameters"].items()}
        defaults.setdefault((entry["benchmark"], int(entry["version"])), {}).update(known)
    runs = {name: _runs(side, names, defaults) for name, side in sides.items()}
    own = [of.drop_duplicates([*_KEY, "source"]) for of in runs.values()]
    key = [*_KEY, "source"] if {*own[0]["source"]} & {*own[1]["source"]} else _KEY
    pairs = own[0].merge(own[1], "outer", key, suffixes=("_base", "_new"), indicator="side")
    side = pairs["side"].cat.rename_categories({"left_only": BASE, "right_only": NEW})
    pairs = pairs.assign(side=side.cat.reorder_categories([BOTH, BASE, NEW]), why="")
    pairs = pairs.sort_values(["side", "row_base", "row_new"], ignore_index=True)
    for name, other in ((BASE, NEW), (NEW, BASE)):
        alone = pairs["side"] == name
        gone = _gone(sides[other], runs[other])
        pairs.loc[alone, "why"] = [
            gone.get((benchmark, version, point)) or gone.get((benchmark, run_id))
            or gone.get((benchmark, point)) or "not planned there"
            for benchmark, version, point, run_id
            in pairs.loc[alone, [*_KEY, f"run_id_{name}"]].itertuples(index=False, name=None)
        ]  # fmt: skip
        source = "source" if "source" in pairs else f"source_{name}"
        numbers = pairs.loc[pairs[f"row_{name}"].notna(), [*_KEY, source]].reset_index(names="pair")
        runs[name] = runs[name].merge(numbers.rename(columns={source: "source"}))
    for name in ("experiment", "values"):
        pairs[name] = pairs[f"{name}_base"].fillna(pairs[f"{name}_new"])
    if "source" not in pairs:
        mine, others = pairs["source_base"], pairs["source_new"]
        pairs["source"] = (mine + ", new: " + others).fillna(mine).fillna(others)
    return Joined(pairs[["side", "experiment", *_KEY[:2], "source", "values", "why"]], runs)


def _runs(side: Side, names: Mapping[str, str], defaults: Mapping[Any, Any]) -> pd.DataFrame:
    """The finished runs of a side that enter estimates, a row each, with what they are of;
    ``names``: of experiments. ``point``: its parameters without those that have their default."""
    runs = side.summary[["run_id", "benchmark", "version", "source"]].reset_index(drop=True)
    runs["values"] = [json.loads(text) for text in side.summary["_point"]]
    runs["experiment"] = runs["run_id"].map(names).fillna(runs["benchmark"])
    runs["row"] = runs.index
    points = []
    for benchmark, version, values in runs[["benchmark", "version", "values"]].itertuples(False):
        known = defaults.get((benchmark, version), {})
        unusual = {n: plain(v) for n, v in values.items() if n not in known or v != known[n]}
        points.append(canonical_json(unusual))
    runs = runs.assign(point=points)
    same = runs[[*_KEY, "source"]].itertuples(index=False, name=None)
    return runs[runs["row"].isin(calm_rows(side.summary, runs["row"], same))]


def _gone(side: Side, runs: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Why a side has no result of a point: it is from another source, by all of ``_KEY``; of
    another version, without that; or planned and not finished, by benchmark and id of a run."""
    gone: dict[tuple[Any, ...], str] = {}
    for benchmark, version, point in runs[_KEY].itertuples(index=False, name=None):
        gone[benchmark, version, point] = "there from another source only"
        gone[benchmark, point] = f"version {version} there, which measures something else"
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
