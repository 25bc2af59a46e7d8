"""What the report says of layouts: the best of each scale, what others lose, what failed."""

from collections.abc import Sequence

from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.layouts.words import (
    ahead_text,
    best_layouts,
    failed_text,
    loss_text,
    value_text,
)
from scalesweep.core.formatting import counted, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    SILENT,
    Finding,
    Number,
    Rule,
    claim_of,
    declared_evidence,
    marked,
    number_of,
)
from scalesweep.table.declared import numbers_of

# The names of the rules: of the best layouts, and of what all layouts of a setting have in common.
BEST, CARRIED, SPREAD, FAILED = "best layout", "carried layout", "layouts", "failed layouts"
OF_LAYOUTS = (CARRIED, SPREAD, FAILED)
# Scales whose best layout is a sentence: the largest of each setting first.
MAX_SENTENCES = 30


def best_layout(results: ExperimentResults) -> list[Finding]:
    """The best layout of each scale, the largest first; claimed where it is clear of all others."""
    findings: list[Finding] = []
    for rows in best_layouts(results).values():
        for row in reversed(rows):
            if row.layout is not None:
                findings.append(_best(results, row, len(findings) >= MAX_SENTENCES))
    return findings


def _best(results: ExperimentResults, row: BestLayout, silent: bool) -> Finding:
    value = value_text(results, row.value)
    head = f"best layout{_of(row)} at {results.scaled(row.scale)}: {row.layout} with {value}"
    if failures := failed_text(row):
        head += f" ({failures})"
    rivals = f"the {row.ran - 1:,} others" if row.ran > 2 else "the only other"
    level, reason = OPEN, ""
    if row.next_layout is None:
        text = f"{head}; no other of {counted(row.tried, 'layout')} ran"
        level = NOTE
    elif row.p is None:
        lead = f"{ahead_text(row)} ahead of" if row.ahead != 1 else "level with"
        reason = "one run each" if row.alone else "not every layout has two runs that differ"
        text = f"{head}, {lead} the next ({row.next_layout})"
    else:
        known = f"; {ahead_text(row)} ahead of the next ({row.next_layout})"
        if row.ahead_apart is not None and row.ahead is not None:
            all_ = percent(row.ahead - 1)
            known += f" in repeats that did not choose them ({all_} in those that did)"
        clear = row.p <= SIGNIFICANT
        level = CLEAR if clear else OPEN
        # How imported repeats were run is not known: those of one job differ less than jobs do.
        jobs = " if each repeat was a job of its own" if row.source == "imported" else ""
        said = f", clear of {rivals}{jobs}" if clear else f"; not clear of all {rivals}"
        text = f"{head}{said}{known}"
    evidence = declared_evidence(results, row, ("value", "value_low", "value_high", "ahead"))
    evidence |= {"setting": row.setting, "scale": row.scale}
    unit = results.unit_of("points", f"{row.metric}_mean_{row.phase}")
    numbers = [number_of(f"value at {row.scale}", *_split(numbers_of(row.value), unit))]
    if row.ahead is not None:
        ratio = row.ahead_apart
        value_, low, high = (row.ahead, None, None) if ratio is None else numbers_of(ratio)
        numbers.append(Number("ahead of the next", value_, "1", low, high))
    claims = (claim_of(row.p, BEST, row.source, row.setting, row.scale),) if row.next_layout else ()
    return Finding(
        results.name, BEST, SILENT if silent else level, marked(row.source, f"{text}."), evidence,
        tuple(numbers), claims,
        marked(row.source, head), reason=reason,
    )  # fmt: skip


def _split(
    values: tuple[float | None, float | None, float | None], unit: str
) -> tuple[float | None, str, float | None, float | None]:
    value, low, high = values
    return value, unit, low, high


def _of(row: BestLayout) -> str:
    return f" of {row.setting}" if row.setting else ""


