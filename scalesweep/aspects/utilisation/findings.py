"""Findings on utilisation: shares that cannot be, printed ones that do not follow, and the best."""

from bisect import insort
from collections.abc import Mapping, Sequence

from scalesweep.analysis.flop_conventions import CONVENTIONS, COUNTED
from scalesweep.aspects.utilisation.table import Utilisation
from scalesweep.core.formatting import counted, number, percent
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    ATTENTION,
    NOTE,
    Finding,
    Rule,
    declared_evidence,
    marked,
    point_key,
)

# Which of the conventions a sentence is about where the source prints none: by how much the shape
# has to state, the least first.
_FIRST = ("palm", "megatron", "counted", "parameters_only")


def impossible_utilisation(results: ExperimentResults) -> list[Finding]:
    """The points that would use more than all of a peak, with the likely cause of the first."""
    above = [row for row in chosen(results) if row.fault and row.mfu is None and row.peak]
    if not above:
        return []
    first = above[0]
    more = f"; {counted(len(above) - 1, 'other point')} likewise" if len(above) > 1 else ""
    text = (
        f"{results.describe(first.row)}: by {first.convention}'s count of FLOP {first.fault}; it "
        f"is left out{more}"
    )
    return [_made(results, "impossible_utilisation", ATTENTION, first, text, ("peak",))]


def printed_utilisation(results: ExperimentResults) -> list[Finding]:
    """How many printed MFU their own rows do not give, with the first."""
    printed = [row for row in results.of(Utilisation) if row.printed_mfu and row.mfu]
    wrong = [row for row in printed if row.fault]
    if not wrong:
        return []
    first = wrong[0]
    text = (
        f"{len(wrong)} of {len(printed)} printed MFU do not follow from tokens/s, model and peak "
        "of their own rows, by more than 1 % and half of the last digit; "
        f"{results.describe(first.row)}: {first.fault}"
    )
    numbers = ("printed_mfu", "mfu")
    return [_made(results, "printed_utilisation", NOTE, first, text, numbers)]


def best_utilisation(results: ExperimentResults) -> list[Finding]:
    """The point of the highest MFU, with what other conventions make of it."""
    rows = [row for row in chosen(results) if row.mfu]
    if not rows:
        return []
    best = max(rows, key=lambda row: row.mfu.value if row.mfu else 0.0)
    mfu = best.mfu
    assert mfu is not None
    formula = CONVENTIONS[best.convention].formula
    text = (
        f"the highest MFU is {percent(mfu.value, mfu.low, mfu.high)} of the data sheet's "
        f"{best.dtype} peak ({number((best.peak or 0) * 1e-12)} TFLOP/s a rank), with "
        f"{best.convention}'s FLOP of a token ({formula})"
    )
    if results.axes:
        text = f"{results.describe(best.row)}: {text}"
    others = shares_of_points(results)[point_key(results, best.row)]
    if others[0] != others[-1]:
        text += f"; by other conventions it is {percent(others[0])} to {percent(others[-1])}"
    text += _of_ceiling(results, best)
    if best.joule_tokens:
        text += f"; {number(best.joule_tokens.value)} tokens for a joule"
    return [_made(results, "utilisation", NOTE, best, text, ("mfu", "mfu_low", "mfu_high", "peak"))]


def _of_ceiling(results: ExperimentResults, best: Utilisation) -> str:
    """What share of the measured ceiling a point reaches: by what the framework counted, where that
    is known, as conventions may count what nothing computes (embeddings); empty without a ceiling.
    """
    key = point_key(results, best.row)
    counts = (row for row in results.of(Utilisation) if row.convention == COUNTED)
    own = next((row for row in counts if point_key(results, row.row) == key), best)
    reach = own.of_ceiling
    if reach is None:
        return ""
    share = percent(reach.value, reach.low, reach.high)
    if own.convention == COUNTED:
        return f"; as the framework counts FLOP it is {share} of the measured ceiling"
    above = ": the convention counts more than is computed" if reach.value > 1 else ""
    return f"; of the measured ceiling it is {share}{above}"


def chosen(results: ExperimentResults) -> list[Utilisation]:
    """A row per point: by the convention that the source prints, else the first of ``_FIRST``, the
    same for all points of an experiment."""
    rows = results.of(Utilisation)
    there = [row.convention for row in rows]
    printed = [row.convention for row in rows if row.printed_mfu and row.mfu]
    worked_out = {row.convention for row in rows if row.token_flop}
    usual = [name for name in (*_FIRST, *there) if name in worked_out]
    convention = next(iter((*printed, *usual)), None)
    return [row for row in rows if row.convention == convention]


def shares_of_points(results: ExperimentResults) -> Mapping[Key, Sequence[float]]:
    """MFU of each point by all conventions, sorted; by ``point_key``."""
    shares: dict[Key, list[float]] = {}
    for row in results.of(Utilisation):
        if row.mfu:
            insort(shares.setdefault(point_key(results, row.row), []), row.mfu.value)
    return shares


def _made(
    results: ExperimentResults,
    rule: str,
    level: str,
    row: Utilisation,
    text: str,
    columns: Sequence[str],
) -> Finding:
    evidence = declared_evidence(results, row, columns)
    evidence["key"]["convention"] = row.convention
    return Finding(results.name, rule, level, marked(row.source, f"{text}."), evidence)


RULES = (
    Rule("impossible_utilisation", impossible_utilisation),
    Rule("printed_utilisation", printed_utilisation),
    Rule("utilisation", best_utilisation),
)
