"""Parameters that an experiment works out from others, and rules that its points must keep.

A name that is no parameter of the benchmark is a quantity of the experiment, such as a global batch
size or the number of data-parallel ranks: it is shown like a parameter and can be an axis, but the
program is not told of it, and it is no part of run ids.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.config.parameter import Parameter
from scalesweep.config.reserved_names import check_parameter
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

Point = Mapping[str, Any]
_ANY = ("integer", "number", "boolean", "string")  # of a quantity that a campaign gives itself


@dataclass(frozen=True)
class Derived:
    """A parameter that is worked out, and from what."""

    parameter: Parameter
    value: Expression
    where: str  # starts messages

    def at(self, point: Point) -> tuple[Any, str | None]:
        """The value at a point, None if there is none, and why the point cannot have it.

        Raises UserError for a text or another value that is no number where it cannot be one of
        the parameter's: a slip in the expression, rather than a combination that does not fit.
        """
        text = f"{self.parameter.name} = {self.value.text}"
        try:
            value = self.value(point)
        except UserError:
            return None, f"{text} cannot be worked out"
        types = self.parameter.types
        whole = "integer" in types and "number" not in types
        if whole and isinstance(value, float) and not value.is_integer():
            return value, f"{text} is not a whole number"
        try:
            return self.parameter.normalise(value, self.where), None
        except UserError:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise
            return value, f"{text} is not {self.parameter.allowed}"


@dataclass(frozen=True)
class Derivation:
    """What an experiment derives, each after what it reads; nothing for most experiments.

    ``quantities``: its parameters of which the program is not told, the derived ones last.
    """

    derived: Mapping[str, Derived] = field(default_factory=dict)
    quantities: tuple[str, ...] = ()

    def at(self, point: Point) -> tuple[dict[str, Any], str | None]:
        """The point with its derived parameters, and why it is none, if so; a value that it cannot
        have is as it came out."""
        result, broken = dict(point), None
        for name, derived in self.derived.items():
            result[name], why = derived.at(result)
            broken = broken or why
        return result, broken

    def sources(self, names: Collection[str]) -> frozenset[str]:
        """``names`` and all that they are derived from."""
        result = set(names)
        for name, derived in reversed([*self.derived.items()]):
            if name in result:
                result |= derived.value.names
        return frozenset(result)

    def check_same(self, first: Point, other: Point, where: str) -> None:
        """Raise UserError for two points of which the program is told the same, but which have
        other quantities: no run is of one of them alone."""
        for name in self.quantities:
            if first[name] != other[name]:
                raise UserError(
                    f"{where}: {name} = {first[name]} and {other[name]} make the same point; "
                    f"derive a parameter of the benchmark from {name}, or leave {name} out"
                )


def derived_parameters(
    benchmark: Benchmark, spec: ExperimentKeys, where: str
) -> tuple[Benchmark, Derivation]:
    """What an experiment derives, and the benchmark with the quantities that are the experiment's.

    ``spec``: of the experiment; ``where`` starts messages. Raises UserError for a name that is set
    elsewhere, cannot be derived, or is not known.
    """
    values = {name: entry.value for name, entry in spec.derive.items()}
    for name, value in values.items():
        value.where = f"{where}.derive.{name}"
    rules = [it.that for it in spec.require]
    read = frozenset().union(*(expression.names for expression in (*values.values(), *rules)))
    set_here = {name: "linked" for entry in spec.linked or () for name in entry}
    set_here |= {name: "extra" for entry in spec.extra for name in entry}
    set_here |= dict.fromkeys(spec.fixed, "fixed") | dict.fromkeys(spec.axes, "axes")
    for name in values:
        if name == benchmark.scale or name in benchmark.scale_parameters:
            raise UserError(
                f"{where}.derive.{name}: what runs scale over cannot be derived; put {name} under "
                "axes, and derive the others from it"
            )
        if name in set_here:
            raise UserError(f"{where}: {name!r} is set in {set_here[name]} and in derive; keep one")
    given = {name: Parameter.called(name, _ANY, "") for name in set_here if name in read}
    stated = {
        name: Parameter.called(name, (entry.type,), entry.doc, unit=entry.unit)
        for name, entry in spec.derive.items()
    }
    quantities = {n: it for n, it in (given | stated).items() if n not in benchmark.parameters}
    for name in quantities:
        check_parameter(name, f"{where}.{set_here.get(name, 'derive')}.{name}")
    known = benchmark.with_quantities(quantities)
    for expression in values.values():
        expression.check_names(set(known.parameters))
    derived = {
        name: Derived(known.parameters[name], values[name], f"{where}.derive.{name}")
        for name in in_order(values, f"{where}.derive")
    }
    return known, Derivation(derived, tuple(quantities))


def in_order(values: Mapping[str, Expression], where: str) -> list[str]:
    """The names, each after those that it reads. Raises UserError where two need each other."""
    graph = {name: value.names & values.keys() for name, value in values.items()}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise UserError(f"{where}: these need each other: {' -> '.join(error.args[1])}") from None
