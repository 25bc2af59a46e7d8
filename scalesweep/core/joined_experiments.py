"""Experiments of several benchmarks as tables, figures and report show them: their parts as one.

plan.json has an entry for each part, an experiment of one benchmark: planning, comparisons with
other results and the history need no more. Here the parts become one entry, in which ``benchmark``
is a parameter like any other.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import chain
from typing import Any

from scalesweep.core.files import canonical_json
from scalesweep.core.plan_format import (
    UNKNOWN_PARAMETER,
    ParameterInfo,
    Plan,
    PlanExperiment,
    PointValues,
)

BENCHMARK = "benchmark"  # the parameter that says which benchmark a point is of
_NONE = "\0"  # no value of a parameter


def shown(plan: Plan) -> Plan:
    """The plan as tables, figures and report show it: with one entry for all parts of an
    experiment, at the place of the first."""
    groups: dict[str, list[PlanExperiment]] = {}
    for entry in plan["experiments"]:
        groups.setdefault(entry.get("part_of") or entry["name"], []).append(entry)
    joined = [_joined(name, parts) for name, parts in groups.items()]
    return {**plan, "experiments": joined}


def benchmarks_of(entry: PlanExperiment) -> dict[str, int]:
    """The benchmarks of an experiment, each with its version."""
    return entry.get("benchmarks") or {entry["benchmark"]: entry["version"]}


def parameters_at(entry: PlanExperiment, values: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of a point whose varying ones have these ``values``."""
    own = entry.get("fixed_of", {}).get(str(values.get(BENCHMARK)), {})
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
    values_of: list[Any] = [values.get(name) for name in entry["axes"]]
    return canonical_json([v.item() if hasattr(v, "item") else v for v in values_of])


def _joined(name: str, parts: Sequence[PlanExperiment]) -> PlanExperiment:
    """The entry of an experiment: its own, or all parts in one."""
    first = parts[0]
    if not first.get("part_of"):
        return first
    # Benchmarks with words of their own for what they scale over scale over their ranks.
    scales = {part["scale"] for part in parts}
    scale = first["scale"] if len(scales) == 1 else "ranks"
    dropped = scales - {scale}
    varying = dict.fromkeys(chain.from_iterable(part["axes"] for part in parts))
    others = [axis for axis in varying if axis not in (scale, *dropped)]
    axes = [*([scale] if scale in varying else []), BENCHMARK, *others]
    # What has one value in all parts, and by benchmark what has a value of its own.
    fixed_in = [part["fixed"] for part in parts]
    same = {key for key in first["fixed"] if _agree([of.get(key, _NONE) for of in fixed_in])}
    out = {*axes, *dropped}
    fixed = {key: value for key, value in first["fixed"].items() if key in same - out}

    def pointed(entries_of: Callable[[PlanExperiment], Sequence[Any]]) -> list[Any]:
        return [
            {**of, "point": {BENCHMARK: part["benchmark"], **_without(of["point"], dropped)}}
            for part in parts
            for of in entries_of(part)
        ]

    seconds = [of["wall_s"] for of in parts if of["wall_s"] is not None]
    entry: PlanExperiment = {
        **first,
        "benchmark": ", ".join(part["benchmark"] for part in parts),
        "benchmarks": {part["benchmark"]: part["version"] for part in parts},
        "summary": "; ".join(f"{part['benchmark']}: {part['summary']}" for part in parts),
        "metrics": _definitions(parts),
        "compare": _agreed([part.get("compare", {}) for part in parts]),
        "kinds": _agreed([part.get("kinds", {}) for part in parts]),
        "name": name,
        "scale": scale,
        "scale_parameters": ["ranks"] if dropped else first["scale_parameters"],
        "axes": axes,
        "work": sorted({*chain.from_iterable(part["work"] for part in parts)} & {*axes, *fixed}),
        "fixed": fixed,
        "fixed_of": {part["benchmark"]: _without(part["fixed"], same | out) for part in parts},
        "parameters": _parameters(parts, dropped),
        "runs": pointed(lambda part: part["runs"]),
        "profiles": pointed(lambda part: part["profiles"]),
        "excluded": pointed(lambda part: part["excluded"]),
        "points": sum(part["points"] for part in parts),
        "wall_s": sum(seconds) if len(seconds) == len(parts) else None,
    }
    del entry["part_of"]
    # What only some entries have; what is said of one program is not said of all.
    if derived := {key: of for part in parts for key, of in part.get("derived", {}).items()}:
        entry["derived"] = derived
    for key in ("noexchange", "ceiling", "mesh", "transformer", "memory"):
        if not _agree([part.get(key) for part in parts]):
            entry.pop(key, None)  # type: ignore[misc]
    if rules := [part["repeats"] for part in parts if "repeats" in part]:
        metric = next((rule["metric"] for rule in rules if rule["metric"]), "")
        looked = pointed(lambda part: part["repeats"]["points"] if "repeats" in part else ())
        entry["repeats"] = {**rules[0], "metric": metric, "points": looked}
    if refused := sum(part.get("refused", 0) for part in parts):
        entry["refused"] = refused
    return entry


def _without(values: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _agree(values: Sequence[Any]) -> bool:
    return len({canonical_json(value) for value in values}) == 1


def _definitions(parts: Sequence[PlanExperiment]) -> dict[str, str]:
    """Definitions of metrics, first of those that all have; where benchmarks define one in other
    words, each with its own."""
    every = dict.fromkeys(chain.from_iterable(part["metrics"] for part in parts))
    texts = {}
    for metric in sorted(every, key=lambda m: not all(m in part["metrics"] for part in parts)):
        said = {of["benchmark"]: of["metrics"][metric] for of in parts if metric in of["metrics"]}
        alike = len(set(said.values())) == 1
        each = [f"{benchmark}: {text}" for benchmark, text in said.items()]
        texts[metric] = next(iter(said.values())) if alike else "; ".join(each)
    return texts


def _agreed(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What benchmarks say of metrics, without that of which they say different things."""
    said = {name: {of[name] for of in maps if name in of} for name in chain.from_iterable(maps)}
    return {name: words.pop() for name, words in said.items() if len(words) == 1}


def _parameters(parts: Sequence[PlanExperiment], dropped: set[str]) -> dict[str, ParameterInfo]:
    """What the columns mean: of a parameter that several have, as the first one says it.

    Where their defaults differ there is none.
    """
    known: dict[str, ParameterInfo] = {
        BENCHMARK: {
            **UNKNOWN_PARAMETER,
            "doc": "The program that was measured.",
            "default": parts[0]["benchmark"],
        }
    }
    for part in parts:
        for name, info in _without(part["parameters"], dropped).items():
            said = known.setdefault(name, info)
            agree = _agree([said["default"], info["default"]])
            known[name] = {
                **said,
                "default": said["default"] if agree else None,
                # What changes the work of one program is ranked for none.
                "workload": said["workload"] or info["workload"],
            }
    return known
