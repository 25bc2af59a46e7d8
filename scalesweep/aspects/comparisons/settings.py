"""What benchmarks that are compared with each other do not have in common."""

from scalesweep.core.formatting import listed, text_of
from scalesweep.core.joined_experiments import BENCHMARK, benchmarks_of, differing_settings
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding

MAX_NAMED = 6


def benchmark_settings(results: ExperimentResults) -> list[Finding]:
    """The parameters that benchmarks share and that have another value in each, as a note: a ratio
    of the benchmarks is one of these, too."""
    finished = {row.get(BENCHMARK) for row in results.points if row.get("repeats")}
    names = [name for name in benchmarks_of(results.entry) if name in finished]
    differing = {
        parameter: of
        for parameter, of in differing_settings(results.entry).items()
        if len({text_of(of[name]) for name in names}) > 1
    }
    if not differing:
        return []
    parts = [
        f"{parameter} ({', '.join(text_of(of[name]) for name in names)})"
        for parameter, of in differing.items()
    ]
    evidence = {"table": "points", "key": {}}
    subject = listed(parts, MAX_NAMED)
    return [Finding(results.name, "settings", NOTE, subject=subject, evidence=evidence)]
