"""What makes an experiment a study of layouts, and what its layouts are called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scalesweep.analysis.factors import (
    fold_axes,
    layout_followers,
    planned_points,
)
from scalesweep.config.shapes import Mesh, planned
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.layouts import LAYOUT, laid_out
from scalesweep.core.plan_format import PlanExperiment, parameter_of

Values = Mapping[str, Any]
# What says of a transformer what is computed, where it is a parameter by itself.
_WORKLOAD = ("parameters", "layers", "width", "sequence", "vocabulary", "global_batch")


@dataclass(frozen=True)
class LayoutStudy:
    """An experiment whose points of one scale split their ranks in several ways.

    ``workload``: independent parameters that say what is computed: layouts compare where they and
    the scale are the same. ``free``: the other independent ones, without what they leave no choice
    of (``layout_followers``).
    """

    entry: PlanExperiment
    mesh: Mesh
    workload: Sequence[str]
    free: Sequence[str]

    def at(self, values: Values) -> dict[str, Any]:
        """Every parameter of the point whose varying ones have these values."""
        return parameters_at(self.entry, values)

    def scale(self, values: Values) -> int:
        """What the point is a study over: ranks, or devices."""
        return int(self.at(values)[self.entry["scale"]])

    def setting_text(self, values: Values) -> str:
        """``model 8B, gbs 256``; empty where all points compute the same."""
        return ", ".join(f"{name} {text_of(values[name])}" for name in self.workload)

    def mesh_at(self, values: Values) -> Mapping[str, int]:
        """The ranks along each axis of the mesh."""
        return self.mesh.at(self.at(values)) or {}

    @cached_property
    def roles(self) -> list[str]:
        """The axes of the mesh that are not 1 everywhere."""
        sizes = [self.mesh_at(point) for point in planned_points(self.entry)]
        return [role for role in self.mesh.fields if any(of.get(role, 1) != 1 for of in sizes)]

    @cached_property
    def others(self) -> list[str]:
        """Free parameters of which the mesh does not tell."""
        return [name for name in self.free if name not in self.mesh.names]

    def text(self, values: Values) -> str:
        """``dp 32 x tp 8 x pp 1, zero 0, mbs 8``, or the name that the benchmark gives a layout."""
        if LAYOUT in self.others:
            sizes = text_of(values[LAYOUT])
        else:
            mesh = self.mesh_at(values)
            sizes = " x ".join(f"{role} {text_of(mesh.get(role))}" for role in self.roles)
        words = [f"{name} {text_of(values[name])}" for name in self.others if name != LAYOUT]
        return ", ".join(filter(None, [sizes, *words]))


def study_of(entry: PlanExperiment) -> LayoutStudy | None:
    """The study of layouts that an experiment is.

    None where its benchmark declares no mesh, or all points of a scale that compute the same have
    the same one.
    """
    mesh = planned(entry).mesh
    if mesh is None:
        return None
    texts = entry.get("transformer", {})
    named = {str(texts[key]) for key in _WORKLOAD if key in texts}
    inside = {*laid_out(entry), *layout_followers(entry), *entry["scale_parameters"]}
    leaders = [name for name in fold_axes(entry)[0] if name != entry["scale"]]
    workload = [n for n in leaders if parameter_of(entry, n)["workload"] or n in named]
    free = [name for name in leaders if name not in inside and name not in workload]
    meshes: dict[Any, set[Any]] = {}
    for point in planned_points(entry):
        key = (point.get(entry["scale"]), *(point.get(name) for name in workload))
        meshes.setdefault(key, set()).add(tuple((mesh.at(point) or {}).values()))
    several = any(len(sizes) > 1 for sizes in meshes.values())
    return LayoutStudy(entry, mesh, workload, free) if several else None
