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
from scalesweep.aspects.scaling.findings import RULE as VERDICT
from scalesweep.aspects.scaling.findings import other_phases, scaling_verdict
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding, Rule
from scalesweep.findings.drift import drift
from scalesweep.findings.family import cut_of, judged
from scalesweep.findings.general import (
    cache_effect,
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
    cache_effect,
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
    said = {name: rules[name](results) for name in ORDER}
    # These name points by what is clear, for which all claims have to be known.
    cut = cut_of([finding for findings in said.values() for finding in findings], VERDICT)
    said[scaling_verdict.__name__] = scaling_verdict(results, cut)
    said[other_phases.__name__] = other_phases(results, cut)
    findings = _distinct(judged([finding for by_rule in said.values() for finding in by_rule]))
    findings = resting_on_totals(results, findings)
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


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those that answer nothing that an earlier one does not: one fact, one
    sentence."""
    answered: set[str] = set()
    kept = []
    for series in findings:
        if not series.facts or series.facts - answered:
            kept.append(series)
            answered |= series.facts
    return kept
