"""Runs whose records cannot be trusted or used, and the line that says so."""

from collections.abc import Mapping

from scalesweep.core.causes import Cause
from scalesweep.state.run_state import RunState

SHOWN = 10  # runs named in one line


def untrusted(states: Mapping[str, RunState]) -> dict[str, str]:
    """The runs whose records cannot be trusted: id -> why."""
    return {i: state.detail for i, state in states.items() if state.cause == Cause.BAD_RECORD}


def newer(states: Mapping[str, RunState]) -> dict[str, str]:
    """The runs whose records are of a newer version: id -> which."""
    return {i: state.detail for i, state in states.items() if state.cause == Cause.NEWER_RECORD}


def unusable(states: Mapping[str, RunState]) -> dict[str, str]:
    """The runs whose records are whole and of no use: id -> why."""
    return {i: state.detail for i, state in states.items() if state.cause == Cause.UNUSABLE_RECORD}


def tell_set_aside(broken: Mapping[str, str], dry: bool = False) -> str:
    """One line about records that were set aside (``dry``: will be): run id -> what is wrong."""
    aside = "will be" if dry else "was" if len(broken) == 1 else "were"
    return _runs_text(broken, f"cannot be trusted and {aside} set aside")


def tell_unusable(broken: Mapping[str, str]) -> str:
    """One line about records that are of no use: run id -> why."""
    are, folder = ("is", "its folder to measure it")
    if len(broken) > 1:
        are, folder = ("are", "their folders to measure them")
    return f"{_runs_text(broken, f'cannot be used and {are} left out')}; delete {folder} again"


def _runs_text(broken: Mapping[str, str], what: str) -> str:
    records = "1 record" if len(broken) == 1 else f"{len(broken)} records"
    return f"{records} {what}: {tell_runs(broken)}"


def tell_runs(runs: Mapping[str, str]) -> str:
    """Some runs in one line, the first of them by name: run id -> what is said of it."""
    named = [f"{run_id} ({why})" for run_id, why in list(runs.items())[:SHOWN]]
    more = f" and {len(runs) - SHOWN} more, see plan.csv" if len(runs) > SHOWN else ""
    return ", ".join(named) + more
