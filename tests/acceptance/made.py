"""Made records: runs that nobody ran, written as finished ones are (docs/reference/files.md).

A gate that needs thousands of runs, or runs whose truth is known, writes their record.json and
samples.npz and has the command line make tables of them.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from tests.acceptance.places import TABLES_RULE
from tests.conftest import Project

SITE = "made"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_UNKNOWN = {"hosts": None, "slurm_nodes": None}


def _canonical(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _digest(content: bytes, size: int = 16) -> str:
    return blake2b(content, digest_size=size).hexdigest()


@dataclass(frozen=True)
class Program:
    """An external program whose runs are made up.

    ``parameters``: name -> default; `ranks` and `ranks_per_node` are added. ``metrics``: name ->
    ``{"unit", "better", "scope"}``, the first is the main one. ``keys``: more of benchmark.yaml.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def defaults(self) -> dict[str, Any]:
        """Every parameter with its default."""
        return {"ranks": 1, "ranks_per_node": 1, **self.parameters}

    def write(self, project: Project) -> None:
        """Write benchmark.yaml, and the site, which starts nothing."""
        parameters = {
            name: {"type": _TYPES[type(default)], "default": default, "doc": f"The {name}."}
            for name, default in self.defaults.items()
        }
        for name in ("ranks", "ranks_per_node"):
            parameters[name] |= {"minimum": 1, "unit": "ranks"}
        extract = [
            {"metric": name, "pattern": rf"^{name} (\S+)", **meaning}
            for name, meaning in self.metrics.items()
        ]
        content = {
            "name": self.name, "version": 1, "summary": "A program of made records.",
            "parameters": parameters, "command": ["made"],
            "result": {"extract": extract} if extract else "native", **self.keys,
        }  # fmt: skip
        folder = project.path / "workflow" / "benchmarks" / self.name
        folder.mkdir(parents=True)
        (folder / "benchmark.yaml").write_text(json.dumps(content))  # JSON is YAML
        site = {"site": SITE, "nodes": 1024, "cores_per_node": 64}
        (project.path / "config" / "sites" / f"{SITE}.yaml").write_text(json.dumps(site))

    def run_id(self, point: Mapping[str, Any], repeat: int) -> str:
        """``<benchmark>-r<ranks>-<digest>`` of a whole point."""
        differs = {name: value for name, value in point.items() if value != self.defaults[name]}
        digest = _digest(_canonical([self.name, 1, differs, repeat]).encode(), 6)
        return f"{self.name}-r{point['ranks']}-{digest}"

    def record(
        self,
        results: Path,
        point: Mapping[str, Any],
        repeat: int,
        values: Mapping[str, float] = {},
        arrays: Mapping[str, Any] = {},
        minute: float = 0,
        **changes: Any,
    ) -> str:
        """Write a finished run into a results folder; returns its id.

        ``point``: what differs from the defaults. ``arrays``: of samples.npz, `[step, rank]` in s.
        ``minute``: when it began. ``changes``: other keys of the record.
        """
        whole = {**self.defaults, **point}
        run_id = self.run_id(whole, repeat)
        folder = results / "runs" / SITE / run_id
        folder.mkdir(parents=True)
        (results / ".scalesweep").write_text('{"scalesweep": "results"}')
        began = BEGIN + timedelta(minutes=minute)
        record = {
            "schema": 4, "run_id": run_id, "benchmark": self.name, "version": 1, "point": whole,
            "repeat": repeat, "site": SITE, "source": "measured", "started": began.isoformat(),
            "ended": (began + timedelta(seconds=30)).isoformat(), "wall_s": 30.0, "attempt": 1,
            "phases": {}, "work": {}, "resources": _UNKNOWN, "environment": {}, "notes": {},
            "metrics": {name: {"value": value, **self.metrics[name]}
                        for name, value in values.items()},
            "git": None, "command": ["made"], "samples": None, **changes,
        }  # fmt: skip
        if arrays:
            archive = io.BytesIO()
            np.savez(archive, **{name: np.asarray(array) for name, array in arrays.items()})
            content = archive.getvalue()
            (folder / "samples.npz").write_bytes(content)
            about = {"bytes": len(content), "blake2b": _digest(content)}
            record["samples"] = {"file": "samples.npz", **about}
        record["digest"] = _digest(_canonical(record).encode())
        (folder / "record.json").write_text(json.dumps(record, ensure_ascii=False))
        return run_id


def write_campaign(
    project: Project, name: str, experiments: Mapping[str, Mapping[str, Any]], **keys: Any
) -> Path:
    """Write NAME.yaml, whose results folder is NAME, in the project's folder; returns that."""
    content = {"campaign": name, "site": SITE, "results": name, "experiments": experiments, **keys}
    project.write(f"{name}.yaml", json.dumps(content))
    return project.path / name


def make_tables(project: Project, *names: str) -> None:
    """Make the tables of campaigns whose runs have all been written, without figures or report."""
    for name in names:
        done = project.snakemake(TABLES_RULE, "--configfile", f"{name}.yaml", minutes=30)
        assert done.returncode == 0, done.stdout + done.stderr
