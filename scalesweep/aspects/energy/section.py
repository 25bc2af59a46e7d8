"""The section of the page on power, and on how energy was measured."""

from collections import Counter
from collections.abc import Mapping

from scalesweep.core.formatting import counted, listed, text_of
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.tables.provenance import RunFacts

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
    lines = []
    if measured:
        sources = listed([*{source: None for of in measured for source in of.sources}])
        every = {text_of(of.interval_s): None for of in measured if of.interval_s}
        sampled = f", sampled every {' or '.join(every)} s" if every else ""
        whole = counted(len(runs), "run")
        lines = [f"Energy: measured in {len(measured):,} of {whole} with {sources}{sampled}."]
    if notes := {note: None for energy in measured for note in energy.notes}:
        lines.append(f"Of the meters: {listed([*notes], MAX_REASONS)}.")
    reasons = Counter(e.missing or "no reason recorded" for e in known if e.joules is None)
    silent = len(runs) - len(known)
    if silent and (reasons or measured or results.tables.get("accuracy") is not None):
        reasons["the records hold no energy data"] += silent
    for reason, count in reasons.most_common(MAX_REASONS):
        share = "" if count == len(runs) else f" in {count:,} of {counted(len(runs), 'run')}"
        lines.append(f"Energy: not measured{share}: {reason}.")
    return lines


SECTION = Section(
    "Energy",
    table=lambda *_: None,
    notes=lambda _results: [],
    of_runs=energy_lines,
)
