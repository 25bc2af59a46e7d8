"""The section "How fast is this machine?": the ceilings that a campaign's probes found."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.aspects.probes.ceilings import ceilings, networks
from scalesweep.aspects.probes.findings import bandwidth_words, latency_words
from scalesweep.core.formatting import percent, size_words, text_of, with_interval
from scalesweep.experiment.results import ExperimentResults

# What probes measure, in words; imported and foreign ones by their benchmark's name.
WHAT = {
    "compute_peak": "arithmetic", "memory_bandwidth": "memory", "file_read": "reading files",
    "allreduce": "bus bandwidth of a collective", "copy_bandwidth": "copies",
}  # fmt: skip
# Those of other names, by the ceiling that benchmark.yaml says they measure.
_OF_CEILING = {"compute": "arithmetic", "memory": "memory"}


@dataclass(frozen=True)
class Line:
    """One row of the section's table; texts."""

    experiment: str
    what: str
    value: str
    median: str  # of the repeats, as a share
    where: str
    runs: str


def ceilings_section(studies: Sequence[ExperimentResults]) -> list[Line]:
    """A row per ceiling and per range of a fitted network, in the campaign's order."""
    lines = []
    for results in studies:
        for ceiling in ceilings(results):
            kind = ceiling.what or text_of(results.entry["fixed"].get("operation") or "")
            benchmark = results.entry["benchmark"]
            usual = _OF_CEILING.get(str(results.entry.get("ceiling")), benchmark)
            what = WHAT.get(benchmark, usual)
            what += f": {kind}" if kind else ""
            value = with_interval(ceiling.value, ceiling.low, ceiling.high, ceiling.unit)
            share = "–" if ceiling.share is None else percent(ceiling.share)
            place = _line(results, ceiling.row["source"], what, value, share, ceiling.how)
            lines.append(Line(*place, text_of(ceiling.row["repeats"])))
        for fit in networks(results):
            names = [f"{n} {text_of(v)}" for n, v in fit.series.items() if n != "source"]
            sizes = f"{size_words(fit.low_bytes)} to {size_words(fit.high_bytes)}"
            what = "latency and bandwidth of allreduce"
            value = latency_words(fit) + (f", {words}" if (words := bandwidth_words(fit)) else "")
            where = [*names, sizes, " or ".join(fit.supported)]
            place = _line(results, fit.series["source"], what, value, "–", ", ".join(where))
            lines.append(Line(*place, text_of(fit.best.repeats)))
    return lines


def _line(
    results: ExperimentResults, source: object, what: str, value: str, share: str, where: str
) -> tuple[str, str, str, str, str]:
    mark = "" if source == "measured" else f" ({source})"
    return results.name, what[:1].upper() + what[1:] + mark, value, share, where
