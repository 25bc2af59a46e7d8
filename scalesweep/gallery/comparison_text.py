"""Published beside recomputed, as lines and as a CSV file."""

import io
from collections.abc import Iterator, Sequence
from itertools import groupby

from scalesweep.core.csv_cells import CsvWriter
from scalesweep.gallery.recompute import AGREES, DIFFERS, KNOWN, MISSING, Comparison

VERDICTS = (AGREES, KNOWN, DIFFERS, MISSING)
FILE = "published.csv"
# Of a check with more numbers than these only those that do not agree have a line of their own.
EACH = 30
COLUMNS = (
    "check", "number", "unit", "published", "recomputed", "difference", "verdict", "reason",
    "where",
)  # fmt: skip


def lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """A line for each check, and for its numbers; the last says how many agree."""
    for check, group in groupby(comparisons, key=lambda comparison: comparison.check):
        numbers = list(group)
        yield f"{check.name} ({check.where}): {counts(numbers)}{largest(numbers)}"
        for comparison in numbers:
            if len(numbers) <= EACH or comparison.verdict != AGREES:
                yield f"  {line(comparison)}"
    yield f"published numbers: {counts(comparisons)}"


def line(comparison: Comparison) -> str:
    """A published number beside the recomputed one."""
    number, unit = comparison.published, comparison.check.unit
    unit = f" {unit}" if unit not in ("", "1") else ""
    said = f"{comparison.verdict:8}{number.label or comparison.check.name}: {number.printed}"
    if unit and not number.printed.endswith(unit.strip()):
        said += unit
    if comparison.recomputed is not None:
        said += f", recomputed {digits_of(comparison)}{unit}"
        if comparison.verdict != AGREES and comparison.difference is not None:
            said += f" ({100 * comparison.difference:+.3g} %)"
    return f"{said}: {comparison.reason}" if comparison.reason else said


def digits_of(comparison: Comparison) -> str:
    """The recomputed number with one digit more than is printed, six at least; a dash for none."""
    if comparison.recomputed is None:
        return "–"
    printed = sum(map(str.isdigit, comparison.published.printed.lstrip("-0.")))
    return f"{comparison.recomputed:.{max(printed + 1, 6)}g}"


def counts(comparisons: Sequence[Comparison]) -> str:
    """How many got each verdict, such as ``14 of 16 agree, 2 known to differ``."""
    verdicts = [comparison.verdict for comparison in comparisons]
    text = f"{verdicts.count(AGREES)} of {len(verdicts)} agree"
    for verdict, words in ((KNOWN, "known to differ"), (DIFFERS, "differ"), (MISSING, "missing")):
        if count := verdicts.count(verdict):
            text += f", {count} {words}"
    return text


def largest(comparisons: Sequence[Comparison]) -> str:
    """The largest difference of those that agree, if their digits allow 1 % at most."""
    agreeing = [
        (abs(comparison.difference), comparison.published)
        for comparison in comparisons
        if comparison.verdict == AGREES and comparison.difference is not None
    ]
    differences = [difference for difference, _ in agreeing]
    if any(number.half_digit > 0.01 * abs(number.value) for _, number in agreeing):
        return ""
    return f"; largest difference of these {100 * max(differences):.2g} %" if differences else ""


def as_csv(comparisons: Sequence[Comparison]) -> str:
    """All numbers, a row each."""
    out = io.StringIO()
    writer = CsvWriter(out)
    writer.writerow(COLUMNS)
    for comparison in comparisons:
        check, number = comparison.check, comparison.published
        made, difference = comparison.recomputed, comparison.difference
        writer.writerow([
            check.name, number.label, check.unit, number.printed,
            "" if made is None else repr(made), "" if difference is None else repr(difference),
            comparison.verdict, comparison.reason, check.where,
        ])  # fmt: skip
    return out.getvalue()
