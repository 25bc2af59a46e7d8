"""Findings on memory: how near the model comes, and what ran out of it."""

from collections import Counter

from scalesweep.analysis.memory_fit import FITS, TOO_LARGE
from scalesweep.aspects.memory.table import (
    FAILED,
    GIB,
    OUT_OF_MEMORY,
    RAN,
    RIGHT,
    WRONG,
    MemoryFitRow,
    MemoryRow,
)
from scalesweep.core.formatting import counted, listed, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence, marked, number_of

LEAST = 3  # points with a measured peak
RULE = "memory"


def memory_prediction(results: ExperimentResults) -> list[Finding]:
    """How near predicted peaks come, and how often fits or does not is called right: notes, they
    estimate and claim nothing."""
    rows = results.of(MemoryRow)
    fits = results.of(MemoryFitRow)
    if not rows or not fits:
        return []
    return [*_nearness(results, rows, fits[0]), *_failures(results, rows), *_others(results, rows)]


def _nearness(
    results: ExperimentResults, rows: list[MemoryRow], fit: MemoryFitRow
) -> list[Finding]:
    measured = [row for row in rows if row.ratio is not None]
    if len(measured) < LEAST or fit.error is None or fit.within is None:
        return []
    text = (
        f"the memory model predicts peaks of {counted(len(measured), 'point')} that its fit has "
        f"not seen to {percent(fit.error)} (median; 90 % of them to {percent(fit.within)})"
    )
    if judged := fit.right + fit.wrong:
        text += f"; whether a point fits it calls right at {fit.right:,} of {judged:,}"
        text += f", and leaves {fit.uncertain:,} open" if fit.uncertain else ""
    evidence = {
        "experiment": results.name,
        "table": MemoryFitRow.TABLE,
        "key": {},
        "numbers": {"error": fit.error, "within": fit.within, "right": fit.right},
    }
    numbers = (
        number_of("error", fit.error, "1"),
        number_of("within", fit.within, "1"),
        number_of("right", fit.right, "1"),
        number_of("wrong", fit.wrong, "1"),
    )
    source = measured[0].source
    return [Finding(results.name, RULE, NOTE, marked(source, f"{text}."), evidence, numbers)]


def _source(rows: list[MemoryRow]) -> str | None:
    """Where the points come from; what only failed does not say."""
    return next((row.source for row in rows if row.source), "measured")


def _failures(results: ExperimentResults, rows: list[MemoryRow]) -> list[Finding]:
    """What ran out of memory, and what the model says of it."""
    failed = [row for row in rows if row.outcome == OUT_OF_MEMORY]
    if not failed:
        return []
    ran = [row for row in rows if row.outcome == RAN]
    text = f"{counted(len(failed), 'point')} of {len(failed) + len(ran):,} ran out of memory"
    known = [row for row in failed if row.device is not None]
    if known:
        low, high = min(row.needed for row in known), max(row.needed for row in known)
        device = known[0].device or 0
        span = number(low / GIB) if low == high else f"{number(low / GIB)} to {number(high / GIB)}"
        right, wrong = (sum(row.called == word for row in known) for word in (RIGHT, WRONG))
        text += f"; by the memory model these need {span} of {number(device / GIB)} GiB: "
        text += f"{right:,} called {TOO_LARGE!r}, {wrong:,} {FITS!r}"
        text += f", {left:,} left open" if (left := len(known) - right - wrong) else ""
    worst = max(failed, key=lambda row: row.needed)
    evidence = declared_evidence(results, worst, ("needed", "device"))
    return [Finding(results.name, RULE, NOTE, marked(_source(rows), f"{text}."), evidence)]


def _others(results: ExperimentResults, rows: list[MemoryRow]) -> list[Finding]:
    """What failed for a reason that is another one, or that nobody states."""
    failed = [row for row in rows if row.outcome == FAILED and row.verdict]
    if not failed:
        return []
    large, fitting = (sum(row.verdict == word for row in failed) for word in (TOO_LARGE, FITS))
    stopped = Counter(row.obstacle for row in failed if row.verdict == FITS and row.obstacle)
    text = (
        f"{counted(len(failed), 'point')} failed for other reasons than memory, or for none "
        f"that is stated; by the memory model {large:,} of them {TOO_LARGE} and {fitting:,} would "
        "fit, so that these failed for something else"
    )
    known = [f"of {n:,} {why}" for why, n in stopped.most_common()]
    text += f" ({listed(known, len(known))})" if known else ""
    worst = max(failed, key=lambda row: row.needed)
    evidence = declared_evidence(results, worst, ("needed", "device"))
    return [Finding(results.name, RULE, NOTE, marked(_source(rows), f"{text}."), evidence)]


RULES = (Rule(RULE, memory_prediction, figures=("memory",)),)
