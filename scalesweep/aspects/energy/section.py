"""The section of the page on power, and on how energy was measured."""

from collections import Counter
from collections.abc import Mapping, Sequence

from scalesweep.core.formatting import counted, listed, percent, text_of
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.tables.provenance import EnergyFacts, RunFacts

MAX_REASONS = 3
# Of the metrics that the launcher adds to a program's own.
DEFINITIONS = {
    "energy": "joules of all hosts and counted domains while the program ran",
    "energy_per_sample": "energy in the phases that handle samples / samples handled in them",
    "energy_delay_product": "energy x wall time of the program",
    "mean_power": "energy / the time it was measured over, of all hosts together",
    "peak_power": "highest power over one sampling interval, of all hosts together",
}


def energy_lines(results: ExperimentResults, facts: Mapping[str, RunFacts]) -> list[str]:
    """What is to be said of how energy was measured in an experiment's runs, or why it was not.

    Records without this information are listed where runs train: elsewhere no reader expects it.
    """
    done = [run["run_id"] for run in results.entry["runs"] if run["status"] == Status.DONE]
    runs = [facts[run_id] for run_id in dict.fromkeys(done) if run_id in facts]
    known = [run.energy for run in runs if run.energy is not None]
    measured = [energy for energy in known if energy.joules is not None]
    lines = [_how(measured, len(runs))] if measured else []
    if notes := {note: None for energy in measured for note in energy.notes}:
        lines.append(f"Of the meters: {listed([*notes], MAX_REASONS)}.")
    reasons = Counter(e.missing or "no reason recorded" for e in known if e.joules is None)
    silent = len(runs) - len(known)
    if silent and (reasons or measured or results.tables.get("accuracy") is not None):
        reasons["the records hold no energy data"] += silent
    for reason, count in reasons.most_common(MAX_REASONS):
        share = "" if count == len(runs) else f" in {count:,} of {counted(len(runs), 'run')}"
        lines.append(f"Energy: not measured{share}: {reason}.")
    if len(reasons) > MAX_REASONS:
        lines.append(f"{len(reasons) - MAX_REASONS} more reasons are in the records.")
    return lines


def _how(measured: Sequence[EnergyFacts], runs: int) -> str:
    sources = listed(list(dict.fromkeys(source for of in measured for source in of.sources)))
    intervals = sorted({energy.interval_s for energy in measured if energy.interval_s})
    ends = dict.fromkeys(text_of(seconds) for seconds in (*intervals[:1], *intervals[-1:]))
    every = f", sampled every {' to '.join(ends)} s"
    line = f"Energy: measured in {len(measured):,} of {counted(runs, 'run')} with {sources}"
    line += every if intervals else ""
    shares = [
        energy.sampler_cpu_s / (energy.seconds * energy.hosts)
        for energy in measured
        if energy.sampler_cpu_s is not None and energy.seconds and energy.hosts
    ]
    if shares:
        mean = percent(sum(shares) / len(shares)) if max(shares) >= 5e-4 else "less than 0.1 %"
        line += f"; the sampler itself took {mean} of a core on each host"
    return f"{line}."


SECTION = Section(
    "Energy",
    table=lambda *_: None,
    notes=lambda _results: [],
    of_runs=energy_lines,
)
