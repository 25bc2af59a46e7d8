"""``metrics`` of an experiment: worked out from those of each run, and part of no run id."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from scalesweep.analysis.flop_conventions import mixed_conventions
from scalesweep.analysis.metrics import ENERGY, EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_keys import MetricKeys
from scalesweep.config.log_patterns import RESERVED
from scalesweep.config.parameter import OF_RUNS, OF_TABLES, check_metrics, check_parameter
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Formula, by_alias

# What the summary says of every run, as numbers.
FACTS = ("wall_s", "hosts", "samples", "bytes")
# Behind the name of a metric of epochs: of the first one. Without it: of those after the first.
FIRST = "_init"


class DerivedMetric(NamedTuple):
    """A metric with its formula; ``reads``: metrics, parameters and facts by their names in it;
    ``definition``: what the report says of it."""

    formula: str
    unit: str
    better: str
    scope: str
    reads: dict[str, str]
    definition: str


def derived_metrics(
    benchmark: Benchmark, spec: Mapping[Any, MetricKeys], where: str
) -> dict[str, DerivedMetric]:
    """The metrics that an experiment states by formulas. Raises UserError."""
    if not spec:
        return {}
    measured = _measured(benchmark)
    kinds = {"integer", "number", "boolean"}
    numbers = [name for name, of in benchmark.parameters.items() if kinds & set(of.types)]
    aliases = by_alias(dict.fromkeys((*numbers, benchmark.scale, *measured, *FACTS)))
    taken = {*measured, *benchmark.parameters, benchmark.scale, *RESERVED, *OF_RUNS, *OF_TABLES}
    derived: dict[str, DerivedMetric] = {}
    for name, entry in spec.items():
        here = f"{where}.{name}"
        if name in taken:
            raise UserError(f"{here}: benchmark or tables have this name already; choose another")
        check_parameter(name, here)
        text = " ".join(entry.formula[""].split())
        formula = Formula(text, f"{here}.formula", aliases, "metric or parameter of the runs")
        if fault := mixed_conventions([name, *formula.reads.values()]):
            raise UserError(f"{here}: {fault}")
        said = f"{entry.doc}: {text}" if entry.doc else text
        derived[name] = DerivedMetric(
            text, entry.unit, entry.better, entry.scope, formula.reads, said
        )
    check_metrics({*measured, *derived}, where)
    return derived


def _measured(benchmark: Benchmark) -> list[str]:
    """The metrics that runs of a benchmark may have: its own, of energy, and of epochs."""
    extracted = benchmark.extract.metrics if benchmark.extract else ()
    own = [*benchmark.metrics, *(metric.metric for metric in extracted)]
    return [*own, *ENERGY, *EPOCH_METRICS, *(name + FIRST for name in EPOCH_METRICS)]
