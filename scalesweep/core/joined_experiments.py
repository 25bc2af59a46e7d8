"""Experiments of several benchmarks as tables, figures and report show them: their parts as one.

plan.json has an entry for each part, an experiment of one benchmark: planning, comparisons with
other results and the history need no more. Here the parts become one entry, in which ``benchmark``
is a parameter like any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from scalesweep.core.files import canonical_json
from scalesweep.core.layouts import LAYOUT
from scalesweep.core.plan_format import (
    ParameterInfo,
    Plan,
    PlanExperiment,
    PlanRepeats,
    PointValues,
)

BENCHMARK = "benchmark"  # the parameter that says which benchmark a point is of


class JoinedExperiment(PlanExperiment):
    """An experiment whose parts are one; its ``benchmark`` names all of them.

    ``benchmarks``: the version of each; ``fixed_of``: by benchmark the constant parameters that
    others do not have, or have with another value.
    """

    benchmarks: dict[str, int]
    fixed_of: dict[str, dict[str, Any]]


def with_joined(plan: Plan) -> Plan:
    """The plan with one entry for all parts of an experiment, at the place of the first."""
    groups: dict[str, list[PlanExperiment]] = {}
    for entry in plan["experiments"]:
        groups.setdefault(entry.get("part_of") or entry["name"], []).append(entry)
    joined = [_joined(name, parts) for name, parts in groups.items()]
    return {**plan, "experiments": joined}


def benchmarks_of(entry: PlanExperiment) -> dict[str, int]:
    """The benchmarks of an experiment, each with its version."""
    joined = cast(JoinedExperiment, entry)
    return joined.get("benchmarks") or {entry["benchmark"]: entry["version"]}


def constants_of(entry: PlanExperiment) -> Mapping[str, Mapping[str, Any]]:
    """By benchmark the constant parameters that are its own; empty where there is one benchmark."""
    return cast(JoinedExperiment, entry).get("fixed_of", {})


def parameters_at(entry: PlanExperiment, values: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of a point whose varying ones have these ``values``."""
    own = constants_of(entry).get(str(values.get(BENCHMARK)), {})
    return {**entry["fixed"], **own, **derived_values(entry, values), **values}


def derived_values(entry: PlanExperiment, values: Mapping[str, Any]) -> PointValues:
    """The derived parameters that vary, at a point with these ``values`` of its axes.

    Empty where nothing is derived, or the point is not planned.
    """
    by_point = entry.get("derived_at")
    return by_point.get(axes_key(entry, values), {}) if by_point else {}


def axes_key(entry: PlanExperiment, values: Mapping[str, Any]) -> str:
    """What tells a point of an experiment from the others: the values of its axes, which may be
    numbers of a table (NumPy's)."""
    # The name of a layout says what other axes say.
    axes = [name for name in entry["axes"] if name != LAYOUT or "layouts" not in entry]
    values_of: list[Any] = [values.get(name) for name in axes]
    return canonical_json([v.item() if hasattr(v, "item") else v for v in values_of])


def differing_settings(entry: PlanExperiment) -> dict[str, dict[str, Any]]:
    """Parameters that all benchmarks of an experiment have, with other values in each: by name
    the value of each benchmark. None where there is one benchmark."""
    of = constants_of(entry)
    common = set.intersection(*(set(values) for values in of.values())) if of else set()
    first = next(iter(of.values()), {})
    return {
        name: {benchmark: values[name] for benchmark, values in of.items()}
        for name in first
        if name in common
    }


def _joined(name: str, parts: Sequence[PlanExperiment]) -> PlanExperiment:
    """The entry of an experiment: its own, or all parts in one."""
    if not parts[0].get("part_of"):
        return parts[0]
    first = parts[0]
    scale, dropped = _common_scale(parts)
    axes = _axes(parts, scale, dropped)
    fixed, fixed_of = _constants(parts, {*axes, *dropped})
    entry: JoinedExperiment = {
        **first,
        "benchmark": ", ".join(part["benchmark"] for part in parts),
        "benchmarks": {part["benchmark"]: part["version"] for part in parts},
        "summary": "; ".join(f"{part['benchmark']}: {part['summary']}" for part in parts),
        "metrics": _definitions(parts),
        "compare": _agreed(part.get("compare", {}) for part in parts),
        "kinds": _agreed(part.get("kinds", {}) for part in parts),
        "name": name,
        "scale": scale,
        "scale_parameters": ["ranks"] if dropped else first["scale_parameters"],
        "axes": axes,
        "work": sorted({*chain.from_iterable(part["work"] for part in parts)} & {*axes, *fixed}),
        "fixed": fixed,
        "fixed_of": fixed_of,
        "parameters": _parameters(parts, dropped),
        "runs": [run for part in parts for run in _pointed(part["runs"], part, dropped)],
        "profiles": [run for part in parts for run in _pointed(part["profiles"], part, dropped)],
        "excluded": [each for part in parts for each in _pointed(part["excluded"], part, dropped)],
        "points": sum(part["points"] for part in parts),
        "estimate": {
            "wall_s": _sum([part["estimate"]["wall_s"] for part in parts]),
            "core_hours": _sum([part["estimate"]["core_hours"] for part in parts]),
        },
    }
    del entry["part_of"]
    _join_optional(entry, parts, dropped)
    return entry


