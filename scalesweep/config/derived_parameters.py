"""Parameters that an experiment works out from others, and quantities that are its own: no program
and no run id has them, such as a global batch size, but tables do."""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.benchmark_keys import Point
from scalesweep.config.experiment_keys import ExperimentKeys
from scalesweep.config.models import settled
from scalesweep.config.parameter import Parameter, check_parameter
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

_ANY = ("integer", "number", "boolean", "string")  # of a quantity that a campaign gives itself


@dataclass(frozen=True)
class Derivation:
    """What is derived, in order; ``quantities``: ``parameters`` that the program does not get."""

    parameters: Mapping[str, Parameter]
    derived: Mapping[str, Expression]
    quantities: tuple[str, ...]

    def at(self, point: Point) -> tuple[dict[str, Any], str]:
        """The point with its derived parameters, and why it is none, if so."""
        result, broken = dict(point), ""
        for name, value in self.derived.items():
            parameter, fault = self.parameters[name], "cannot be worked out"
            result[name] = None
            try:
                result[name] = value(result)
                fault = f"is not {parameter.allowed}"
                result[name] = parameter.normalise(result[name], f"{value.where}: {name}")
            except UserError:
                broken = broken or f"{name} = {value.text} {fault}"
        return result, broken

    def check_same(self, first: Point, other: Point, where: str) -> None:
        """Raise UserError for two points that differ in quantities, but not for the program."""
        for name in self.quantities:
            if first[name] != other[name]:
                raise UserError(
                    f"{where}: {name} = {first[name]} and {other[name]} make the same point; "
                    f"derive a parameter of the benchmark from {name}, or leave {name} out"
                )


def derived_parameters(
    benchmark: Benchmark, spec: ExperimentKeys, where: str
) -> tuple[Benchmark, Derivation]:
    """What an experiment derives, and the benchmark with its quantities. Raises UserError."""
    where = f"{where}.derive"
    values = {name: entry.value for name, entry in spec.derive.items()}
    set_here = {*spec.fixed, *spec.axes}.union(*(spec.linked or ()), *spec.extra)
    for name in values:
        if name == benchmark.scale or name in benchmark.scale_parameters:
            raise UserError(f"{where}.{name}: runs scale over it; derive the others from {name}")
        if name in set_here:
            raise UserError(f"{where}.{name}: {name!r} is set elsewhere too; keep one")
    expressions = (*values.values(), *(it.when for it in spec.exclude))
    read = frozenset().union(*(expression.names for expression in expressions))
    quantities = {name: Parameter.of(_ANY, "") for name in sorted(set_here & read)}
    quantities |= {
        name: Parameter.of(("integer",), entry.doc, entry.unit)
        for name, entry in spec.derive.items()
    }
    quantities = {n: it for n, it in quantities.items() if n not in benchmark.parameters}
    for name in quantities:
        check_parameter(name, where)
    known = benchmark.with_quantities(quantities)
    settled(values, where, known.parameters)
    derived = {name: values[name] for name in in_order(values, where)}
    return known, Derivation(known.parameters, derived, tuple(quantities))


def in_order(values: Mapping[str, Expression], where: str) -> list[str]:
    """The names, each after those that it reads. Raises UserError where two need each other."""
    graph = {name: value.names & values.keys() for name, value in values.items()}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise UserError(f"{where}: these need each other: {' -> '.join(error.args[1])}") from None
