"""What the tables say, as sentences, each with the numbers it rests on.

A rule says nothing rather than something its data cannot carry: "best", "falls under" and
"faster" are claimed only where a test says so, and are clear only where they stand among all claims
of the experiment (``family``); one repeat confirms nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from scalesweep.aspects.order import ORDER
from scalesweep.aspects.registry import parts
from scalesweep.aspects.scaling.efficiencies import resting_on_totals
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding, Rule
from scalesweep.findings.drift import drift
from scalesweep.findings.family import judged
from scalesweep.findings.general import (
    coverage,
    other_main_metric,
    outlier_runs,
    oversubscribed,
    waiting,
    warnings,
)
from scalesweep.findings.load import other_load
from scalesweep.findings.precision import until_precise
from scalesweep.findings.table import numbers_stated

_Rule = Callable[[ExperimentResults], list[Finding]]
# Those that lie in no folder of an aspect.
_OTHERS: Sequence[_Rule] = (
    waiting,
    drift,
    oversubscribed,
    other_main_metric,
    until_precise,
    other_load,
    outlier_runs,
    warnings,
    coverage,
)


def find(results: ExperimentResults) -> list[Finding]:
    """All findings of one experiment, those on its main metric first."""
    rules = _rules()
    said = judged([finding for name in ORDER for finding in rules[name](results)])
    findings = resting_on_totals(results, said)
    return [replace(finding, numbers=numbers_stated(results, finding)) for finding in findings]


@cache
def _rules() -> Mapping[str, _Rule]:
    """What states findings, by the name of the function. Each has its place in ``ORDER``."""
    functions = {rule.__name__: rule for rule in (*_OTHERS, *(rule.find for rule in _of_aspects()))}
    if unplaced := functions.keys() ^ set(ORDER):
        raise RuntimeError(f"aspects/order.py and the rules differ in: {', '.join(unplaced)}")
    return functions


def figure_beginnings() -> Mapping[str, Sequence[str]]:
    """How the names of figures begin that show what the rules of aspects speak of."""
    return {name: begin for rule in _of_aspects() for name, begin in rule.figures.items()}


def _of_aspects() -> Iterator[Rule]:
    return (rule for module in parts("findings") for rule in module.RULES)
