"""The section "How fast is this machine?": the ceilings that a campaign's probes found."""

from collections.abc import Sequence
from typing import NamedTuple

from scalesweep.aspects.probes.ceilings import ceilings
from scalesweep.aspects.probes.findings import bandwidth_words, latency_words
from scalesweep.aspects.probes.table import NetworkRow
from scalesweep.core.formatting import percent, size_words, text_of, with_interval
from scalesweep.experiment.results import ExperimentResults

# What probes measure, in words; imported and foreign ones by their benchmark's name.
WHAT = {
    "compute_peak": "arithmetic", "memory_bandwidth": "memory", "file_read": "reading files",
    "allreduce": "bus bandwidth of a collective", "copy_bandwidth": "copies",
}  # fmt: skip
# Those of other names, by the ceiling that benchmark.yaml says they measure.
_OF_CEILING = {"compute": "arithmetic", "memory": "memory"}


class Line(NamedTuple):
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
        benchmark = results.entry["benchmark"]
        usual = WHAT.get(benchmark, _OF_CEILING.get(str(results.entry.get("ceiling")), benchmark))
        for each in ceilings(results):
            kind = each.what or text_of(results.entry["fixed"].get("operation") or "")
            what = _marked(f"{usual}: {kind}" if kind else usual, each.row["source"])
            value = with_interval(each.best.rate.value, *each.ends, each.unit)
            share = "–" if each.share is None else percent(each.share)
            runs = text_of(each.row["repeats"])
            lines.append(Line(results.name, what, value, share, each.how, runs))
        for fit in results.of(NetworkRow):
            what = _marked("latency and bandwidth of allreduce", fit.source)
            value = ", ".join(filter(None, (latency_words(fit), bandwidth_words(fit))))
            names = [f"{name} {text_of(value)}" for name, value in fit.point.items()]
            sizes = f"{size_words(fit.low_bytes)} to {size_words(fit.high_bytes)}"
            where = ", ".join([*names, sizes, fit.algorithms])
            lines.append(Line(results.name, what, value, "–", where, text_of(fit.repeats)))
    return lines


def _marked(what: str, source: object) -> str:
    return what[:1].upper() + what[1:] + ("" if source == "measured" else f" ({source})")
