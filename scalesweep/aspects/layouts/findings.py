"""What the report says of layouts: the best of each scale, what others lose, what failed."""

from collections.abc import Sequence

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.layouts.words import best_layouts
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    HOLES,
    NOTE,
    OPEN,
    SILENT,
    Claim,
    Finding,
    Number,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate, numbers_of

# The names of the rules: of the best layouts, and of what all layouts of a setting have in common.
BEST, ONLY, CARRIED = "best layout", "only layout", "carried layout"
SPREAD, FAILED = "layouts", "failed layouts"
# Scales whose best layout is a sentence: the largest of each setting first.
MAX_SENTENCES = 30


def best_layout(results: ExperimentResults) -> list[Finding]:
    """The best layout of each scale, the largest first; claimed where it is clear of all others."""
    rows = [row for of in best_layouts(results).values() for row in reversed(of) if row.layout]
    return [_best(results, row, place >= MAX_SENTENCES) for place, row in enumerate(rows)]


def _best(results: ExperimentResults, row: BestLayout, silent: bool) -> Finding:
    main = results.main
    mean, *bounds = numbers_of(row.value, main.factor if main else 1.0)
    numbers = [number_of("value", mean, main.unit if main else "", *bounds)]
    claims: tuple[Claim, ...] = ()
    state, reason = NOTE, ""
    if row.ahead is not None:
        numbers.append(estimate_of("ahead", row.ahead.less(1), "1"))
        claims = (claim_of(row.p, BEST, row.source, row.setting, row.scale),)
        state = CLEAR if row.p is not None and row.p <= SIGNIFICANT else OPEN
        if row.p is None:
            reason = "one run each" if row.alone else "not every layout has two runs that differ"
    return _finding(
        results, ONLY if row.next_layout is None else BEST, SILENT if silent else state, row,
        numbers, claims, reason,
    )  # fmt: skip


def of_all_layouts(results: ExperimentResults) -> list[Finding]:
    """Of each thing that is computed, at the largest scale of which it is known: what the best
    layout of the next smaller scale loses, and how far the median is from the best. And how many
    failed at all scales."""
    findings = []
    for rows in best_layouts(results).values():
        if carried := [row for row in rows if row.carried_loss is not None]:
            row = carried[-1]
            loss = row.carried_loss or Estimate(0.0)
            findings.append(_finding(results, CARRIED, NOTE, row, [estimate_of("loss", loss, "1")]))
        if several := [row for row in rows if row.ran > 2]:
            row = several[-1]
            numbers = [number_of("median", row.median, "1"), number_of("ran", row.ran, "1")]
            findings.append(_finding(results, SPREAD, NOTE, row, numbers))
        if sum(row.failed for row in rows):
            counts = {"failed": sum(r.failed for r in rows), "tried": sum(r.tried for r in rows)}
            numbers = [number_of(name, count, "1") for name, count in counts.items()]
            worst = max(rows, key=lambda row: row.failed)
            findings.append(_finding(results, FAILED, NOTE, worst, numbers))
    return findings


def _finding(
    results: ExperimentResults,
    rule: str,
    state: str,
    row: BestLayout,
    numbers: Sequence[Number],
    claims: tuple[Claim, ...] = (),
    reason: str = "",
) -> Finding:
    before = row.carried_from
    return Finding(
        results.name, rule, state, subject=row.layout or "",
        words={
            "of": f" of {row.setting}" if row.setting else "",
            "at": results.scaled(row.scale),
            "before": "" if before is None else results.scaled(before),
            "rival": row.next_layout or "",
            "causes": row.causes,
        },
        numbers=tuple(numbers), claims=claims, reason=reason,
        flags=(HOLES,) if rule in (BEST, ONLY) and row.runs_failed else (),
        evidence=declared_evidence(results, row) | {"setting": row.setting, "scale": row.scale},
    )  # fmt: skip


RULES = (
    Rule(
        BEST, best_layout,
        says={CLEAR: "Best layout{of} at {at}: {subject} with {value}, {ahead:%} ahead of the "
              "next."},
        next={OPEN: "repeat at {at}: {subject}; {rival}"},
    ),
    Rule(
        ONLY, None,
        says={NOTE: "The only layout{of} that ran at {at}: {subject} with {value}."},
    ),
    Rule(
        CARRIED, of_all_layouts,
        says={NOTE: "At {at}, the best layout{of} of {before} loses {loss:%} to the "
              "best."},
    ),
    Rule(
        SPREAD, None,
        says={NOTE: "At {at}, the median of {ran} layouts{of} reaches {median:%} of the best."},
    ),
    Rule(
        FAILED, None,
        says={NOTE: "{failed} of {tried} layouts{of} failed; at {at}: {causes}."},
    ),
)  # fmt: skip
