"""Made-up sides of a comparison, without files: points, their repeats and where they ran."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.compare.sides import Side
from scalesweep.core.files import canonical_json
from scalesweep.core.plan_format import Plan
from scalesweep.core.rank_columns import by_column
from scalesweep.tables.bookkeeping import as_text
from scalesweep.tables.provenance import FACTS, run_facts

RATE = "total_throughput"
CPU = {"cpu_model": "CPU A", "cpus": 24, "governor": "performance", "memory_bytes": 64 * 2**30}
VERSIONS = {"tensorflow": "2.18.1", "horovod": "0.28.1", "numpy": "2.0.2", "mpi": None}


@dataclass
class FakePoint:
    """A point with a value per repeat and metric: ``metrics[metric, phase]``."""

    point: Mapping[str, Any]
    metrics: Mapping[tuple[str, str], Sequence[float]]
    experiment: str = "e"
    version: int = 1
    source: str = "measured"


@dataclass
class FakeSide:
    """A side to make up; ``planned`` are further runs of its plan: id and status."""

    role: str
    points: Sequence[FakePoint]
    plan: bool = True
    defaults: Mapping[str, Any] = field(default_factory=dict)
    planned: Sequence[tuple[str, str]] = ()
    hardware: Mapping[str, Any] = field(default_factory=lambda: CPU)
    versions: Mapping[str, Any] = field(default_factory=lambda: VERSIONS)
    variables: Mapping[str, str] = field(default_factory=dict)
    commit: str = "0" * 40
    host: str = "node1"
    campaign: str = "study"
    compare: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def rates(values: Sequence[float]) -> dict[tuple[str, str], Sequence[float]]:
    return {(RATE, "later"): values}


def make_side(fake: FakeSide) -> Side:
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(fake.points):
        for repeat in range(max(map(len, one.metrics.values()))):
            row: dict[str, Any] = {
                "run_id": f"{fake.role}-{number}-{repeat}",
                "benchmark": "b", "version": one.version, "source": one.source,
                "started": f"2026-01-01T00:00:00+00:00 {fake.role}",
                "_point": canonical_json(dict(one.point)), "experiment": one.experiment,
                FACTS: as_text(run_facts(by_column(_record(fake, one, repeat)))),
            }  # fmt: skip
            for (metric, phase), values in one.metrics.items():
                row[f"{metric}_mean_{phase}"] = (
                    values[repeat] if repeat < len(values) else float("nan")
                )
            rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    frame = pd.DataFrame(
        {
            n: np.array([r.get(n, np.nan) for r in rows], np.float64)
            if "_mean_" in n else typed_values([r.get(n) for r in rows])
            for n in names if n != "experiment"
        }
    )  # fmt: skip
    frame.attrs["metrics"] = {"b": {name: dict(m) for name, m in fake.meanings.items()}}
    plan = cast(Plan, _plan(fake, rows) if fake.plan else {"campaign": "c", "experiments": []})
    return Side(fake.role, f"results_{fake.role}", "here", plan, frame)


def _record(fake: FakeSide, one: FakePoint, repeat: int) -> dict[str, Any]:
    ranks = [{"host": fake.host, "affinity": "0-3", "hardware": dict(fake.hardware)}]
    return {
        "point": dict(one.point), "source": one.source, "wall_s": 1.0, "attempt": 1,
        "resources": {"hosts": [fake.host]},
        "environment": {
            "ranks": ranks, "versions": dict(fake.versions), "variables": dict(fake.variables),
        },
        "git": {"commit": fake.commit, "dirty": False} if fake.commit else None,
    }  # fmt: skip


def _plan(fake: FakeSide, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    experiments = []
    for name, version in dict.fromkeys((r["experiment"], r["version"]) for r in rows):
        runs = [
            {"run_id": r["run_id"], "point": json.loads(r["_point"]), "status": "done", "cause": ""}
            for r in rows
            if (r["experiment"], r["version"]) == (name, version)
        ]
        runs += [
            {"run_id": run_id, "point": {}, "cause": status,
             "status": status if status == "new" else "failed"}
            for run_id, status in fake.planned
        ]  # fmt: skip
        names = dict.fromkeys([*(n for r in runs for n in r["point"]), *fake.defaults])
        experiments.append(
            {
                "name": name, "benchmark": "b", "version": version, "runs": runs,
                "parameters": {n: {"default": fake.defaults.get(n, 1)} for n in names},
                "main_metric": None, "metrics": {}, "scale": "ranks",
                "compare": fake.compare, "scale_parameters": ["ranks"],
            }
        )  # fmt: skip
    return {
        "campaign": fake.campaign, "site": "here", "created": "2026-01-02T00:00:00+00:00",
        "experiments": experiments,
    }  # fmt: skip
