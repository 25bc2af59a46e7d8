"""What the report says of layouts: the best of each scale, and what failed."""

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.aspects.layouts.table import BestLayout, best_layouts
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    HOLES,
    NOTE,
    OPEN,
    SILENT,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import numbers_of

BEST, FAILED = "best layout", "failed layouts"
# Scales whose best layout is a sentence: the largest of each setting first.
MAX_SENTENCES = 30


def best_layout(results: ExperimentResults) -> list[Finding]:
    """The best of several layouts at each scale, the largest first; claimed where it is clear of
    all others."""
    rows = [row for of in best_layouts(results).values() for row in reversed(of) if row.ahead]
    return [_best(results, row, place >= MAX_SENTENCES) for place, row in enumerate(rows)]


def _best(results: ExperimentResults, row: BestLayout, silent: bool) -> Finding:
    main, ahead = results.main, row.ahead
    assert ahead is not None
    mean, *bounds = numbers_of(row.value, main.factor if main else 1.0)
    state = CLEAR if row.p is not None and row.p <= SIGNIFICANT else OPEN
    return Finding(
        results.name, BEST, SILENT if silent else state, subject=row.layout or "",
        words=_words(results, row) | {"rival": row.next_layout or ""},
        numbers=(
            number_of("value", mean, main.unit if main else "", *bounds),
            estimate_of("ahead", ahead.less(1), "1"),
        ),
        claims=(claim_of(row.p, BEST, row.source, row.setting, row.scale),),
        reason="not every layout has two runs that differ" if row.p is None else "",
        flags=(HOLES,) if row.runs_failed else (), evidence=_evidence(results, row),
    )  # fmt: skip


def failed_layouts(results: ExperimentResults) -> list[Finding]:
    """Of each thing that is computed how many layouts failed at all scales."""
    findings = []
    for rows in best_layouts(results).values():
        failed, worst = sum(row.failed for row in rows), max(rows, key=lambda row: row.failed)
        numbers = (
            number_of("failed", failed, "1"),
            number_of("tried", sum(row.tried for row in rows), "1"),
        )
        if failed:
            findings.append(
                Finding(
                    results.name, FAILED, NOTE, words=_words(results, worst), numbers=numbers,
                    evidence=_evidence(results, worst),
                )
            )  # fmt: skip
    return findings


def _words(results: ExperimentResults, row: BestLayout) -> dict[str, str]:
    of = f" of {row.setting}" if row.setting else ""
    return {"of": of, "at": results.scaled(row.scale), "causes": row.causes}


def _evidence(results: ExperimentResults, row: BestLayout) -> dict[str, object]:
    return declared_evidence(results, row) | {"setting": row.setting, "scale": row.scale}


RULES = (
    Rule(
        BEST, best_layout,
        says={CLEAR: "Best layout{of} at {at}: {subject} with {value}, {ahead:%} ahead of the "
              "next."},
        next={OPEN: "repeat at {at}: {subject}; {rival}"},
    ),
    Rule(
        FAILED, failed_layouts,
        says={NOTE: "{failed} of {tried} layouts{of} failed; at {at}: {causes}."},
    ),
)  # fmt: skip
