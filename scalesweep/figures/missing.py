"""Figures that could not be drawn: the limits of drawing, and what is said of what exceeds them."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.core.formatting import counted, listed
from scalesweep.core.limited_map import Limits

# What drawing one figure may take; some tenths of a second and some MB are usual.
LIMITS = Limits(seconds=120, memory_bytes=2 * 2**30)


def missing_entry(experiment: str, name: str, reason: str) -> dict[str, Any]:
    """The entry of the index in place of a figure that could not be drawn."""
    words = f"Not drawn: {reason}. The tables have its numbers."
    return {
        "experiment": experiment,
        "name": name,
        "title": f"{experiment}: {name.replace('_', ' ')}",
        "caption": words,
        "alt": words,
        "shows": {},
        "files": {},
        "missing": reason,
    }


def missing_words(entries: Sequence[Mapping[str, Any]]) -> str:
    """Which figures could not be drawn, and why, in one line; empty where all were."""
    missing = [entry for entry in entries if "missing" in entry]
    named = [f"{entry['experiment']}/{entry['name']} ({entry['missing']})" for entry in missing]
    return f"{counted(len(missing), 'figure')} not drawn: {listed(named, 3)}" if missing else ""