def _common_scale(parts: Sequence[PlanExperiment]) -> tuple[str, set[str]]:
    """What all scale over, and the words of parts that it replaces: benchmarks with words of their
    own for what they scale over scale over their ranks."""
    scale = parts[0]["scale"] if len({part["scale"] for part in parts}) == 1 else "ranks"
    return scale, {part["scale"] for part in parts} - {scale}


def _axes(parts: Sequence[PlanExperiment], scale: str, dropped: set[str]) -> list[str]:
    """Parameters that vary among all points: the scale first, then the benchmark."""
    varying = dict.fromkeys(chain.from_iterable(part["axes"] for part in parts))
    others = [name for name in varying if name != scale and name not in dropped]
    return [*([scale] if scale in varying else []), BENCHMARK, *others]


def _join_optional(
    entry: PlanExperiment, parts: Sequence[PlanExperiment], dropped: set[str]
) -> None:
    """Join what only some entries have; what is said of one program is not said of all."""
    derived = {name: of for part in parts for name, of in part.get("derived", {}).items()}
    if derived:
        entry["derived"] = derived
    for key in ("noexchange", "ceiling", "layouts", "mesh", "transformer", "memory"):
        if not all(_same(part.get(key), parts[0].get(key)) for part in parts):
            entry.pop(key, None)  # type: ignore[misc]
    if repeats := _repeats(parts, dropped):
        entry["repeats"] = repeats
    if refused := sum(part.get("refused", 0) for part in parts):
        entry["refused"] = refused


def _constants(
    parts: Sequence[PlanExperiment], out: set[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters with one value in all parts, and by benchmark those with a value of its own."""
    first = parts[0]["fixed"]
    same = {
        name
        for name, value in first.items()
        if all(name in part["fixed"] and _same(part["fixed"][name], value) for part in parts)
    } - out
    fixed = {name: value for name, value in first.items() if name in same}
    return fixed, {
        part["benchmark"]: {
            name: value for name, value in part["fixed"].items() if name not in same | out
        }
        for part in parts
    }


def _same(value: Any, other: Any) -> bool:
    return canonical_json(value) == canonical_json(other)


def _definitions(parts: Sequence[PlanExperiment]) -> dict[str, str]:
    """Definitions of metrics, first of those that all have; where benchmarks define one in other
    words, each with its own."""
    texts: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        for metric, text in part["metrics"].items():
            texts.setdefault(metric, {}).setdefault(text, []).append(part["benchmark"])
    order = sorted(texts, key=lambda metric: not all(metric in part["metrics"] for part in parts))
    texts = {metric: texts[metric] for metric in order}
    return {
        metric: next(iter(by_text))
        if len(by_text) == 1
        else "; ".join(f"{', '.join(names)}: {text}" for text, names in by_text.items())
        for metric, by_text in texts.items()
    }


def _agreed(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What benchmarks say of metrics, without that of which they say different things."""
    said: dict[str, set[str]] = {}
    for mapping in maps:
        for name, word in mapping.items():
            said.setdefault(name, set()).add(word)
    return {name: next(iter(words)) for name, words in said.items() if len(words) == 1}


def _parameters(parts: Sequence[PlanExperiment], dropped: set[str]) -> dict[str, ParameterInfo]:
    """What the columns mean: of a parameter that several have, as the first one says it.

    Where their defaults differ there is none.
    """
    known: dict[str, ParameterInfo] = {
        BENCHMARK: {
            "unit": None,
            "doc": "The program that was measured.",
            "default": parts[0]["benchmark"],
            "workload": False,
        }
    }
    for part in parts:
        for name, info in part["parameters"].items():
            if name in dropped:
                continue
            said = known.setdefault(name, info)
            known[name] = {
                **said,
                "default": said["default"] if _same(said["default"], info["default"]) else None,
                # What changes the work of one program is ranked for none.
                "workload": said["workload"] or info["workload"],
            }
    return known


def _pointed(listed: Iterable[Any], part: PlanExperiment, dropped: set[str]) -> list[Any]:
    """Entries of a part with the benchmark in their points."""
    own = {BENCHMARK: part["benchmark"]}
    return [
        {**of, "point": own | {k: v for k, v in of["point"].items() if k not in dropped}}
        for of in listed
    ]


def _repeats(parts: Sequence[PlanExperiment], dropped: set[str]) -> PlanRepeats | None:
    """How precise the points of all parts are, by the rule that all of them have; None without."""
    rules = [(part, part["repeats"]) for part in parts if "repeats" in part]
    if not rules:
        return None
    return {
        **rules[0][1],
        "metric": next((rule["metric"] for _, rule in rules if rule["metric"]), ""),
        "points": [
            point for part, rule in rules for point in _pointed(rule["points"], part, dropped)
        ],
    }


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum of what is known of all; None where something is not known of one."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
