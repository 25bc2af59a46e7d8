"""``metrics`` of an experiment: what is worked out from the metrics of each of its runs.

They are part of no run id: what is measured is the same with and without them.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.flop_conventions import mixed_conventions
from scalesweep.analysis.metrics import ENERGY, EPOCH_METRICS, contradiction
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.experiment_keys import MetricKeys
from scalesweep.config.formula import Formula, by_alias
from scalesweep.config.log_patterns import RESERVED
from scalesweep.config.parameter import OF_RUNS, OF_TABLES, check_metrics, check_parameter
from scalesweep.core.errors import UserError

# What the summary says of every run, as numbers.
FACTS = ("wall_s", "hosts", "samples", "bytes")
# Behind the name of a metric of epochs: of the first one. Without it: of those after the first.
FIRST = "_init"
_LESS_IS_BETTER = frozenset(("s", "ms", "us", "ns", "min", "h", "J", "kJ", "Wh", "kWh", "J s"))


def derived_metrics(
    benchmark: Benchmark, spec: Mapping[Any, MetricKeys], where: str
) -> dict[str, MetricKeys]:
    """The metrics that an experiment states by formulas; ``where``: campaign file and key.

    Raises UserError naming the key and what is allowed.
    """
    if not spec:
        return {}
    measured = _measured(benchmark)
    kinds = {"integer", "number", "boolean"}
    numbers = [name for name, of in benchmark.parameters.items() if kinds & set(of.types)]
    aliases = by_alias(dict.fromkeys((*numbers, benchmark.scale, *measured, *FACTS)))
    derived: dict[str, MetricKeys] = {}
    for name, entry in spec.items():
        here = f"{where}.{name}"
        if name in measured or name in benchmark.parameters or name == benchmark.scale:
            raise UserError(f"{here}: benchmark {benchmark.name} has it already; rename it")
        if name in RESERVED or name in OF_RUNS or name in OF_TABLES:
            raise UserError(f"{here}: the name is reserved by scalesweep; choose another")
        check_parameter(name, here)
        text = " ".join(str(entry.formula).split())
        formula = Formula(text, f"{here}.formula", aliases, "metric or parameter of the runs")
        if fault := mixed_conventions([name, *formula.reads.values()]):
            raise UserError(f"{here}: {fault}")
        better = entry.better or _direction(entry.unit, here)
        if entry.kind and (fault := contradiction(entry.kind, entry.unit, better)):
            raise UserError(f"{here}.kind: {fault}")
        derived[name] = entry.settled(text, formula.reads, better)
    check_metrics({*measured, *derived}, where)
    return derived


def _measured(benchmark: Benchmark) -> list[str]:
    """The metrics that runs of a benchmark may have: its own, of energy, and of epochs."""
    extracted = benchmark.extract.metrics if benchmark.extract else ()
    own = [*benchmark.metrics, *(metric.metric for metric in extracted)]
    return [*own, *ENERGY, *EPOCH_METRICS, *(name + FIRST for name in EPOCH_METRICS)]


def _direction(unit: str, where: str) -> str:
    """Which direction is better, where the unit says it: of times, of energy, and of rates."""
    if unit in _LESS_IS_BETTER:
        return "lower"
    if unit.endswith(("/s", "/J", "/Wh", "/kWh", "/h")):
        return "higher"
    raise UserError(f"{where}: the unit {unit} does not say it: add better: higher or lower")
