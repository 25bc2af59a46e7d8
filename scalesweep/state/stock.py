"""Taking stock: the state of every run of a campaign, compared with what is planned."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import TORCH, Site
from scalesweep.core.causes import Cause
from scalesweep.core.files import digest_of, read_json, write_atomic
from scalesweep.core.formatting import counted, listed
from scalesweep.core.paths import CHECKOUT, code_digest
from scalesweep.core.status import Status
from scalesweep.state.agreement import OTHER_PATTERNS, Planned
from scalesweep.state.run_state import RunState, scan

# In a results folder, the state of the runs that plan and report are made of. It is written only if
# that changes, so Snakemake makes plan, tables and report again if it is newer.
STATE = ".state.json"
_SHOWN = 3  # ways to differ that a line names

Runs = Mapping[str, tuple[Experiment, Run]]


def take_stock(campaign: Campaign, runs: Runs, quarantine: bool = False) -> Mapping[str, RunState]:
    """State of every one of ``runs``, with the arguments of ``scan``.

    Records of something else than is planned are stale, also those whose logs were read with other
    patterns; runs whose framework the site lacks have nothing left to run. Raises UserError as
    ``scan``.
    """
    planned = Planned(campaign, runs)
    states = scan(campaign.runs_folder, runs, quarantine, planned)
    return leave_unsupported(campaign.site, runs, states)


def lacks_framework(site: Site, benchmark: Benchmark) -> str | None:
    """Why a site cannot start a benchmark's programs, with what mends it; None if it can, or if
    that cannot be seen from here (a prologue that brings it, the nodes of a cluster)."""
    name = benchmark.framework
    if name is None or site.launch is None:
        return None
    own = (CHECKOUT or Path.cwd()) / f".{name}" / "bin" / "python"
    by_hand = f"python3 -m venv .{name} && .{name}/bin/pip install {name} numpy"
    makes = f"`{f'make {name}' if CHECKOUT else by_hand}` makes"
    python = site.python_for(name)
    if name == TORCH and site.pythons.torch is None:
        key = f"'python: {{{name}: PATH}}'"
        return f"{site.file} names no Python that has {name}: add {key} to it ({makes} {own})"
    if site.prologue or site.slurm or Path(python).exists() or shutil.which(python):
        return None
    mend = f"{makes} it" if Path(python) == own else "correct the path"
    return f"{site.file}: python.{name}: {python!r} is not there: {mend}"


def leave_unsupported(
    site: Site, runs: Runs, states: Mapping[str, RunState]
) -> Mapping[str, RunState]:
    """The states, with nothing left to run for pending runs whose framework the site lacks.

    Recorded nowhere: once the site has it, the runs are pending as if nothing had been.
    """
    benchmarks = {
        experiment.benchmark.name: experiment.benchmark for experiment, _ in runs.values()
    }
    lacks = {name: lacks_framework(site, benchmark) for name, benchmark in benchmarks.items()}
    lacking = {
        i: RunState(Status.UNSUPPORTED, cause=Cause.UNSUPPORTED, detail=why)
        for i, (experiment, _) in runs.items()
        if (why := lacks[experiment.benchmark.name]) is not None and not states[i].settled
    }
    return {**states, **lacking} if lacking else states


def tell_lacking(states: Mapping[str, RunState]) -> Sequence[str]:
    """A line for each reason for which pending runs are not started: how many, what mends it."""
    pending = (s for s in states.values() if s.status == Status.UNSUPPORTED and not s.stamp)
    reasons = Counter(state.detail for state in pending)
    return [f"{counted(n, 'run is', 'runs are')} unsupported: {why}" for why, n in reasons.items()]


def tell_stale(campaign: Campaign, runs: Runs, states: Mapping[str, RunState]) -> str:
    """One line about the stale ones of ``states``: what differs, and the two ways out; empty
    without any. ``runs`` are all runs."""
    stale = {i: state for i, state in states.items() if state.status == Status.STALE}
    if not stale:
        return ""
    reasons = Counter(state.detail for state in stale.values())
    others = {i for i, state in stale.items() if state.detail != OTHER_PATTERNS}
    named = [f"{why} ({counted(count, 'run')})" for why, count in reasons.items()]
    are = "is stale: its record is" if len(stale) == 1 else "are stale: their records are"
    ways, file = [], str(campaign.file)
    if campaign.results != Path(campaign.keys.results):
        file += f" --results {campaign.results}"
    if any(OTHER_PATTERNS in state.detail for state in stale.values()):
        ways.append(f"to read their logs again, `scalesweep reread {file}`")
    if names := list(dict.fromkeys(runs[i][0].part_of or runs[i][0].name for i in sorted(others))):
        again = f"`scalesweep run {file} --again {names[0]}`"
        ways.append(f"to measure them again, {again}, or raise the benchmark's 'version'")
        ways.append(f"to count them, add 'accept_stale: [{', '.join(names)}]' to {campaign.file}")
    return (
        f"{counted(len(stale), 'run')} of {len(runs):,} {are} of something else than is planned, "
        f"and neither counted nor run again: {listed(named, _SHOWN)}; {'; '.join(ways)}"
    )


SHOWN = 10  # runs named in one line


def untrusted(states: Mapping[str, RunState]) -> dict[str, str]:
    """The runs whose records cannot be trusted: id -> why."""
    return {i: state.detail for i, state in states.items() if state.cause == Cause.BAD_RECORD}


def tell_set_aside(broken: Mapping[str, str], to_be: bool = False) -> str:
    """One line about records that were set aside (``to_be``: will be): run id -> what is wrong."""
    aside = "will be" if to_be else "was" if len(broken) == 1 else "were"
    named = listed([f"{run_id} ({why})" for run_id, why in broken.items()], SHOWN)
    return f"{counted(len(broken), 'record')} cannot be trusted and {aside} set aside: {named}"


def state_digest(campaign: Campaign, states: Mapping[str, RunState]) -> str:
    """Digest of all that tables and report are made from: campaign, every run's files, the code."""
    # In what a record disagrees with the plan is no part of the stamp of its files.
    detailed = (Status.DONE, Status.STALE)
    here = "\n".join(
        f"{i} {state.status} {state.stamp} {state.detail if state.status in detailed else ''}"
        for i, state in states.items()
    )
    return digest_of([campaign.digest, here, code_digest()])


def shown_experiments(campaign: Campaign) -> list[str]:
    """The experiments of tables, figures and report: the parts of one are one."""
    return list(dict.fromkeys(each.part_of or each.name for each in campaign.experiments))


def note_state(campaign: Campaign, states: Mapping[str, RunState]) -> Path:
    """Write the file if the state is another, or what tables are made of is not noted; its path.

    Raises OSError.
    """
    path, state = campaign.results / STATE, state_digest(campaign, states)
    plans = (campaign.results / "plan" / f"{name}.json" for name in shown_experiments(campaign))
    if (read_json(path) or {}).get("state") != state or not all(map(Path.exists, plans)):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Snakemake takes a newer file of the same content for the same.
        text = json.dumps({"state": state, "noted": time.time_ns()})
        write_atomic(path, f"{text}\n", durable=False)
    return path
