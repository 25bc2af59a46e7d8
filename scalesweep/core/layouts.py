"""Layouts as tables, figures and report show them: one parameter in place of a mesh of many.

plan.json has the parameters that lay out ranks as the campaign sets them, and a name for each of
their combinations (``layouts``). Here that name becomes a parameter, which the others follow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment

LAYOUT = "layout"  # the parameter that names how ranks share the work of a point


def values_text(values: Mapping[str, Any]) -> str:
    """``tp 2, pp 1``."""
    return ", ".join(f"{name} {text_of(value)}" for name, value in values.items())


def laid_out(entry: PlanExperiment) -> list[str]:
    """The parameters for which ``layout`` stands; empty where there is none."""
    layouts = entry.get("layouts")
    return list(layouts["names"][0]["values"]) if layouts and LAYOUT in entry["axes"] else []


def with_layout(entry: PlanExperiment) -> PlanExperiment:
    """The entry with the parameter ``layout``, if its layouts have names."""
    layouts = entry.get("layouts")
    if not layouts or LAYOUT in entry["parameters"]:
        return entry
    names = {canonical_json(known["values"]): known["name"] for known in layouts["names"]}
    parameters = list(layouts["names"][0]["values"])

    def point(values: Mapping[str, Any]) -> dict[str, Any]:
        own = {name: values.get(name) for name in parameters}
        # A point that is left out may have a layout that no planned one has.
        return {LAYOUT: names.get(canonical_json(own)) or values_text(own), **values}

    def named(listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{**of, "point": point(of["point"])} for of in listed]

    decided: dict[str, Any] = {}
    if repeats := entry.get("repeats"):
        decided["repeats"] = {**repeats, "points": named(repeats["points"])}
    axes = sorted([LAYOUT, *entry["axes"]], key=lambda name: name != entry["scale"])
    return cast(
        PlanExperiment,
        {
            **entry,
            "axes": axes,
            "parameters": {
                LAYOUT: {
                    "unit": None,
                    "doc": layouts["doc"],
                    "default": layouts["default"],
                    "workload": False,
                },
                **entry["parameters"],
            },
            "runs": named(entry["runs"]),
            "profiles": named(entry["profiles"]),
            "excluded": named(entry["excluded"]),
            **decided,
        },
    )
