"""Findings on utilisation: shares that cannot be, printed ones that do not follow, and the best."""

from bisect import insort
from collections.abc import Mapping, Sequence

from scalesweep.analysis.flop_conventions import CONVENTIONS
from scalesweep.aspects.utilisation.table import Utilisation
from scalesweep.core.formatting import percent
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    ATTENTION,
    NOTE,
    Finding,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)

# Which of the conventions a sentence is about where the source prints none: by how much the shape
# has to state, the least first.
_FIRST = ("palm", "megatron", "counted", "parameters_only")
IMPOSSIBLE, PRINTED, BEST = "impossible_utilisation", "printed_utilisation", "utilisation"


def utilisation(results: ExperimentResults) -> list[Finding]:
    """The first of the points that would use more than all of a peak, the first printed MFU that
    its own row does not give, and the point of the highest MFU."""
    rows, findings = chosen(results), []
    above = [row for row in rows if row.fault and row.mfu is None and row.peak]
    if above:
        findings.append(_finding(results, IMPOSSIBLE, ATTENTION, above[0], {"above": len(above)}))
    printed = [row for row in results.of(Utilisation) if row.printed_mfu and row.mfu]
    if wrong := [row for row in printed if row.fault]:
        counts = {"wrong": len(wrong), "printed": len(printed)}
        findings.append(_finding(results, PRINTED, NOTE, wrong[0], counts))
    known = [(row.mfu.value, row) for row in rows if row.mfu]
    if known:
        best = max(known, key=lambda each: each[0])[1]
        findings.append(_finding(results, BEST, NOTE, best, {}))
    return findings


def _finding(
    results: ExperimentResults,
    rule: str,
    state: str,
    row: Utilisation,
    counts: Mapping[str, int],
) -> Finding:
    shares = shares_of_points(results).get(results.point_key(row.row), [0.0])
    evidence = declared_evidence(results, row)
    evidence["key"]["convention"] = row.convention
    mfu = () if row.mfu is None else (estimate_of("mfu", row.mfu, "1"),)
    other = f"; by others {percent(shares[0])} to {percent(shares[-1])}"
    return Finding(
        results.name, rule, state, subject=results.describe(row.row) if results.axes else "",
        words={
            "fault": row.fault or "", "dtype": row.dtype or "", "convention": row.convention,
            "others": other if shares[0] != shares[-1] else "",
        },
        numbers=(
            *mfu, *(number_of(name, count, "1") for name, count in counts.items()),
            number_of("peak", row.peak, "FLOP/s"),
        ),
        evidence=evidence,
    )  # fmt: skip


def chosen(results: ExperimentResults) -> list[Utilisation]:
    """A row per point: by the convention that the source prints, else the first of ``_FIRST``, the
    same for all points of an experiment."""
    rows = results.of(Utilisation)
    printed = [row.convention for row in rows if row.printed_mfu and row.mfu]
    worked_out = {row.convention for row in rows if row.token_flop}
    usual = [name for name in (*_FIRST, *CONVENTIONS) if name in worked_out]
    convention = next(iter((*printed, *usual)), None)
    return [row for row in rows if row.convention == convention]


def shares_of_points(results: ExperimentResults) -> Mapping[Key, Sequence[float]]:
    """MFU of each point by all conventions, sorted; by ``point_key``."""
    shares: dict[Key, list[float]] = {}
    for row in results.of(Utilisation):
        if row.mfu:
            insort(shares.setdefault(results.point_key(row.row), []), row.mfu.value)
    return shares


RULES = (
    Rule(
        IMPOSSIBLE, utilisation,
        says={ATTENTION: "{subject}: {fault} ({convention}'s FLOP; {above} such points)."},
        next={ATTENTION: "check unit and scope of the rate, the device and its peak"},
    ),
    Rule(
        PRINTED, None,
        says={NOTE: "{wrong} of {printed} printed MFU do not follow from their rows; {subject}: "
              "{fault}."},
    ),
    Rule(
        BEST, None,
        says={NOTE: "{subject}: the highest MFU, {mfu:%} of the {dtype} peak ({peak} a rank), by "
              "{convention}'s FLOP{others}."},
    ),
)  # fmt: skip
