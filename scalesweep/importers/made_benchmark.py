"""Benchmarks that an import makes, for results of what no benchmark of ours runs.

They lie in ``benchmarks/`` of the results folder, next to the campaign of the imported runs, and
every parameter but ``ranks`` is null by default: a later import may add parameters without changing
the id of any run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from scalesweep.config.benchmark import MADE, Benchmark, load_benchmark
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.paths import BENCHMARKS, RESOURCES

_RANKS = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks"}


@dataclass(frozen=True)
class Made:
    """What a benchmark is that an importer makes.

    ``parameters`` by name (``ranks`` needs none), ``metrics`` definitions by name (or with a kind,
    as in benchmark.yaml), the main one first. ``declared``: ``mesh``, ``transformer`` and
    ``memory``, ``work`` and what ``ranks`` count (``scale``) as in benchmark.yaml.
    """

    summary: str
    parameters: Mapping[str, Mapping[str, Any]]
    metrics: Mapping[str, str | Mapping[str, str]]
    declared: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "ranks"
    work: Mapping[str, str] | None = None

    def is_part_of(self, benchmark: Benchmark) -> bool:
        """Whether a benchmark has all that this one has."""
        return (
            self.metrics.keys() <= benchmark.metrics.keys()
            and self.parameters.keys() <= benchmark.parameters.keys()
        )


@cache
def declared(name: str) -> Mapping[str, Any]:
    """What ``resources/imported`` says of the results of a program, the main metric first."""
    said: Mapping[str, Any] = load_yaml(RESOURCES / "imported" / f"{name}.yaml")
    return said


def made_of(said: Mapping[str, Any]) -> Made:
    """A benchmark whose parameters and metrics are declared."""
    metrics = {
        name: {"definition": it["definition"], "kind": it["kind"]} if "kind" in it
        else it["definition"]
        for name, it in said["metrics"].items()
    }  # fmt: skip
    return Made(said["summary"], entries_of(said["parameters"]), metrics)


def entries_of(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Declared parameters as benchmark.yaml has them: null where a source does not state them."""
    return {
        name: {
            "type": [it["type"], "null"], "default": None, "doc": it["doc"],
            **{key: it[key] for key in ("unit", "workload") if it.get(key)},
        }
        for name, it in parameters.items()
    }  # fmt: skip


def make_benchmark(results: Path, name: str, made: Made) -> Benchmark:
    """Write the benchmark of imported results and read it back.

    One of this name that an earlier import made keeps its parameters and gets the new ones. Raises
    UserError if the name is that of a shipped benchmark, or a parameter was something else before.
    """
    if (BENCHMARKS / name).is_dir():
        raise UserError(f"{name}: a shipped benchmark has this name; choose another")
    path = results / MADE / name / "benchmark.yaml"
    workers = {"name": made.scale, "count": "ranks", "doc": f"Number of {made.scale}."}
    content: dict[str, Any] = {
        "name": name,
        "version": 1,
        "summary": made.summary,
        "parameters": {
            "ranks": {**_RANKS, "doc": f"Number of {made.scale}."},
            "ranks_per_node": {**_RANKS, "doc": "Ranks on a node; 1 if the source does not say."},
            **{key: dict(entry) for key, entry in made.parameters.items() if key != "ranks"},
        },
        "metrics": dict(made.metrics),
        "main_metric": next(iter(made.metrics)),
        # Nothing can be started: only a site with a launcher would ask for the program's path.
        "command": [f"{{program:{name}}}"],
        "result": "native",
        **({"work": dict(made.work)} if made.work else {}),
        **({"workers": workers} if made.scale != "ranks" else {}),
        **made.declared,
    }
    if path.is_file():
        content = _joined(load_yaml(path), content, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(content, sort_keys=False, width=100, allow_unicode=True)
    write_atomic(path, f"# Written by an import: what its results are.\n{text}")
    return load_benchmark(name, folder=path.parent)


def _joined(before: dict[str, Any], now: dict[str, Any], path: Path) -> dict[str, Any]:
    """What an earlier import made, with what this one adds."""
    parameters = now["parameters"] | before["parameters"]
    for name, entry in now["parameters"].items():
        for key in ("type", "unit"):  # how a value is read must not change between imports
            if parameters[name].get(key) != entry.get(key):
                raise UserError(
                    f"{path}: parameters.{name}: {key} {parameters[name].get(key)} in an earlier "
                    f"import, {entry.get(key)} in this one; state the type or unit in the map, or "
                    "import under another name"
                )
    return {
        **before,
        **now,
        "parameters": before["parameters"] | parameters,
        "metrics": before["metrics"] | now["metrics"],
        "main_metric": before["main_metric"],
    }