def carried_layouts(results: ExperimentResults) -> list[Finding]:
    """What the best layout of the next smaller scale loses, by what is computed."""
    findings = []
    for rows in best_layouts(results).values():
        known = [row for row in rows if row.carried_from is not None]
        parts = [_carried(results, row) for row in reversed(known)]
        if parts:
            alone = "" if any(row.carried_loss_apart for row in known) else " (single runs)"
            text = (
                f"the best layout of the next smaller scale{_of(known[-1])}, with more "
                f"data-parallel ranks{alone}: {'; '.join(parts)}."
            )
            numbers = [_loss_number(row) for row in known if row.carried_loss is not None]
            findings.append(_note(results, CARRIED, known[-1], text, numbers))
    return findings


def _carried(results: ExperimentResults, row: BestLayout) -> str:
    """``at 512 gpus, with mbs 8 -> 2, it loses 75 %``."""
    where = f"at {results.scaled(row.scale)}"
    if row.carried_loss is None:
        return f"{where} it has no result ({row.carried_fails})" if row.carried_fails else where
    does = "it is the best" if row.carried_loss == 0 else f"it loses {loss_text(row)}"
    changed = f", with {row.carried_changes}," if row.carried_changes else ""
    failed = row.carried_fails in ("", "not planned")
    return f"{where}{changed} {does}" + ("" if failed else f" (unchanged: {row.carried_fails})")


def _loss_number(row: BestLayout) -> Number:
    value, low, high = numbers_of(row.carried_loss_apart)
    return Number(
        f"loss at {row.scale}", row.carried_loss if value is None else value, "1", low, high
    )


def spread_of_layouts(results: ExperimentResults) -> list[Finding]:
    """How far the median of the layouts that ran is from the best, by what is computed."""
    findings = []
    for rows in best_layouts(results).values():
        known = [row for row in rows if row.ran > 2]
        if not known:
            continue
        parts = [
            f"{percent(row.median)} at {results.scaled(row.scale)} ({row.ran:,})" for row in known
        ]
        text = (
            f"of the best the median of the layouts{_of(known[-1])} that ran reaches "
            f"{', '.join(parts)}."
        )
        numbers = [Number(f"median share at {row.scale}", row.median, "1") for row in known]
        findings.append(_note(results, SPREAD, known[-1], text, numbers))
    return findings


def failed_layouts(results: ExperimentResults) -> list[Finding]:
    """How many layouts failed at each scale and why, and what memory others had."""
    findings = []
    for rows in best_layouts(results).values():
        known = [row for row in rows if row.failed]
        if not known:
            continue
        parts = [
            f"{row.failed:,} of {row.tried:,} at {results.scaled(row.scale)} ({row.causes})"
            for row in known
        ]
        most = [row for row in rows if row.memory_most is not None]
        more = ""
        if most:
            row = max(most, key=lambda row: row.memory_most or 0.0)
            measure = results.measures.get(str(row.memory_metric))
            factor, unit = (measure.factor, measure.unit) if measure else (1.0, "")
            peak = f"{number((row.memory_most or 0.0) * factor)} {unit}".strip()
            more = f"; the most memory of one that ran is {peak}, at {results.scaled(row.scale)}"
        text = f"layouts{_of(known[0])} that failed: {', '.join(parts)}{more}."
        numbers = [Number(f"failed at {row.scale}", row.failed, "1") for row in known]
        findings.append(_note(results, FAILED, known[0], text, numbers))
    return findings


def _note(
    results: ExperimentResults,
    rule: str,
    row: BestLayout,
    text: str,
    numbers: Sequence[Number],
) -> Finding:
    evidence = declared_evidence(results, row, ("ran", "tried", "failed"))
    return Finding(results.name, rule, NOTE, marked(row.source, text), evidence, tuple(numbers))


RULES = (
    Rule(BEST, best_layout, figures=("layouts-",)),
    Rule(CARRIED, carried_layouts, figures=("layouts-",)),
    Rule(SPREAD, spread_of_layouts, figures=("layouts-",)),
    Rule(FAILED, failed_layouts),
)
