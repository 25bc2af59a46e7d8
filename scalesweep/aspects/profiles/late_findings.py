"""The finding on ranks that come late to the exchange in traces of PyTorch's profiler."""

from scalesweep.aspects.profiles.collectives import RankLateness
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, marked

RULE = "late ranks"
NOTABLE = 0.01  # of a step
MAX_RUNS = 3


def late_ranks(results: ExperimentResults) -> list[Finding]:
    """Ranks that are late throughout a recording, by a part of a step that is worth a sentence.

    A note: it tells of one recording, and has no interval.
    """
    findings = []
    late = [row for row in results.of(RankLateness) if row.latest and _notable(row)]
    shown = list(dict.fromkeys(row.run_id for row in late))[:MAX_RUNS]
    for row in late:
        if row.run_id not in shown:
            continue
        where = f"at {results.describe(row.point)} " if results.axes else ""
        group = f"group {row.group}" if row.group else "a group without a name"
        text = (
            f"in a trace {where}rank {row.rank} begins the collectives of {group} last of ranks "
            f"{row.members}, throughout the recording: {percent(row.last_share)} of {row.calls:,} "
            f"calls, {number(row.late_median_ms)} ms after the first rank (median), in steps of "
            f"{number(row.step_ms)} ms."
        )
        evidence = {
            "experiment": results.name,
            "table": RankLateness.TABLE,
            "key": {"run_id": row.run_id, "group": row.group, "rank": row.rank},
            "numbers": {"late_median_ms": row.late_median_ms, "last_share": row.last_share},
        }
        source = next(iter(results.sources), "measured")
        findings.append(Finding(results.name, RULE, NOTE, marked(source, text), evidence))
    return findings


def _notable(row: RankLateness) -> bool:
    return row.step_ms is not None and row.late_median_ms >= NOTABLE * row.step_ms
