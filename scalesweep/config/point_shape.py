"""Mesh and transformer of a point: what a benchmark's expressions give, or those of a plan."""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.mesh import mesh_of_texts
from scalesweep.config.transformer import transformer_of_texts
from scalesweep.core.plan_format import PlanExperiment


def shape_of(benchmark: Benchmark, point: Mapping[str, Any]) -> ModelShape | None:
    """The transformer that a point trains; None where it is none, or its shape is not known.

    Raises UserError for a value that a field of it cannot have.
    """
    if benchmark.transformer is None:
        return None
    return benchmark.transformer.at(point, benchmark.name)


def mesh_of(benchmark: Benchmark, point: Mapping[str, Any]) -> dict[str, int] | None:
    """Ranks by role along each axis of a point's mesh, in the order of declaration; None where the
    benchmark declares none, or one of them is not known."""
    return benchmark.mesh.at(point) if benchmark.mesh else None


def planned_shape(experiment: PlanExperiment, point: Mapping[str, Any]) -> ModelShape | None:
    """The same as ``shape_of``, of a point of a plan with all its parameters."""
    if "transformer" not in experiment:
        return None
    return transformer_of_texts(experiment["transformer"]).at(point, experiment["benchmark"])


def planned_mesh(experiment: PlanExperiment, point: Mapping[str, Any]) -> dict[str, int] | None:
    """The same as ``mesh_of``, of a point of a plan with all its parameters."""
    if "mesh" not in experiment:
        return None
    return mesh_of_texts(experiment["mesh"]).at(point)
