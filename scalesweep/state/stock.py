"""Taking stock: the state of every run of a campaign, compared with what is planned."""

from collections.abc import Mapping

from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.study import shown
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import counted, listed
from scalesweep.core.status import Status
from scalesweep.state.agreement import CAUSES, PATTERNS, Planned
from scalesweep.state.frameworks import leave_unsupported
from scalesweep.state.run_state import RunState, scan

_SHOWN = 3  # ways to differ that a line names

Runs = Mapping[str, tuple[Experiment, Run]]


def take_stock(
    campaign: Campaign,
    runs: Runs,
    quarantine: bool = False,
    remember: bool = True,
) -> Mapping[str, RunState]:
    """State of every one of ``runs``, with the arguments of ``scan``.

    Records of something else than is planned are stale, also those whose logs were read with other
    patterns; runs whose framework the site lacks have nothing left to run. Raises UserError as
    ``scan``.
    """
    planned = Planned(campaign, runs)
    states = scan(campaign.runs_folder, runs, quarantine, remember, planned)
    return leave_unsupported(campaign.site, runs, states)


def tell_stale(campaign: Campaign, runs: Runs, states: Mapping[str, RunState]) -> str:
    """One line about the stale ones of ``states``: what differs, and the two ways out; empty
    without any. ``runs`` are all runs."""
    stale = {i: state for i, state in states.items() if state.status == Status.STALE}
    if not stale:
        return ""
    reasons: dict[str, int] = {}
    for state in stale.values():
        reasons[state.detail] = reasons.get(state.detail, 0) + 1
    folders = {runs[i][0].benchmark.folder for i in stale}
    causes = {word for s in stale.values() for word in s.cause.replace(",", "").split()}
    files = sorted(str(shown(folder / "benchmark.yaml")) for folder in folders)
    named = [f"{why} ({counted(count, 'run')})" for why, count in reasons.items()]
    accept = ", ".join(cause for cause in CAUSES if cause in causes)
    are = "is stale: its record is" if len(stale) == 1 else "are stale: their records are"
    ways = []
    if PATTERNS in causes:
        ways.append(f"to read their logs again, `scalesweep reread {campaign.file}`")
    if accept:
        ways.append(f"to measure them again, raise 'version' in {listed(files)}")
        ways.append(f"to count them, add 'accept_stale: [{accept}]' to {campaign.file}")
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
    named = [f"{run_id} ({why})" for run_id, why in list(broken.items())[:SHOWN]]
    more = f" and {len(broken) - SHOWN} more, see plan.csv" if len(broken) > SHOWN else ""
    records = "1 record" if len(broken) == 1 else f"{len(broken)} records"
    return f"{records} cannot be trusted and {aside} set aside: {', '.join(named)}{more}"
